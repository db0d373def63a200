package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// NextHopConfig holds the keys that exporters to a next hop have in addition to the keys of the
// connection.
type NextHopConfig struct {
	TenantHeader string `yaml:"tenant_header" doc:"Header that contains the tenant of the spans, unless it is the default tenant. If empty, it is not sent."`
}

// DefaultNextHopConfig returns the default config.
func DefaultNextHopConfig() NextHopConfig { return NextHopConfig{TenantHeader: "x-tenant"} }

// Validate reports an invalid header name.
func (c *NextHopConfig) Validate() error {
	if c.TenantHeader != "" && !validName(c.TenantHeader) {
		return pipeline.BadKey("tenant_header", "%q is not a valid header name; use letters, digits, -, _ and .", c.TenantHeader)
	}
	return nil
}

// degradedAfter is the number of consecutive failures after which a component is reported as
// degraded.
const degradedAfter = 3

// NextHop tracks the results of the sends of one exporter. It is safe for concurrent use.
type NextHop struct {
	report func(error)
	lines  *pipeline.RepeatLog

	mu       sync.Mutex // held while reporting, to keep reports in order
	failures int        // consecutive
}

// NewNextHop returns a NextHop for the component with these settings.
func NewNextHop(set pipeline.Settings) *NextHop {
	return &NextHop{report: set.Report, lines: pipeline.NewRepeatLog(set)}
}

// Record records the result of one send and returns err. After three consecutive failures it
// reports the component as degraded, after a success as healthy. A partial success, and a rejection
// because of the data ([pipeline.IsAboutData]), count as success: the next hop works. A send that
// its caller canceled is ignored.
func (h *NextHop) Record(ctx context.Context, err error) error {
	var partial *pipeline.Partial
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil || errors.As(err, &partial) || pipeline.IsAboutData(err):
		if h.failures >= degradedAfter {
			h.report(nil)
		}
		h.failures = 0
	case errors.Is(ctx.Err(), context.Canceled):
	default:
		h.failures++
		if h.failures == degradedAfter {
			h.report(err)
		}
	}
	return err
}

// Partial returns the result of a send that the next hop accepted except for the rejected spans: a
// *pipeline.Partial, or nil if rejected is 0. A message without rejected spans is logged as a
// warning.
func (h *NextHop) Partial(rejected int64, message string) error {
	if rejected > 0 {
		if message == "" {
			message = "no reason given"
		}
		return &pipeline.Partial{Rejected: int(rejected), Err: pipeline.Permanent(fmt.Errorf("rejected by the next hop: %s", message))}
	}
	if message != "" {
		h.lines.Warn("next hop accepted a request with a warning", zap.String("warning", message))
	}
	return nil
}
