// Package probabilisticsampler implements the `probabilistic_sampler` processor. It passes on a
// share of all traces and drops the others. The decision depends only on the trace id, so it is the
// same for all spans of a trace in every process. The threshold of the decision is recorded in the
// tracestate of each span (`ot=th:`, defined by W3C and OpenTelemetry), so that consumers such as
// service performance metrics can compute adjusted counts. The attribute `sampling.priority` of a
// span overrides the decision.
package probabilisticsampler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The modes, named as in the OpenTelemetry Collector.
const (
	modeEqualizing   = "equalizing"
	modeProportional = "proportional"
	modeHashSeed     = "hash_seed"
)

// Config configures the processor.
type Config struct {
	Percentage float64 `yaml:"sampling_percentage" doc:"Percentage of traces that are passed on. Above 100 means 100."`
	Mode       string  `yaml:"mode" doc:"Method: equalizing (percentage of the traces before any sampling; traces already sampled at this percentage or a lower one all pass), proportional (percentage of the traces that arrive) or hash_seed (the traces that the OpenTelemetry Collector selects with this hash_seed). Empty means hash_seed if that key is not 0, and equalizing otherwise."`
	HashSeed   uint32  `yaml:"hash_seed" doc:"Seed of the hash in the mode hash_seed. All processes that sample parts of the same traces need the same seed."`
	FailClosed bool    `yaml:"fail_closed" doc:"Whether the mode hash_seed drops spans without a trace id, with an invalid tracestate, or already sampled by another mode, instead of passing them on."`
	Precision  int     `yaml:"sampling_precision" doc:"Precision of thresholds in the modes equalizing and proportional, in hexadecimal digits."`

	SamplingPriority string `yaml:"sampling_priority" doc:"No effect: the attribute sampling.priority of spans is always used. Accepted for configurations of the OpenTelemetry Collector."`
	AttributeSource  string `yaml:"attribute_source" doc:"No effect on spans; accepted for configurations of the OpenTelemetry Collector."`
	FromAttribute    string `yaml:"from_attribute" doc:"No effect on spans; accepted for configurations of the OpenTelemetry Collector."`
}

func defaults() Config { return Config{Percentage: 100, FailClosed: true, Precision: 4} }

// mode returns the configured or the default mode.
func (c *Config) mode() string {
	switch {
	case c.Mode != "":
		return c.Mode
	case c.HashSeed != 0:
		return modeHashSeed
	default:
		return modeEqualizing
	}
}

// Validate reports invalid values.
func (c *Config) Validate() error {
	var errs []error
	if !(c.Percentage >= 0) {
		errs = append(errs, pipeline.BadKey("sampling_percentage", "must be from 0 to 100, not %v", c.Percentage))
	}
	if modes := []string{modeEqualizing, modeProportional, modeHashSeed}; !slices.Contains(modes, c.mode()) {
		errs = append(errs, pipeline.BadKey("mode", "unknown mode %q; use one of: %s", c.Mode, strings.Join(modes, ", ")))
	}
	if c.Precision < 1 || c.Precision > otlpdata.ThresholdDigits {
		errs = append(errs, pipeline.BadKey("sampling_precision", "must be from 1 to %d, not %d", otlpdata.ThresholdDigits, c.Precision))
	}
	return errors.Join(errs...)
}

// Factory returns the factory of processors of type probabilistic_sampler.
func Factory() pipeline.Factory {
	return pipeline.Processor("probabilistic_sampler", defaults, newSampler).
		Doc("Passes on a percentage of all traces, selected by trace id, and drops the others.")
}

// sampler implements the processor.
type sampler struct {
	next   pipeline.Consumer
	budget *pipeline.Budget
	method method

	kept, dropped prometheus.Counter
}

func newSampler(set pipeline.Settings, c Config, next pipeline.Consumer) (*sampler, error) {
	if c.SamplingPriority != "" || c.FromAttribute != "" {
		set.Logger.Warn("sampling_priority and from_attribute have no effect on spans; their attribute " + priorityKey + " is used")
	}
	s := &sampler{next: next, budget: set.Budget, method: newMethod(c)}
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_probabilistic_sampler_spans_total",
		Help: "Spans by sampling decision."}, []string{"decision"})
	s.kept, s.dropped = spans.WithLabelValues("kept"), spans.WithLabelValues("dropped")
	return s, set.Metrics.Register(spans)
}

// Consume passes on the sampled spans. See ConsumeDropping.
func (s *sampler) Consume(ctx context.Context, b *otlpdata.Batch) error {
	_, err := s.ConsumeDropping(ctx, b)
	return err
}

// ConsumeDropping passes on the sampled spans and counts the others as dropped. If a later
// component refuses the sampled spans, nothing is counted.
func (s *sampler) ConsumeDropping(ctx context.Context, b *otlpdata.Batch) (dropped int, err error) {
	chunks, err := b.Chunks()
	if err != nil {
		return 0, pipeline.Permanent(err)
	}
	if b.Len() == 0 || s.passesAll(chunks) {
		s.kept.Add(float64(b.Len()))
		return 0, s.next.Consume(ctx, b)
	}
	size := int64(b.Size()) + maxGrowth*int64(b.Len())
	if limit := s.budget.Limit(); limit > 0 && size > limit {
		return 0, &otlpdata.LimitError{Limit: "bytes of memory for sampled spans", Max: int(limit), TooLarge: true}
	}
	reservation, err := s.budget.Reserve(size)
	if err != nil {
		return 0, err
	}
	defer reservation.Release()
	e := &edit{method: s.method, out: make([]byte, 0, b.Size())}
	for chunk := range chunks {
		e.request(chunk)
	}
	dropped = b.Len() - e.kept
	if e.kept > 0 {
		if err := s.pass(ctx, e.out, b.Meta()); err != nil {
			return dropped, err
		}
	}
	s.kept.Add(float64(e.kept))
	s.dropped.Add(float64(dropped))
	return dropped, nil
}

// pass passes on the sampled spans. It applies no limits, because the receiver has applied them.
func (s *sampler) pass(ctx context.Context, spans []byte, meta otlpdata.Meta) error {
	limits := otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt, Depth: math.MaxInt}
	out, err := otlpdata.FromOTLP(spans, meta, limits)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding sampled spans: %w", err))
	}
	return s.next.Consume(ctx, out)
}

// passesAll reports whether all spans are sampled and stay unchanged.
func (s *sampler) passesAll(chunks iter.Seq[[]byte]) bool {
	if !s.method.samplesAll() {
		return false
	}
	for chunk := range chunks {
		if mentionsPriority(chunk) {
			return false
		}
	}
	return true
}
