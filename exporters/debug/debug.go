// Package debug is the exporter "debug", which writes spans to the process's own log and forgets them.
package debug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// How much is written of a batch.
const (
	verbosityBasic    = "basic"
	verbosityNormal   = "normal"
	verbosityDetailed = "detailed"
)

type config struct {
	Verbosity  string `yaml:"verbosity" doc:"basic writes a line per batch, normal one per span besides, detailed all that the spans hold."`
	Initial    int    `yaml:"sampling_initial" doc:"How many batches are written each second."`
	Thereafter int    `yaml:"sampling_thereafter" doc:"Which of the batches beyond those are written: every n-th; 0: none."`
}

// defaults are those of the OpenTelemetry Collector.
func defaults() config { return config{Verbosity: verbosityBasic, Initial: 2, Thereafter: 1} }

// Validate reports values that mean nothing.
func (c *config) Validate() error {
	var errs []error
	if !slices.Contains([]string{verbosityBasic, verbosityNormal, verbosityDetailed}, c.Verbosity) {
		errs = append(errs, pipeline.BadKey("verbosity", "%q is not a verbosity; write basic, normal or detailed", c.Verbosity))
	}
	if c.Initial < 0 {
		errs = append(errs, pipeline.BadKey("sampling_initial", "must not be below 0"))
	}
	if c.Thereafter < 0 {
		errs = append(errs, pipeline.BadKey("sampling_thereafter", "must not be below 0"))
	}
	return errors.Join(errs...)
}

// Factory makes exporters of type debug.
func Factory() pipeline.Factory {
	return pipeline.Exporter("debug", defaults, newExporter).
		Doc("Writes spans to the process's own log and forgets them, for looking at what arrives.")
}

type exporter struct {
	cfg config
	log *zap.Logger
	now func() time.Time

	mu     sync.Mutex
	second time.Time
	seen   int // batches since then
}

var _ pipeline.DurabilityReporter = (*exporter)(nil)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	return &exporter{cfg: c, log: set.Logger, now: set.Env.Now}, nil
}

// Keeps tells that nothing is kept.
func (*exporter) Durability() pipeline.Durability { return pipeline.DurabilityNone }

// Consume writes b, unless sampling leaves it out.
func (e *exporter) Consume(_ context.Context, b *otlpdata.Batch) error {
	if !e.sampled() {
		return nil
	}
	e.log.Info("spans", zap.Int("spans", b.Len()), zap.Int("services", len(b.Services())), zap.Int("bytes", b.Size()),
		zap.String("tenant", b.Meta().Tenant), zap.String("format", b.Meta().Format), zap.String("transport", b.Meta().Transport))
	if e.cfg.Verbosity == verbosityBasic {
		return nil
	}
	segments, err := b.Segments()
	if err != nil {
		return pipeline.Permanent(err)
	}
	w := &writer{log: e.log, detailed: e.cfg.Verbosity == verbosityDetailed}
	for _, s := range segments {
		if err := otlpdata.Walk(s, w); err != nil {
			return pipeline.Permanent(fmt.Errorf("reading spans: %w", err))
		}
	}
	return nil
}

// sampled counts a batch and tells whether to write it.
func (e *exporter) sampled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.now(); now.Sub(e.second) >= time.Second {
		e.second, e.seen = now, 0
	}
	e.seen++
	beyond := e.seen - e.cfg.Initial
	return beyond <= 0 || e.cfg.Thereafter > 0 && beyond%e.cfg.Thereafter == 0
}
