package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// program is a running configuration of fakes.
type program struct {
	*app.App
	log  *bytes.Buffer // complete once stopped
	stop func() error
}

func (w *world) start(t *testing.T, yaml string, overrides ...app.Override) *program {
	t.Helper()
	return w.startWith(t, w.factories(), yaml, overrides...)
}

// startWith is start with factories of the test's own.
func (w *world) startWith(t *testing.T, factories []pipeline.Factory, yaml string, overrides ...app.Override) *program {
	t.Helper()
	config, err := w.loadWith(factories, yaml, overrides...)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{log: &bytes.Buffer{}}
	if p.App, err = app.New(config, app.Options{Log: p.log}); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stop = sync.OnceValue(func() error { return p.Stop(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// logged stops the program and returns the log lines with a message.
func (p *program) logged(t *testing.T, msg string) []map[string]any {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	return p.lines(t, msg)
}

// lines returns the log lines with a message, of a program that has stopped.
func (p *program) lines(t *testing.T, msg string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(p.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if fields["msg"] == msg {
			found = append(found, fields)
		}
	}
	return found
}

// metrics returns the lines of /metrics that begin with a prefix.
func (p *program) metrics(t *testing.T, prefix string) []string {
	t.Helper()
	families, err := p.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return slices.DeleteFunc(strings.Split(text.String(), "\n"), func(l string) bool { return !strings.HasPrefix(l, prefix) })
}

// counts returns the spans of tracing_pipeline_spans_total by "kind component outcome".
func (p *program) counts(t *testing.T) map[string]int {
	t.Helper()
	families, err := p.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, f := range families {
		if f.GetName() != "tracing_pipeline_spans_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			l := map[string]string{}
			for _, p := range m.GetLabel() {
				l[p.GetName()] = p.GetValue()
			}
			counts[l["kind"]+" "+l["component"]+" "+l["outcome"]] += int(m.GetCounter().GetValue())
		}
	}
	return counts
}

// spans makes a batch: for each service one root with so many children.
func spans(children int, services ...string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	for i, service := range services {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		ss := rs.ScopeSpans().AppendEmpty().Spans()
		for j := range children + 1 {
			s := ss.AppendEmpty()
			s.SetTraceID(pcommon.TraceID{1, byte(i)})
			s.SetSpanID(pcommon.SpanID{2, byte(i), byte(j)})
			if j > 0 {
				s.SetParentSpanID(pcommon.SpanID{2, byte(i), 0})
			}
		}
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{Format: "otlp", Transport: "grpc"})
}

const branching = `
receivers: {source: , source/2: }
processors: {step: }
exporters: {sink: , sink/2: , hop: }
service:
  pipelines:
    traces: {receivers: [source, source/2], exporters: [sink, hop]}
    traces/b: {receivers: [source], processors: [step], exporters: [sink/2, hop]}
`

// outcome is what an exporter answers the n-th time, at random but the same in every run.
func outcome(n uint64, spans int) error {
	r := rand.New(rand.NewPCG(n, 7))
	switch r.IntN(7) {
	case 0:
		return pipeline.Permanent(errors.New("poison"))
	case 1:
		return pipeline.Overloaded(pipeline.ErrOverBudget, time.Minute)
	case 2:
		return errors.New("plain")
	case 3:
		return fmt.Errorf("storing: %w", &pipeline.Partial{Rejected: r.IntN(2*spans+2) - 1, Err: pipeline.Permanent(errors.New("half"))})
	case 4:
		panic("bug")
	case 5:
		return fmt.Errorf("sending: %w", context.Canceled)
	}
	return nil
}

// Whatever becomes of spans, each is counted once: receivers say accepted or refused of all they were offered, exporters sent or refused.
func TestEverySpanIsAccountedFor(t *testing.T) {
	w := newWorld()
	var calls atomic.Uint64
	w.take = func(_ string, b *otlpdata.Batch) error { return outcome(calls.Add(1), b.Len()) }
	p := w.start(t, branching)
	var wg sync.WaitGroup
	var offered, refused atomic.Int64
	for g := range 64 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20 {
				b := spans(r.IntN(5), "shop", "bank")
				err := w.source[[]string{"source", "source/2"}[g%2]].Consume(t.Context(), b)
				var partial *pipeline.Partial
				offered.Add(int64(b.Len()))
				switch {
				case errors.As(err, &partial):
					refused.Add(int64(max(0, min(partial.Rejected, b.Len()))))
				case err != nil:
					refused.Add(int64(b.Len()))
				}
			}
		})
	}
	wg.Wait()
	c := p.counts(t)
	for _, r := range []string{"source", "source/2"} {
		if in, out := c["receiver "+r+" received"], c["receiver "+r+" accepted"]+c["receiver "+r+" refused"]; in == 0 || in != out {
			t.Errorf("receiver %s: received %d, accepted + refused %d", r, in, out)
		}
	}
	for _, e := range []string{"sink", "sink/2", "hop"} {
		in, sent, no := c["exporter "+e+" in"], c["exporter "+e+" sent"], c["exporter "+e+" refused"]
		if sent == 0 || no == 0 || in != sent+no {
			t.Errorf("exporter %s: in %d, sent %d, refused %d", e, in, sent, no)
		}
	}
	if got := c["receiver source received"] + c["receiver source/2 received"]; int64(got) != offered.Load() {
		t.Errorf("received %d, offered were %d", got, offered.Load())
	}
	if got := c["receiver source refused"] + c["receiver source/2 refused"]; int64(got) != refused.Load() {
		t.Errorf("refused %d, clients were told so of %d", got, refused.Load())
	}
	if c["exporter sink in"] != int(offered.Load()) || c["exporter sink/2 in"] != c["receiver source received"] {
		t.Errorf("not all branches got all: %v", c)
	}

	last := p.logged(t, "final accounting of spans")
	if len(last) != 1 || last[0]["balanced"] != true || len(last[0]["components"].([]any)) != 5 {
		t.Fatalf("accounting: %v", last)
	}
	first := last[0]["components"].([]any)[0].(map[string]any)
	if first["component"] != "source" || int(first["received"].(float64)) != c["receiver source received"] {
		t.Errorf("accounting begins with %v", first)
	}
}

// The final accounting needs no help of components, and is the last thing but for observers.
func TestAccountingSurvivesBrokenMetrics(t *testing.T) {
	w := newWorld()
	p := w.start(t, strings.Replace(small, "\nservice: {", "\nextensions: {watch: , hub: }\nservice: {extensions: [watch, hub], ", 1))
	w.set["hub"].Metrics.MustRegister(brokenCollector{})
	if _, err := p.Gatherer().Gather(); err == nil {
		t.Fatal("the collector is not broken")
	}
	atStop := 0
	w.stopping = func(context.Context) { atStop = strings.Count(p.log.String(), "final accounting") }
	if got := p.logged(t, "final accounting of spans"); len(got) != 1 || got[0]["balanced"] != true {
		t.Errorf("accounting: %v", got)
	}
	if atStop != 1 {
		t.Error("the observer was stopped before the accounting")
	}
}

// Why spans were refused is a label.
func TestReasons(t *testing.T) {
	w := newWorld()
	p := w.start(t, small)
	for _, err := range []error{
		pipeline.Permanent(errors.New("x")), pipeline.Overloaded(errors.New("x"), 0), errors.New("x"), context.Canceled, context.DeadlineExceeded,
		pipeline.ErrStopping, pipeline.Overloaded(pipeline.ErrOverBudget, 0), &otlpdata.LimitError{TooLarge: true}, nil,
	} {
		w.take = func(string, *otlpdata.Batch) error { return err }
		if got := w.source["source"].Consume(t.Context(), spans(0, "a")); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	w.take = func(string, *otlpdata.Batch) error { panic("x") }
	if err := w.source["source"].Consume(t.Context(), spans(0, "a")); err == nil {
		t.Error("a panic is a success")
	}
	var got []string
	for _, l := range p.metrics(t, `tracing_pipeline_spans_total{component="sink",kind="exporter",`) {
		got = append(got, strings.TrimPrefix(l, `tracing_pipeline_spans_total{component="sink",kind="exporter",outcome=`))
	}
	want := []string{`"in",reason=""} 10`, `"refused",reason="bug"} 1`, `"refused",reason="canceled"} 1`, `"refused",reason="deadline"} 1`,
		`"refused",reason="over_budget"} 1`, `"refused",reason="overloaded"} 1`, `"refused",reason="permanent"} 1`,
		`"refused",reason="stopping"} 1`, `"refused",reason="too_large"} 1`, `"refused",reason="unavailable"} 1`, `"sent",reason=""} 1`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", lines(got...), lines(want...))
	}
}

// The two debug lines are the interface's, with its fields.
func TestDebugLines(t *testing.T) {
	debug := app.Override{Flag: "--log-level debug", Path: []string{"service", "telemetry", "logs", "level"}, Value: "debug"}
	w := newWorld()
	p := w.start(t, branching, debug)
	if err := w.source["source/2"].Consume(t.Context(), spans(1, "shop")); err != nil {
		t.Fatal(err)
	}
	w.take = func(string, *otlpdata.Batch) error { return errors.New("no") }
	if err := w.source["source/2"].Consume(t.Context(), spans(1, "shop")); err == nil {
		t.Fatal("no error")
	}
	check := func(msg string, want ...map[string]any) {
		t.Helper()
		got := p.logged(t, msg)
		if len(got) != len(want) {
			t.Fatalf("%d lines %q: %v", len(got), msg, got)
		}
		for i, line := range got {
			if ts, ok := line["ts"].(float64); !ok || ts < 1e9 || !strings.Contains(fmt.Sprint(line["caller"]), "edge.go:") {
				t.Errorf("%q: ts %v, caller %v", msg, line["ts"], line["caller"])
			}
			delete(line, "ts")
			delete(line, "caller")
			want[i]["level"], want[i]["msg"] = "debug", msg
			if !maps.Equal(line, want[i]) {
				t.Errorf("got  %v\nwant %v", line, want[i])
			}
		}
	}
	check("Span batch processed by the collector.",
		map[string]any{"component": "source/2", "kind": "receiver", "ok": true},
		map[string]any{"component": "source/2", "kind": "receiver", "ok": false, "error": "no"})
	trace := "01000000000000000000000000000000"
	check("Span written to the storage by the collector",
		map[string]any{"component": "sink", "kind": "exporter", "trace-id": trace, "span-id": "0200000000000000"},
		map[string]any{"component": "sink", "kind": "exporter", "trace-id": trace, "span-id": "0200010000000000"})
}

// At the usual level a span costs the edges nothing: the allocations of a batch do not depend on its size.
func TestDebugLinesCostNothingWhenOff(t *testing.T) {
	w := newWorld()
	w.start(t, small)
	allocs := func(children int) float64 {
		b := spans(children, "shop")
		return testing.AllocsPerRun(100, func() {
			if err := w.source["source"].Consume(t.Context(), b); err != nil {
				t.Error(err)
			}
		})
	}
	if one, many := allocs(0), allocs(5000); one != many || many > 2 {
		t.Errorf("%v allocations for one span, %v for many", one, many)
	}
}

// A component that is not well says so once, until it is well again.
func TestReport(t *testing.T) {
	w := newWorld()
	p := w.start(t, small)
	report := w.set["sink"].Report
	report(nil)
	report(errors.New("disk full"))
	report(errors.New("disk full"))
	report(errors.New("disk gone"))
	report(nil)
	report(nil)
	var got []string
	for _, l := range p.logged(t, "component is degraded") {
		got = append(got, fmt.Sprint(l["component"], ": ", l["error"], " ", l["level"]))
	}
	if want := []string{"sink: disk full warn", "sink: disk gone warn"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if well := p.logged(t, "component recovered"); len(well) != 1 {
		t.Errorf("healthy again: %v", well)
	}
}

// At the start the log says what an acknowledgement means.
func TestPipelineMeaning(t *testing.T) {
	p := newWorld().start(t, branching)
	var got []string
	for _, l := range p.logged(t, "pipeline ready") {
		got = append(got, fmt.Sprint(l["pipeline"], l["receivers"], l["processors"], l["exporters"], l["acknowledged-spans-are"]))
	}
	want := []string{"traces[source source/2] [] [sink hop]sink: in memory, hop: sent",
		"traces/b[source] [step] [sink/2 hop]sink/2: in memory, hop: sent"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
