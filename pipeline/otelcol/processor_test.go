package otelcol_test

import (
	"context"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// sink records the batches that it gets and returns err.
type sink struct {
	got []*otlpdata.Batch
	err error
}

func (s *sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.got = append(s.got, b)
	return s.err
}

// build builds and starts a component with the given keys.
func build(t *testing.T, f pipeline.Factory, keys map[string]any, next pipeline.Consumer) pipeline.Consumer {
	t.Helper()
	set := pipeline.Settings{ID: pipeline.ID{Type: f.Type()}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry()}
	return buildWith(t, f, set, keys, next)
}

func buildWith(t *testing.T, f pipeline.Factory, set pipeline.Settings, keys map[string]any, next pipeline.Consumer) pipeline.Consumer {
	t.Helper()
	c := f.Defaults()
	if err := c.(yamltree.TreeConfig).UnmarshalTree(keys, nil); err != nil {
		t.Fatal(err)
	}
	p, err := f.Build(set, c, next)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.(pipeline.Starter).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.(pipeline.Stopper).Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p.(pipeline.Consumer)
}

func spans(names ...string) ptrace.Traces {
	td := ptrace.NewTraces()
	scope := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for i, n := range names {
		s := scope.Spans().AppendEmpty()
		s.SetName(n)
		s.SetTraceID([16]byte{1, byte(i)})
		s.SetSpanID([8]byte{1})
	}
	return td
}

// The spans that arrive are changed as configured; the batch that was passed in is not, and its
// origin travels with the spans.
func TestAttributes(t *testing.T) {
	next := &sink{}
	p := build(t, otelcol.Processor(attributesprocessor.NewFactory()), map[string]any{"actions": []any{
		map[string]any{"key": "n", "value": 5, "action": "insert"},
	}}, next)
	in := otlpdata.FromTraces(spans("a"), otlpdata.Meta{Tenant: "acme", Format: "otlp"})
	if err := p.Consume(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if len(next.got) != 1 || next.got[0].Meta() != in.Meta() {
		t.Fatalf("got %v", next.got)
	}
	value := func(b *otlpdata.Batch) int64 {
		td, err := b.Traces()
		if err != nil {
			t.Fatal(err)
		}
		v, _ := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("n")
		return v.Int()
	}
	if in, out := value(in), value(next.got[0]); in != 0 || out != 5 {
		t.Errorf("before %d, after %d", in, out)
	}
}

// Components find the headers that the receiver keeps.
func TestFromContext(t *testing.T) {
	next := &sink{}
	p := build(t, otelcol.Processor(attributesprocessor.NewFactory()), map[string]any{"actions": []any{
		map[string]any{"key": "org", "from_context": "metadata.X-Org", "action": "insert"},
	}}, next)
	headers := otlpdata.NewMetadata(map[string][]string{"x-org": {"acme"}})
	for _, meta := range []otlpdata.Meta{{Metadata: headers}, {}} {
		if err := p.Consume(t.Context(), otlpdata.FromTraces(spans("a"), meta)); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"acme", ""} {
		td, err := next.got[i].Traces()
		if err != nil {
			t.Fatal(err)
		}
		attributes := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
		if org, found := attributes.Get("org"); org.Str() != want || found != (want != "") {
			t.Errorf("org is %q, want %q", org.Str(), want)
		}
	}
}
