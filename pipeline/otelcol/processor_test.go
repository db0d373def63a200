package otelcol_test

import (
	"context"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/sampling"
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

// A processor of log records passes on what its component keeps and counts the rest as dropped.
func TestLogs(t *testing.T) {
	ld := plog.NewLogs()
	list := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, text := range []string{"a", "b", "b"} {
		list.AppendEmpty().Body().SetStr(text)
	}
	b, err := otlpdata.FromLogs(ld, otlpdata.Meta{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	factory := otelcol.Processor(filterprocessor.NewFactory(), otelcol.Explained(
		func(component.Config, sampling.TraceID) sampling.Stage { return sampling.Stage{} }))
	if !factory.TakesLogs() {
		t.Error("the factory does not take logs")
	}
	f := pipelinetest.NewFixture("filter", 1<<20)
	f.Settings.Signal = otlpdata.SignalLogs
	next := &sink{}
	p := buildWith(t, factory, f.Settings, map[string]any{"logs": map[string]any{"log_record": []any{`body == "b"`}}}, next)
	dropped, err := p.(pipeline.Dropper).ConsumeDropping(t.Context(), b)
	if err != nil || dropped != 2 || len(next.got) != 1 || next.got[0].Len() != 1 ||
		next.got[0].Meta() != (otlpdata.Meta{Signal: otlpdata.SignalLogs, Tenant: "acme"}) {
		t.Errorf("dropped %d, passed on %v, %v", dropped, next.got, err)
	}
	if before, err := b.Logs(); err != nil || before.LogRecordCount() != 3 {
		t.Errorf("the batch was changed: %v", err)
	}
	if _, ok := p.(sampling.TraceExplainer).ExplainTrace(sampling.TraceID{}); ok {
		t.Error("a processor of log records explains what it does with traces")
	}
}
