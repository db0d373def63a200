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

// RemoteConfig are the keys below `remote`.
type RemoteConfig struct {
	client.GRPCConfig
	client.NextHopConfig
	Timeout   pipeline.Duration `yaml:"timeout" doc:"How long the collector may take to answer."`
	FreshFor  pipeline.Duration `yaml:"fresh_for" doc:"How long an answer is given to others that ask for the same service, before the collector is asked again."`
	StaleFor  pipeline.Duration `yaml:"stale_for" doc:"How old the answer may be that is given while the collector cannot be asked; older ones become errors, on which clients keep what they were told."`
	CacheSize pipeline.ByteSize `yaml:"cache_size" doc:"Memory for answers; beyond it those are forgotten that were not asked for for the longest time."`
	MaxAnswer pipeline.ByteSize `yaml:"max_answer_size" doc:"Greatest answer of a collector."`
}

func defaultRemote() RemoteConfig {
	c := RemoteConfig{GRPCConfig: client.DefaultGRPCConfig(), NextHopConfig: client.DefaultNextHopConfig(),
		Timeout: pipeline.Duration(3 * time.Second), FreshFor: pipeline.Duration(10 * time.Second),
		StaleFor: pipeline.Duration(time.Hour), CacheSize: 16 << 20, MaxAnswer: 1 << 20}
	c.Compression = client.CompressionNone // old collectors know nothing else
	return c
}

const (
	leastCacheSize = 64 << 10
	mostCacheSize  = 1 << 30
	mostAnswer     = 64 << 20
)

// Validate reports values that cannot work.
func (c *RemoteConfig) Validate() error {
	var errs []error
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout", "must be above 0, or a collector that is silent would be waited for without end"))
	}
	if c.StaleFor < c.FreshFor {
		errs = append(errs, pipeline.BadKey("stale_for", "must be at least fresh_for, which is %s", c.FreshFor))
	}
	if c.CacheSize < leastCacheSize || c.CacheSize > mostCacheSize {
		errs = append(errs, pipeline.BadKey("cache_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(leastCacheSize), pipeline.ByteSize(mostCacheSize), c.CacheSize))
	}
	if c.MaxAnswer < 1 || c.MaxAnswer > mostAnswer {
		errs = append(errs, pipeline.BadKey("max_answer_size", "must be from 1 to %s, not %s", pipeline.ByteSize(mostAnswer), c.MaxAnswer))
	}
	return errors.Join(errs...)
}

// retryAfter is how long a service is not asked for again after a failure: who asks meanwhile gets what is there at once.
const retryAfter = time.Second

// remoteSource asks a collector, and remembers its answers.
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
		// The name that all collectors know.
		method: "/" + wire.Original(api_v2.SamplingManager_ServiceDesc.ServiceName) + "/GetSamplingStrategy"}
	var err error
	s.conn, err = client.NewGRPC(set, c.GRPCConfig, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(c.MaxAnswer))))
	return s, err
}

// Start begins to connect.
func (s *remoteSource) Start(ctx context.Context) error { return s.conn.Start(ctx) }

// Stop closes the connection.
func (s *remoteSource) Stop(ctx context.Context) error { return s.conn.Stop(ctx) }

// decide returns the collector's answer, or the last one while that is fresh, or while the collector cannot be asked and it is not too
// old. Of those who ask for a service at once, one asks the collector.
func (s *remoteSource) decide(ctx context.Context, tenant, service string) (decision, error) {
	key := askedFor{tenant, service}
	now := s.set.Env.Now()
	known, wait := s.cache.begin(key, now, s.cfg.FreshFor.Std())
	if known != nil {
		return s.serve(*known, now)
	}
	if wait == nil {
		a := s.cache.end(key, s.ask(context.WithoutCancel(ctx), key)) // not cancelled: others wait for it, too
		return s.serve(a, s.set.Env.Now())
	}
	select {
	case <-wait.done:
		return s.serve(wait.answer, s.set.Env.Now())
	case <-ctx.Done():
		return s.unknown(), ctx.Err()
	}
}

// serve makes a decision of what is known.
func (s *remoteSource) serve(a answer, now time.Time) (decision, error) {
	age := now.Sub(a.at)
	if a.err != nil && (a.entry == nil || age > s.cfg.StaleFor.Std()) {
		return s.unknown(), fmt.Errorf("failed to get sampling strategy: %w", a.err)
	}
	d := decision{entry: a.entry, source: "remote"}
	if a.err != nil {
		d.problem = fmt.Sprintf("the collector could not be asked: the strategy is what it said %s ago: %v", age.Round(time.Second), a.err)
	}
	return d, nil
}

// unknown is the decision where the collector cannot be asked, and no answer may be used.
func (s *remoteSource) unknown() decision {
	rule := fmt.Sprintf("the collector cannot be asked, and has said nothing in the last %s", s.cfg.StaleFor)
	return decision{entry: &entry{place: s.cfg.Endpoint, rule: rule}, source: "remote"}
}

// ask asks the collector.
func (s *remoteSource) ask(ctx context.Context, key askedFor) answer {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout.Std())
	defer cancel()
	if key.tenant != "" && s.cfg.TenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, s.cfg.TenantHeader, key.tenant)
	}
	question := &api_v2.SamplingStrategyParameters{ServiceName: strings.ToValidUTF8(key.service, "\uFFFD")} // or it cannot be asked
	var response api_v2.SamplingStrategyResponse
	err := s.conn.Invoke(ctx, s.method, question, &response)
	now := s.set.Env.Now()
	out := answer{at: now, tried: now, err: s.hop.Record(ctx, err)}
	if err != nil {
		return out
	}
	strategy, err := strategies.FromProto(&response)
	if err != nil {
		out.err = fmt.Errorf("the answer of %s: %w", s.cfg.Endpoint, err)
		return out
	}
	out.entry = &entry{strategy: strategy, place: s.cfg.Endpoint, rule: "the collector's answer; ask it for the reason", since: out.at}
	return out
}
