// Package redact is a processor that replaces the values of span attributes, for example of
// passwords.
package redact

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type config struct {
	Keys        []string `yaml:"keys" doc:"Keys of the span attributes whose values are replaced."`
	Replacement string   `yaml:"replacement" doc:"Text that replaces the values."`
}

func defaults() config { return config{Replacement: "redacted"} }

// Validate reports missing keys.
func (c *config) Validate() error {
	if len(c.Keys) == 0 {
		return pipeline.BadKey("keys", "must not be empty; otherwise nothing is replaced")
	}
	return nil
}

// Factory returns the factory of processors of type redact.
func Factory() pipeline.Factory {
	return pipeline.Processor("redact", defaults, newProcessor).Doc("Replaces the values of span attributes.")
}

type processor struct {
	config   config
	next     pipeline.Consumer
	replaced prometheus.Counter
}

func newProcessor(set pipeline.Settings, c config, next pipeline.Consumer) (*processor, error) {
	p := &processor{config: c, next: next}
	p.replaced = prometheus.NewCounter(prometheus.CounterOpts{Name: "redact_values_total", Help: "Number of replaced values."})
	return p, set.Metrics.Register(p.replaced)
}

// Consume passes a changed copy of the batch to next. It returns the error of next as it is, so
// that a Partial and the class of the error reach the sender.
func (p *processor) Consume(ctx context.Context, b *otlpdata.Batch) error {
	replaced := 0
	changed, err := b.Edit(func(spans ptrace.Traces) error {
		replaced = p.redact(spans)
		return nil
	})
	if err != nil { // the batch cannot be decoded
		return pipeline.Permanent(err)
	}
	if err := p.next.Consume(ctx, changed); err != nil {
		return err
	}
	p.replaced.Add(float64(replaced))
	return nil
}

// redact replaces values in all spans, which may be of several resources and scopes.
func (p *processor) redact(spans ptrace.Traces) (replaced int) {
	for _, rs := range spans.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				for key, value := range span.Attributes().All() {
					if slices.Contains(p.config.Keys, key) {
						value.SetStr(p.config.Replacement)
						replaced++
					}
				}
			}
		}
	}
	return replaced
}
