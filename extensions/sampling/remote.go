package sampling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/internal/translate/strategies"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// RemoteConfig holds the keys of `remote`.
type RemoteConfig struct {
	client.GRPCConfig
	client.NextHopConfig
	Timeout   pipeline.Duration `yaml:"timeout" doc:"Timeout of requests to the collector."`
	FreshFor  pipeline.Duration `yaml:"fresh_for" doc:"Time for which a cached strategy is used without asking the collector."`
	StaleFor  pipeline.Duration `yaml:"stale_for" doc:"Maximum age of a cached strategy while the collector is unavailable. After that, clients get an error and keep their strategy."`
	CacheSize pipeline.ByteSize `yaml:"cache_size" doc:"Maximum memory for cached strategies. When it is full, the least recently used strategies are removed."`
	MaxAnswer pipeline.ByteSize `yaml:"max_answer_size" doc:"Maximum size of a response from the collector."`
}

func defaultRemote() RemoteConfig {
	c := RemoteConfig{GRPCConfig: client.DefaultGRPCConfig(), NextHopConfig: client.DefaultNextHopConfig(),
		Timeout: pipeline.Duration(3 * time.Second), FreshFor: pipeline.Duration(time.Second),
		StaleFor: pipeline.Duration(time.Hour), CacheSize: 16 << 20, MaxAnswer: 1 << 20}
	c.Compression = client.CompressionNone // old collectors do not support compression
	return c
}

const (
	minCacheSize  = 64 << 10
	maxCacheSize  = 1 << 30
	maxAnswerSize = 64 << 20
)

// Validate reports invalid values.
func (c *RemoteConfig) Validate() error {
	var errs []error
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout",
			"must be above 0; without a timeout, a collector that does not respond would block clients"))
	}
	if c.StaleFor < c.FreshFor {
		errs = append(errs, pipeline.BadKey("stale_for", "must be at least fresh_for, which is %s", c.FreshFor))
	}
	if c.CacheSize < minCacheSize || c.CacheSize > maxCacheSize {
		errs = append(errs, pipeline.BadKey("cache_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(minCacheSize), pipeline.ByteSize(maxCacheSize), c.CacheSize))
	}
	if c.MaxAnswer < 1 || c.MaxAnswer > maxAnswerSize {
		errs = append(errs, pipeline.BadKey("max_answer_size", "must be from 1 to %s, not %s", pipeline.ByteSize(maxAnswerSize),
			c.MaxAnswer))
	}
	return errors.Join(errs...)
}

// retryAfter is the minimum time between requests for a service after a failure. Until then,
// clients get the cached strategy.
const retryAfter = time.Second

// remoteSource requests strategies from a collector and caches the responses.
type remoteSource struct {
	set    pipeline.Settings
	cfg    RemoteConfig
	conn   *client.GRPC
	hop    *client.NextHop
	cache  *cache
	method string
}

func newRemoteSource(set pipeline.Settings, c RemoteConfig) (*remoteSource, error) {
	s := &remoteSource{set: set, cfg: c, hop: client.NewNextHop(set), cache: newCache(int64(c.CacheSize)),
		// The service name of the original protocol, which all collectors support.
		method: "/" + wire.Original(api_v2.SamplingManager_ServiceDesc.ServiceName) + "/GetSamplingStrategy"}
	var err error
	s.conn, err = client.NewGRPC(set, c.GRPCConfig, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(c.MaxAnswer))))
	return s, err
}

// Start starts connecting.
func (s *remoteSource) Start(ctx context.Context) error { return s.conn.Start(ctx) }

// Stop closes the connection.
func (s *remoteSource) Stop(ctx context.Context) error { return s.conn.Stop(ctx) }

// decide implements source. It returns the cached strategy while it is fresh, or while the
// collector is not available and the strategy is not too old. Concurrent calls for a service share
// one request.
func (s *remoteSource) decide(ctx context.Context, tenant, service string) (decision, error) {
	key := serviceKey{tenant, service}
	now := s.set.Env.Now()
	known, wait := s.cache.beginCall(key, now, s.cfg.FreshFor.Std())
	if known != nil {
		return s.serve(*known, now)
	}
	if wait == nil {
		// Not canceled, because other callers wait for the response.
		a := s.cache.end(key, s.request(context.WithoutCancel(ctx), key))
		return s.serve(a, s.set.Env.Now())
	}
	select {
	case <-wait.done:
		return s.serve(wait.answer, s.set.Env.Now())
	case <-ctx.Done():
		return s.unknown(), ctx.Err()
	}
}

// serve returns the decision for a cached response.
func (s *remoteSource) serve(a answer, now time.Time) (decision, error) {
	age := now.Sub(a.at)
	if a.err != nil && (a.entry == nil || age > s.cfg.StaleFor.Std()) {
		return s.unknown(), fmt.Errorf("failed to get sampling strategy: %w", a.err)
	}
	d := decision{entry: a.entry, source: "remote"}
	if a.err != nil {
		d.problem = fmt.Sprintf("collector not available: using its response from %s ago: %v", age.Round(time.Second), a.err)
	}
	return d, nil
}

// unknown returns the decision without a strategy, which applies if the collector is not available
// and there is no usable response.
func (s *remoteSource) unknown() decision {
	rule := fmt.Sprintf("collector not available, and no response in the last %s", s.cfg.StaleFor)
	return decision{entry: &entry{place: s.cfg.Endpoint, rule: rule}, source: "remote"}
}

// request requests the strategy of a service from the collector.
func (s *remoteSource) request(ctx context.Context, key serviceKey) answer {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout.Std())
	defer cancel()
	if key.tenant != "" && s.cfg.TenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, s.cfg.TenantHeader, key.tenant)
	}
	// gRPC rejects invalid UTF-8.
	params := &api_v2.SamplingStrategyParameters{ServiceName: strings.ToValidUTF8(key.service, "\uFFFD")}
	var response api_v2.SamplingStrategyResponse
	err := s.conn.Invoke(ctx, s.method, params, &response)
	now := s.set.Env.Now()
	out := answer{at: now, tried: now, err: s.hop.Record(ctx, err)}
	if err != nil {
		return out
	}
	strategy, err := strategies.FromProto(&response)
	if err != nil {
		out.err = fmt.Errorf("response of %s: %w", s.cfg.Endpoint, err)
		return out
	}
	out.entry = &entry{strategy: strategy, place: s.cfg.Endpoint, since: out.at,
		rule: "response of the collector; query the collector for the reason"}
	return out
}
