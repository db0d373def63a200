package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// HopConfig are the keys of every exporter that sends spans to a next hop, besides those of its connection.
type HopConfig struct {
	TenantHeader string `yaml:"tenant_header" doc:"Header that tells the next hop whose spans they are, unless they are the default tenant's; empty tells nobody."`
}

// DefaultHopConfig returns the defaults.
func DefaultHopConfig() HopConfig { return HopConfig{TenantHeader: "x-tenant"} }

// Validate reports a name that cannot be sent.
func (c *HopConfig) Validate() error {
	if c.TenantHeader != "" && !validName(c.TenantHeader) {
		return pipeline.BadKey("tenant_header", "%q is no name of a header: letters, digits, -, _ and . make one", c.TenantHeader)
	}
	return nil
}

const (
	// degradedAfter is how many sends in a row must fail before a component is reported as degraded.
	degradedAfter = 3
	// warnEvery is the least time between two warnings of the next hop in the log.
	warnEvery = time.Minute
)

// Hop watches what becomes of the sends of one exporter.
type Hop struct {
	set pipeline.Settings

	mu       sync.Mutex // held while reporting, so that reports are in order
	failures int        // in a row
	warned   time.Time
	unsaid   int // warnings since then that were not logged
}

// NewHop returns a Hop for the component of set.
func NewHop(set pipeline.Settings) *Hop { return &Hop{set: set} }

// Settle takes the outcome of one send and returns it: after three failures in a row the component is reported as degraded, after a
// success as healthy again. A partial success is one, and a send that its caller gave up says nothing.
func (h *Hop) Settle(ctx context.Context, err error) error {
	var partial *pipeline.Partial
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil || errors.As(err, &partial):
		if h.failures >= degradedAfter {
			h.set.Report(nil)
		}
		h.failures = 0
	case errors.Is(ctx.Err(), context.Canceled):
	default:
		h.failures++
		if h.failures == degradedAfter {
			h.set.Report(err)
		}
	}
	return err
}

// Partial returns the outcome of a send that the next hop took, all but the rejected spans: an error if there are any. A message without
// rejected spans is a warning for the log.
func (h *Hop) Partial(rejected int64, message string) error {
	if rejected > 0 {
		if message == "" {
			message = "the next hop gave no reason"
		}
		return &pipeline.Partial{Rejected: int(rejected), Err: pipeline.Permanent(fmt.Errorf("rejected by the next hop: %s", message))}
	}
	if message != "" {
		h.warn(message)
	}
	return nil
}

func (h *Hop) warn(message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.set.Env.Now()
	if now.Sub(h.warned) < warnEvery {
		h.unsaid++
		return
	}
	h.set.Logger.Warn("the next hop took the spans with a warning", zap.String("warning", message), zap.Int("warnings-not-logged", h.unsaid))
	h.warned, h.unsaid = now, 0
}
