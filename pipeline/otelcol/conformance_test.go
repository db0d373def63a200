package otelcol_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func eachSpan(td ptrace.Traces, change func(ptrace.Span)) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				change(s)
			}
		}
	}
}

func TestProcessorConformance(t *testing.T) {
	addAttribute := func(td ptrace.Traces) {
		eachSpan(td, func(s ptrace.Span) { s.Attributes().PutStr("cluster", "c1") })
	}
	t.Run("attributes", func(t *testing.T) {
		pipelinetest.Processor(t, otelcol.Processor(attributesprocessor.NewFactory()), pipelinetest.ProcessorOptions{
			Config: `actions: [{key: cluster, value: c1, action: upsert}]`, Expect: addAttribute,
		})
	})
	t.Run("transform", func(t *testing.T) {
		pipelinetest.Processor(t, otelcol.Processor(transformprocessor.NewFactory()), pipelinetest.ProcessorOptions{
			Config: `trace_statements: ['set(span.attributes["cluster"], "c1")']`, Expect: addAttribute,
		})
	})
	t.Run("resource", func(t *testing.T) {
		pipelinetest.Processor(t, otelcol.Processor(resourceprocessor.NewFactory()), pipelinetest.ProcessorOptions{
			Config: `attributes: [{key: cluster, value: c1, action: upsert}]`,
			Expect: func(td ptrace.Traces) {
				for _, rs := range td.ResourceSpans().All() {
					rs.Resource().Attributes().PutStr("cluster", "c1")
				}
			},
		})
	})
	t.Run("redaction", func(t *testing.T) { // one that changes nothing here
		pipelinetest.Processor(t, otelcol.Processor(redactionprocessor.NewFactory()), pipelinetest.ProcessorOptions{
			Config: `{allow_all_keys: true, blocked_values: ["no such value"]}`,
		})
	})
	t.Run("filter", func(t *testing.T) {
		pipelinetest.Processor(t, otelcol.Processor(filterprocessor.NewFactory()), pipelinetest.ProcessorOptions{
			Config: `traces: {span: ['name == "no such name"']}`,
		})
	})
}

// hops are the next hops of the exporters of a test, by number.
type hops struct {
	mu   sync.Mutex
	next []pipeline.Consumer
}

func (h *hops) add(next pipeline.Consumer) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = append(h.next, next)
	return len(h.next) - 1
}

func (h *hops) get(i int) pipeline.Consumer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next[i]
}

type hopConfig struct {
	Hop int `mapstructure:"hop"`
}

// hopExporter is an exporter of the Collector that passes spans to a hop.
type hopExporter struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.Traces
}

func hopFactory(h *hops, mutates bool) exporter.Factory {
	return exporter.NewFactory(component.MustNewType("hop"), func() component.Config { return &hopConfig{} },
		exporter.WithTraces(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Traces, error) {
			send := func(ctx context.Context, td ptrace.Traces) error {
				own := ptrace.NewTraces()
				td.CopyTo(own)
				if mutates {
					eachSpan(td, func(s ptrace.Span) { s.SetName("overwritten") })
				}
				err := h.get(c.(*hopConfig).Hop).Consume(ctx, otlpdata.FromTraces(own, otlpdata.Meta{}))
				if err != nil && pipeline.IsPermanent(err) {
					return consumererror.NewPermanent(err)
				}
				return err
			}
			next, err := consumer.NewTraces(send, consumer.WithCapabilities(consumer.Capabilities{MutatesData: mutates}))
			return &hopExporter{Traces: next}, err
		}, component.StabilityLevelStable))
}

func TestExporterConformance(t *testing.T) {
	for _, mutates := range []bool{false, true} {
		t.Run(fmt.Sprintf("mutates=%v", mutates), func(t *testing.T) {
			h := &hops{}
			pipelinetest.Exporter(t, otelcol.Exporter(hopFactory(h, mutates)), pipelinetest.ExporterOptions{
				Config:   func(_ testing.TB, next pipeline.Consumer) string { return fmt.Sprintf("hop: %d", h.add(next)) },
				NoTenant: true,
			})
		})
	}
}
