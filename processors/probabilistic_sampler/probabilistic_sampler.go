// Package probabilisticsampler implements the processor "probabilistic_sampler". It passes on a
// share of all traces and drops the others. The decision depends only on the trace id, so it is the
// same for all spans of a trace in every process. The threshold of the decision is recorded in the
// tracestate of each span (`ot=th:`, defined by W3C and OpenTelemetry), so that consumers such as
// service performance metrics can compute adjusted counts.
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
	Percentage float64 `yaml:"sampling_percentage" doc:"Percentage of traces that are passed on, from 0 to 100."`
	Mode       string  `yaml:"mode" doc:"Traces to which the percentage applies: equalizing (the traces before any sampling; traces that were already sampled at this percentage or a lower one all pass) or proportional (the traces that arrive here)."`
	Precision  int     `yaml:"sampling_precision" doc:"Precision of the sampling threshold, in hexadecimal digits."`
}

func defaults() Config { return Config{Percentage: 100, Mode: modeEqualizing, Precision: 4} }

// Validate reports invalid values.
func (c *Config) Validate() error {
	var errs []error
	if !(c.Percentage >= 0 && c.Percentage <= 100) {
		errs = append(errs, pipeline.BadKey("sampling_percentage", "must be from 0 to 100, not %v", c.Percentage))
	}
	if modes := []string{modeEqualizing, modeProportional}; !slices.Contains(modes, c.Mode) {
		errs = append(errs, pipeline.BadKey("mode", "unknown mode %q; use %s", c.Mode, strings.Join(modes, " or ")))
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
	next         pipeline.Consumer
	budget       *pipeline.Budget
	proportional bool
	share        float64 // 0 to 1
	precision    int
	threshold    otlpdata.Threshold // for share

	kept, dropped prometheus.Counter
}

func newSampler(set pipeline.Settings, c Config, next pipeline.Consumer) (*sampler, error) {
	s := &sampler{next: next, budget: set.Budget, proportional: c.Mode == modeProportional, share: c.Percentage / 100, precision: c.Precision}
	s.threshold = thresholdOf(s.share, s.precision)
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_probabilistic_sampler_spans_total",
		Help: "Spans by sampling decision."}, []string{"decision"})
	s.kept, s.dropped = spans.WithLabelValues("kept"), spans.WithLabelValues("dropped")
	return s, set.Metrics.Register(spans)
}

// Consume passes on the sampled spans and counts the others as dropped. If a later component
// refuses the sampled spans, nothing is counted.
func (s *sampler) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if s.threshold == 0 || b.Len() == 0 {
		s.kept.Add(float64(b.Len()))
		return s.next.Consume(ctx, b)
	}
	chunks, err := b.Chunks()
	if err != nil {
		return pipeline.Permanent(err)
	}
	size := int64(b.Size()) + maxGrowth*int64(b.Len())
	if limit := s.budget.Limit(); limit > 0 && size > limit {
		return &otlpdata.LimitError{Limit: "bytes of memory for sampled spans", Max: int(limit), TooLarge: true}
	}
	reservation, err := s.budget.Reserve(size)
	if err != nil {
		return err
	}
	defer reservation.Release()
	e := &edit{sampler: s, out: make([]byte, 0, b.Size())}
	for chunk := range chunks {
		e.request(chunk)
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

// pass passes on the sampled spans. It applies no limits, because the receiver has applied them.
func (s *sampler) pass(ctx context.Context, spans []byte, meta otlpdata.Meta) error {
	limits := otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Items: math.MaxInt, Depth: math.MaxInt}
	out, err := otlpdata.FromOTLP(spans, meta, limits)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding sampled spans: %w", err))
	}
	return s.next.Consume(ctx, out)
}

// decide reports whether a span with the given trace id and sampling state is sampled, and its new
// threshold.
func (s *sampler) decide(traceID []byte, state otlpdata.Sampling) (otlpdata.Threshold, bool) {
	var id otlpdata.TraceID // zero if traceID has a wrong length
	if len(traceID) == len(id) {
		id = otlpdata.TraceID(traceID)
	}
	before := state.ForTrace(id)
	target := s.threshold
	switch {
	case !before.HasThreshold:
	case s.proportional:
		target = max(before.Threshold, thresholdOf(before.Threshold.Probability()*s.share, s.precision))
	default:
		target = max(before.Threshold, target)
	}
	return target, target < otlpdata.RejectAll && before.Randomness >= uint64(target)
}
