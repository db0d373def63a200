package selfexport

import (
	"context"
	"fmt"
	"io"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Options are parameters of New in addition to the configuration. All fields must be set.
type Options struct {
	Resource map[string]string // attributes of the process; empty values are omitted
	ReadFile func(name string) ([]byte, error)
	Console  io.Writer // of the exporter console
	// Exported is called after each export with the number of spans and the error. It is called
	// concurrently.
	Exported func(spans int, err error)
}

// New returns a provider of spans that the processors of c export, and the propagator of trace
// contexts. The caller must shut the provider down. Destinations need not be reachable. The error
// names the key below service.telemetry.traces.
func New(ctx context.Context, c *Config, o Options) (*sdktrace.TracerProvider, propagation.TextMapPropagator, error) {
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithSampler(c.sampler()), sdktrace.WithResource(newResource(o.Resource)), sdktrace.WithRawSpanLimits(c.Limits.spanLimits()),
	}
	var processors []sdktrace.SpanProcessor
	for i := range c.Processors {
		p, err := c.Processors[i].newProcessor(ctx, &o)
		if err != nil {
			for _, p := range processors {
				p.Shutdown(ctx) //nolint:errcheck // there are no spans
			}
			return nil, nil, fmt.Errorf("processors::%d: %w", i, err)
		}
		processors = append(processors, p)
		options = append(options, sdktrace.WithSpanProcessor(p))
	}
	return sdktrace.NewTracerProvider(options...), c.propagator(), nil
}

func (p *Processor) newProcessor(ctx context.Context, o *Options) (sdktrace.SpanProcessor, error) {
	if simple, on := p.Simple.Get(); on {
		e, err := simple.Exporter.newExporter(ctx, o)
		if err != nil {
			return nil, err
		}
		return sdktrace.NewSimpleSpanProcessor(&counted{e, o.Exported}), nil
	}
	b, _ := p.Batch.Get()
	e, err := b.Exporter.newExporter(ctx, o)
	if err != nil {
		return nil, err
	}
	return sdktrace.NewBatchSpanProcessor(&counted{e, o.Exported},
		sdktrace.WithBatchTimeout(milliseconds(orDefault(b.ScheduleDelay, sdktrace.DefaultScheduleDelay))),
		sdktrace.WithExportTimeout(milliseconds(orDefault(b.ExportTimeout, sdktrace.DefaultExportTimeout))),
		sdktrace.WithMaxQueueSize(orDefault(b.MaxQueueSize, sdktrace.DefaultMaxQueueSize)),
		sdktrace.WithMaxExportBatchSize(orDefault(b.MaxExportBatchSize, sdktrace.DefaultMaxExportBatchSize))), nil
}

// orDefault returns n, or the default if n is 0.
func orDefault(n, byDefault int) int {
	if n == 0 {
		return byDefault
	}
	return n
}

// newResource returns the description of the process in its spans.
func newResource(attrs map[string]string) *resource.Resource {
	var kvs []attribute.KeyValue
	for name, value := range attrs {
		if value != "" {
			kvs = append(kvs, attribute.String(name, value))
		}
	}
	return resource.NewSchemaless(kvs...)
}

// spanLimits returns the limits for the SDK, in which -1 means no limit.
func (l *Limits) spanLimits() sdktrace.SpanLimits {
	return sdktrace.SpanLimits{
		AttributeValueLengthLimit:   orDefault(l.AttributeValueLength, -1),
		AttributeCountLimit:         orDefault(l.AttributeCount, sdktrace.DefaultAttributeCountLimit),
		EventCountLimit:             orDefault(l.EventCount, sdktrace.DefaultEventCountLimit),
		LinkCountLimit:              orDefault(l.LinkCount, sdktrace.DefaultLinkCountLimit),
		AttributePerEventCountLimit: orDefault(l.EventAttributeCount, sdktrace.DefaultAttributePerEventCountLimit),
		AttributePerLinkCountLimit:  orDefault(l.LinkAttributeCount, sdktrace.DefaultAttributePerLinkCountLimit),
	}
}

// propagator returns the propagator of all configured formats.
func (c *Config) propagator() propagation.TextMapPropagator {
	var all []propagation.TextMapPropagator
	for _, p := range c.Propagators {
		if p == propagatorB3 {
			all = append(all, b3.New())
		} else {
			all = append(all, propagation.TraceContext{})
		}
	}
	return propagation.NewCompositeTextMapPropagator(all...)
}
