package deployment

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

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/processview"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// PeersConfig holds the keys of `peers`.
type PeersConfig struct {
	Endpoints []string                             `yaml:"endpoints" doc:"Base URLs of the admin extensions of these processes, such as http://collector:14269."`
	Timeout   pipeline.Duration                    `yaml:"timeout" doc:"Maximum time for the response of a process. Slower processes are shown as not responding."`
	MaxAnswer pipeline.ByteSize                    `yaml:"max_answer_size" doc:"Maximum size of the response of a process."`
	TLS       client.TLSConfig                     `yaml:"tls" doc:"TLS settings for https URLs."`
	Headers   map[string]pipeline.Secret           `yaml:"headers" doc:"Headers of every request."`
	Auth      pipeline.Optional[client.AuthConfig] `yaml:"auth" doc:"Authentication of requests."`
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
		if strings.ContainsAny(e, "?#") {
			errs = append(errs, pipeline.BadKey("endpoints", "%q must be a base URL, without ? and #", pipeline.MaskURLs(e)))
		}
	}
	cfg := c.client()
	cfg.Endpoint = "" // is validated above
	errs = append(errs, cfg.Validate())
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout",
			"must be above 0; without a timeout, a process that does not respond would block the pages"))
	}
	if c.MaxAnswer < 1 || c.MaxAnswer > maxPeerAnswer {
		errs = append(errs, pipeline.BadKey("max_answer_size", "must be from 1 to %s, not %s", pipeline.ByteSize(maxPeerAnswer), c.MaxAnswer))
	}
	return errors.Join(errs...)
}

// client returns the configuration of the client. Requests do not use its endpoint; it is set to an
// http endpoint, if there is one, so that the client warns about credentials in plaintext.
func (c *PeersConfig) client() client.HTTPConfig {
	cfg := client.DefaultHTTPConfig()
	cfg.TLS, cfg.Headers, cfg.Auth, cfg.Compression = c.TLS, c.Headers, c.Auth, client.CompressionNone
	for _, e := range c.Endpoints {
		if strings.HasPrefix(e, "http://") {
			cfg.Endpoint = e
		}
	}
	return cfg
}

// Peers queries the `admin` extensions of other processes. It is safe for concurrent use.
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
	h, err := client.NewHTTP(set, c.client())
	return &Peers{c, h}, err
}

// Start reads certificates and tokens.
func (p *Peers) Start(ctx context.Context) error { return p.http.Start(ctx) }

// Stop closes idle connections.
func (p *Peers) Stop(ctx context.Context) error { return p.http.Stop(ctx) }

// answer is the response of one process, or why there is none.
type answer[T any] struct {
	address string
	data    T
	bytes   int // of the encoded data
	err     error
}

// hold charges a query for responses.
func hold[T any](slot *core.Slot, list []answer[T]) error {
	const decoded = 4 // times as large as encoded
	sum := int64(0)
	for i := range list {
		sum += int64(list[i].bytes) * decoded
	}
	return slot.HoldMore(sum)
}

// ask sends a request to all processes concurrently. The responses are in the order of the
// configuration.
func ask[T any](ctx context.Context, p *Peers, path string, query url.Values) []answer[T] {
	if p == nil {
		return nil
	}
	out := make([]answer[T], len(p.config.Endpoints))
	var all sync.WaitGroup
	for i, endpoint := range p.config.Endpoints {
		all.Go(func() {
			out[i].address = endpoint
			out[i].bytes, out[i].err = p.get(ctx, endpoint, path, query, &out[i].data)
		})
	}
	all.Wait()
	return out
}

// get sends one request, and returns the size of the response.
func (p *Peers) get(ctx context.Context, endpoint, path string, query url.Values, into any) (bytes int, _ error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout.Std())
	defer cancel()
	target := strings.TrimSuffix(endpoint, "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	a, err := p.http.Get(ctx, target, int64(p.config.MaxAnswer))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return 0, fmt.Errorf("no response within %s", p.config.Timeout)
	case err != nil:
		return 0, err
	case a.Status == http.StatusNotFound:
		return 0, errors.New("no status at this address: check that it is the admin extension of a process of this version")
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return 0, fmt.Errorf("refused the credentials of peers (%d)", a.Status)
	case a.Status != http.StatusOK:
		return 0, fmt.Errorf("unexpected response %d %s", a.Status, http.StatusText(a.Status))
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return 0, fmt.Errorf("decoding the response: %w", err)
	}
	if !isComplete(into) {
		return 0, errors.New("response does not come from the admin extension of a process")
	}
	return len(a.Body), nil
}

// isComplete reports whether a response has the members that every process returns.
func isComplete(answer any) bool {
	switch a := answer.(type) {
	case *status.Details:
		return a.Report.State != ""
	case *processview.Strategies:
		return a.Providers != nil
	case *processview.Explanation:
		return a.Strategies != nil && a.Stages != nil
	}
	return true
}
