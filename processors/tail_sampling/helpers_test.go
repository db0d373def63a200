package tailsampling_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/processors/groupbytrace"
	tailsampling "github.com/tracing-backend/tracing/processors/tail_sampling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is the receiver source.
type source struct{}

func (source) Start(context.Context) error { return nil }

type noConfig struct{}

// traceKey identifies a trace of a tenant.
type traceKey struct {
	tenant string
	id     otelcol.TraceID
}

// program runs source -> processors -> sink.
type program struct {
	*app.App
	log  bytes.Buffer
	next pipeline.Consumer // of source

	mu     sync.Mutex
	stored map[traceKey]int              // spans by trace
	fail   func(b *otlpdata.Batch) error // answers of sink; nil: accepts everything
	batch  map[traceKey]otlpdata.Meta    // of the latest batch with the trace
	bad    []string                      // spans with another tenant than their batch
}

// sink is the exporter sink.
type sink struct{ p *program }

// Consume passes b to the program.
func (s sink) Consume(_ context.Context, b *otlpdata.Batch) error { return s.p.store(b) }

func (p *program) store(b *otlpdata.Batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		if err := p.fail(b); err != nil {
			return err
		}
	}
	td, err := b.Traces()
	if err != nil {
		return pipeline.Permanent(err)
	}
	each(td, func(s ptrace.Span) {
		key := traceKey{b.Meta().Tenant, s.TraceID()}
		p.stored[key]++
		p.batch[key] = b.Meta()
		if t, _ := s.Attributes().Get("tenant"); t.AsString() != key.tenant {
			p.bad = append(p.bad, fmt.Sprintf("a span of tenant %q was stored for %q", t.AsString(), key.tenant))
		}
	})
	return nil
}

func each(td ptrace.Traces, visit func(ptrace.Span)) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				visit(s)
			}
		}
	}
}

// load loads a configuration with one processor.
func (p *program) load(processor, settings, limits string) (*app.Config, error) {
	none := func() noConfig { return noConfig{} }
	return app.Load(app.LoadOptions{
		Factories: []pipeline.Factory{tailsampling.Factory(), groupbytrace.Factory(),
			pipeline.Receiver("source", none, func(_ pipeline.Settings, _ noConfig, next pipeline.Consumer) (source, error) {
				p.next = next
				return source{}, nil
			}),
			pipeline.Exporter("sink", none, func(pipeline.Settings, noConfig) (sink, error) { return sink{p}, nil }),
		},
		Files: []string{"c.yaml"},
		ReadFile: func(string) ([]byte, error) {
			return fmt.Appendf(nil, "receivers: {source: }\nprocessors: {%s: {%s}}\nexporters: {sink: }\nservice: {limits: {%s}, "+
				"pipelines: {traces: {receivers: [source], processors: [%s], exporters: [sink]}}}\n", processor, settings, limits, processor), nil
		},
	})
}

// start starts a program. stop stops it within a time.
func start(t *testing.T, processor, settings, limits string) (p *program, stop func(within time.Duration) error) {
	t.Helper()
	p = &program{stored: map[traceKey]int{}, batch: map[traceKey]otlpdata.Meta{}}
	c, err := p.load(processor, settings, limits)
	if err != nil {
		t.Fatal(err)
	}
	if p.App, err = app.New(c, app.Options{Log: &p.log}); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
		defer cancel()
		return p.Stop(ctx)
	}
}

// send sends spans of a trace, with the given attribute.
func (p *program) send(t *testing.T, tenant string, trace, spans int, keep bool) error {
	t.Helper()
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for range spans {
		s := ss.AppendEmpty()
		s.SetTraceID(idOf(trace))
		s.SetName("op")
		s.Attributes().PutStr("tenant", tenant)
		s.Attributes().PutBool("keep", keep)
	}
	return p.next.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{Tenant: tenant, Format: "zipkin", Transport: "udp"}))
}

func idOf(trace int) otelcol.TraceID {
	return otelcol.TraceID{1, 15: byte(trace), 14: byte(trace >> 8), 13: byte(trace >> 16)}
}

// counts returns the counters of the processor by outcome and, for dropped spans, reason.
func (p *program) counts(t *testing.T) map[string]int {
	t.Helper()
	families, err := p.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			l := labels(m)
			switch {
			case f.GetName() == "tracing_held_spans":
				counts["held"] += int(m.GetGauge().GetValue())
			case f.GetName() == "tracing_held_bytes":
				counts["held bytes"] = int(m.GetGauge().GetValue())
			case f.GetName() == "tracing_pipeline_spans_total" && l["kind"] == "processor" && m.GetCounter().GetValue() > 0:
				counts[strings.TrimSpace(l["outcome"]+" "+l["reason"])] += int(m.GetCounter().GetValue())
			}
		}
	}
	return counts
}

func labels(m *dto.Metric) map[string]string {
	l := map[string]string{}
	for _, p := range m.GetLabel() {
		l[p.GetName()] = p.GetValue()
	}
	return l
}

// check checks counts, written `in:1 sent:1 dropped_policy:2`.
func (p *program) check(t *testing.T, want string) {
	t.Helper()
	got := p.counts(t)
	for _, f := range strings.Fields(want) {
		name, n, _ := strings.Cut(f, ":")
		if fmt.Sprint(got[strings.Replace(name, "_", " ", 1)]) != n {
			t.Errorf("counted %v, want %s", got, want)
			return
		}
	}
}

// checkBalanced checks the final accounting. The program must have stopped.
func (p *program) checkBalanced(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(p.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == "final accounting of spans" && fields["balanced"] != true {
			t.Errorf("not balanced: %s", line)
		}
	}
	for _, b := range p.bad {
		t.Error(b)
	}
}
