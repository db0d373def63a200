// Package debug implements the `debug` exporter. It writes spans and log records to the log of the
// process and discards them.
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

// Values of verbosity.
const (
	verbosityBasic    = "basic"
	verbosityNormal   = "normal"
	verbosityDetailed = "detailed"
)

type config struct {
	Verbosity  string `yaml:"verbosity" doc:"Amount of output: basic (one line per batch), normal (also per span or log record) or detailed (all data)."`
	Initial    int    `yaml:"sampling_initial" doc:"Number of batches that are always written in each second. Further ones are sampled."`
	Thereafter int    `yaml:"sampling_thereafter" doc:"Sampling of further batches: N writes every Nth batch. 0 writes none."`
}

// defaults returns the defaults of the OpenTelemetry Collector.
func defaults() config { return config{Verbosity: verbosityBasic, Initial: 2, Thereafter: 1} }

// Validate reports invalid values.
func (c *config) Validate() error {
	var errs []error
	if !slices.Contains([]string{verbosityBasic, verbosityNormal, verbosityDetailed}, c.Verbosity) {
		errs = append(errs, pipeline.BadKey("verbosity", "unknown verbosity %q; use basic, normal or detailed", c.Verbosity))
	}
	if c.Initial < 0 {
		errs = append(errs, pipeline.BadKey("sampling_initial", "must not be below 0"))
	}
	if c.Thereafter < 0 {
		errs = append(errs, pipeline.BadKey("sampling_thereafter", "must not be below 0"))
	}
	return errors.Join(errs...)
}

// Factory returns the factory of exporters of type debug.
func Factory() pipeline.Factory {
	return pipeline.Exporter("debug", defaults, newExporter).Logs().
		Doc("Writes spans and log records to the log of the process and discards them. Useful to inspect what arrives.")
}

type exporter struct {
	cfg config
	log *zap.Logger
	now func() time.Time

	mu     sync.Mutex
	second time.Time // start of the current second
	seen   int       // batches in the current second
}

var _ pipeline.DurabilityReporter = (*exporter)(nil)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	return &exporter{cfg: c, log: set.Logger, now: set.Env.Now}, nil
}

// Durability returns DurabilityNone, because spans are discarded.
func (*exporter) Durability() pipeline.Durability { return pipeline.DurabilityNone }

// Consume writes b unless it is not sampled.
func (e *exporter) Consume(_ context.Context, b *otlpdata.Batch) error {
	if !e.sampled() {
		return nil
	}
	m := b.Meta()
	e.log.Info(m.Signal.Items(), zap.Int(m.Signal.Key(), b.Len()), zap.Int("services", len(b.Services())), zap.Int("bytes", b.Size()),
		zap.String("tenant", m.Tenant), zap.String("format", m.Format), zap.String("transport", m.Transport))
	if e.cfg.Verbosity == verbosityBasic {
		return nil
	}
	if m.Signal == otlpdata.SignalLogs {
		return e.writeLogs(b)
	}
	w := &writer{log: e.log, detailed: e.cfg.Verbosity == verbosityDetailed}
	if err := b.Walk(w); err != nil {
		return pipeline.Permanent(fmt.Errorf("reading spans: %w", err))
	}
	return nil
}

// sampled counts a batch and reports whether to write it.
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
