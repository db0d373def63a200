package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// PeersConfig holds the keys of `peers`.
type PeersConfig struct {
	Endpoints []string                             `yaml:"endpoints" doc:"Base URLs of the admin extensions of the other processes of a deployment, such as http://collector:14269. The pages /status and /sampling then show these processes, too."`
	Timeout   pipeline.Duration                    `yaml:"timeout" doc:"Maximum time for the answer of a process. A process that needs longer is shown as not answering."`
	MaxAnswer pipeline.ByteSize                    `yaml:"max_answer_size" doc:"Maximum size of the answer of a process."`
	TLS       client.TLSConfig                     `yaml:"tls" doc:"TLS settings for https URLs."`
	Headers   map[string]pipeline.Secret           `yaml:"headers" doc:"Headers sent with every request. Their values are never shown."`
	Auth      pipeline.Optional[client.AuthConfig] `yaml:"auth" doc:"Authentication of requests. Without the block, requests carry no credentials."`
}

// DefaultPeersConfig returns the default configuration, without processes.
func DefaultPeersConfig() PeersConfig {
	return PeersConfig{Timeout: pipeline.Duration(3 * time.Second), MaxAnswer: 4 << 20, TLS: client.DefaultHTTPConfig().TLS}
}

// Limits of configuration values.
const (
	maxPeers      = 100
	maxPeerAnswer = 64 << 20
)

// Validate reports invalid values.
func (c *PeersConfig) Validate() error {
	var errs []error
	if len(c.Endpoints) > maxPeers {
		errs = append(errs, pipeline.BadKey("endpoints", "must not be more than %d, not %d", maxPeers, len(c.Endpoints)))
	}
	for _, e := range c.Endpoints {
		errs = append(errs, client.ValidateURL("endpoints", e))
	}
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout",
			"must be above 0; without a timeout, a process that does not answer would block the pages"))
	}
	if c.MaxAnswer < 1 || c.MaxAnswer > maxPeerAnswer {
		errs = append(errs, pipeline.BadKey("max_answer_size", "must be from 1 to %s, not %s", pipeline.ByteSize(maxPeerAnswer), c.MaxAnswer))
	}
	return errors.Join(errs...)
}

// Peers asks the admin extensions of other processes. It is safe for concurrent use.
type Peers struct {
	config PeersConfig
	http   *client.HTTP
}

var (
	_ pipeline.Starter = (*Peers)(nil)
	_ pipeline.Stopper = (*Peers)(nil)
)

// NewPeers returns a client of the configured processes.
func NewPeers(set pipeline.Settings, c PeersConfig) (*Peers, error) {
	cfg := client.DefaultHTTPConfig()
	cfg.TLS, cfg.Headers, cfg.Auth, cfg.Compression = c.TLS, c.Headers, c.Auth, client.CompressionNone
	h, err := client.NewHTTP(set, cfg)
	return &Peers{c, h}, err
}

// Start reads certificates and tokens.
func (p *Peers) Start(ctx context.Context) error { return p.http.Start(ctx) }

// Stop closes idle connections.
func (p *Peers) Stop(ctx context.Context) error { return p.http.Stop(ctx) }

// answer is what one process answered, or why it did not.
type answer[T any] struct {
	address string
	data    T
	err     error
}

// ask sends a request to all processes at once. The answers are in the order of the configuration.
func ask[T any](ctx context.Context, p *Peers, path string, query url.Values) []answer[T] {
	if p == nil {
		return nil
	}
	out := make([]answer[T], len(p.config.Endpoints))
	var all sync.WaitGroup
	for i, endpoint := range p.config.Endpoints {
		all.Go(func() {
			out[i].address = endpoint
			out[i].err = p.get(ctx, endpoint, path, query, &out[i].data)
		})
	}
	all.Wait()
	return out
}

// get requests one answer.
func (p *Peers) get(ctx context.Context, endpoint, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout.Std())
	defer cancel()
	target := strings.TrimSuffix(endpoint, "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	a, err := p.http.Get(ctx, target, int64(p.config.MaxAnswer))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", p.config.Timeout)
	case err != nil:
		return err
	case a.Status == http.StatusNotFound:
		return errors.New("no status at this address: check that it is the admin extension of a process of this version")
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return fmt.Errorf("refused the credentials of peers (%d)", a.Status)
	case a.Status != http.StatusOK:
		return fmt.Errorf("unexpected response %d %s", a.Status, http.StatusText(a.Status))
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return fmt.Errorf("decoding the response: %w", err)
	}
	return nil
}
