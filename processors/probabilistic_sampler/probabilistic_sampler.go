// Package probabilisticsampler is the processor "probabilistic_sampler": it passes on a share of
// all traces and drops the others. Which ones follows from the trace id alone, so that all spans of
// a trace have one fate, whichever process they pass; and what passes says in its tracestate for
// how many it stands (`ot=th:`), as the W3C and OpenTelemetry define it, so that who counts calls
// can weigh them, as service performance does.
package probabilisticsampler

import (
	"context"
	"errors"
	"fmt"
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
)

// Config configures the processor.
type Config struct {
	Percentage float64 `yaml:"sampling_percentage" doc:"Share of traces that pass, from 0 to 100."`
	Mode       string  `yaml:"mode" doc:"What the share is of, for spans that were sampled before: equalizing: of all traces, so those that were sampled down as far already all pass; proportional: of the traces that arrive."`
	Precision  int     `yaml:"sampling_precision" doc:"How exactly the share is kept to and told, in hexadecimal digits."`
}

func defaults() Config { return Config{Percentage: 100, Mode: modeEqualizing, Precision: 4} }

// Validate reports values that cannot work.
func (c *Config) Validate() error {
	var errs []error
	if !(c.Percentage >= 0 && c.Percentage <= 100) {
		errs = append(errs, pipeline.BadKey("sampling_percentage", "must be from 0 to 100, not %v", c.Percentage))
	}
	if modes := []string{modeEqualizing, modeProportional}; !slices.Contains(modes, c.Mode) {
		errs = append(errs, pipeline.BadKey("mode", "%q is not a mode; write %s", c.Mode, strings.Join(modes, " or ")))
	}
	if c.Precision < 1 || c.Precision > otlpdata.ThresholdDigits {
		errs = append(errs, pipeline.BadKey("sampling_precision", "must be from 1 to %d, not %d", otlpdata.ThresholdDigits, c.Precision))
	}
	return errors.Join(errs...)
}

// Factory makes processors of type probabilistic_sampler.
func Factory() pipeline.Factory {
	return pipeline.Processor("probabilistic_sampler", defaults, newSampler).
		Doc("Passes on a share of all traces, chosen by trace id, and drops the others.")
}

// sampler is the processor.
type sampler struct {
	next         pipeline.Consumer
	budget       *pipeline.Budget
	proportional bool
	share        float64 // 0 to 1
	precision    int
	own          otlpdata.Threshold // of the share of all traces

	kept, dropped prometheus.Counter
}

func newSampler(set pipeline.Settings, c Config, next pipeline.Consumer) (*sampler, error) {
	s := &sampler{next: next, budget: set.Budget, proportional: c.Mode == modeProportional, share: c.Percentage / 100, precision: c.Precision}
	s.own = thresholdOf(s.share, s.precision)
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_probabilistic_sampler_spans_total",
		Help: "Spans by what the processor decided about them."}, []string{"decision"})
	s.kept, s.dropped = spans.WithLabelValues("kept"), spans.WithLabelValues("dropped")
	return s, set.Metrics.Register(spans)
}

// Consume passes on the spans that are sampled, and takes responsibility for the others by counting
// them.
func (s *sampler) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if s.own == 0 || b.Len() == 0 {
		s.kept.Add(float64(b.Len()))
		return s.next.Consume(ctx, b)
	}
	segments, err := b.Segments()
	if err != nil {
		return pipeline.Permanent(err)
	}
	size := int64(b.Size()) + growth*int64(b.Len())
	if limit := s.budget.Limit(); limit > 0 && size > limit {
		return &otlpdata.LimitError{Limit: "bytes of memory for spans that are sampled", Max: int(limit), TooLarge: true}
	}
	held, err := s.budget.Reserve(size)
	if err != nil {
		return err
	}
	defer held.Release()
	e := &edit{sampler: s, out: make([]byte, 0, b.Size())}
	for _, segment := range segments {
		e.request(segment)
	}
	dropped := float64(b.Len() - e.kept)
	if e.kept > 0 {
		if err := s.pass(ctx, e.out, b.Meta()); err != nil {
			return err
		}
	}
	s.kept.Add(float64(e.kept))
	s.dropped.Add(dropped)
	return nil
}

// pass hands on what is left of a batch. It was within the limits of whoever received it.
func (s *sampler) pass(ctx context.Context, spans []byte, meta otlpdata.Meta) error {
	limits := otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt, Depth: math.MaxInt}
	out, err := otlpdata.FromOTLP(spans, meta, limits)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("sampling: %w", err))
	}
	return s.next.Consume(ctx, out)
}

// decide returns whether a span is sampled whose tracestate says said, and the threshold that it
// then has.
func (s *sampler) decide(traceID []byte, said otlpdata.Sampling) (otlpdata.Threshold, bool) {
	var id otlpdata.TraceID // another length: none, which is all zeros
	if len(traceID) == len(id) {
		id = otlpdata.TraceID(traceID)
	}
	before := said.ForTrace(id)
	target := s.own
	switch {
	case !before.HasThreshold:
	case s.proportional:
		target = max(before.Threshold, thresholdOf(before.Threshold.Probability()*s.share, s.precision))
	default:
		target = max(before.Threshold, target)
	}
	return target, target < otlpdata.RejectAll && before.Randomness >= uint64(target)
}
