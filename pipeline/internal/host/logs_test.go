package host_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// withLogs returns the fakes. All but the connector can be in pipelines of logs.
func withLogs(w *hosttest.World) []pipeline.Factory {
	factories := w.Factories()
	for i, f := range factories {
		if f.Kind() != pipeline.KindConnector {
			factories[i] = f.Logs()
		}
	}
	return factories
}

// records returns a batch of log records.
func records(t *testing.T, n int) *otlpdata.Batch {
	t.Helper()
	ld := plog.NewLogs()
	list := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range n {
		list.AppendEmpty().Body().SetStr("text")
	}
	b, err := otlpdata.FromLogs(ld, otlpdata.Meta{Format: "otlp", Transport: "grpc"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const bothSignals = `
receivers: {source: }
processors: {step: }
exporters: {sink: , hop: }
service:
  pipelines:
    traces: {receivers: [source], processors: [step], exporters: [sink, hop]}
    logs: {receivers: [source], processors: [step], exporters: [hop]}
`

// got counts the items that exporters get, by "id signal".
type got struct {
	mu    sync.Mutex
	items map[string]int
}

func (g *got) take() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	items := g.items
	g.items = nil
	return items
}

func (g *got) accept(id string, b *otlpdata.Batch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.items == nil {
		g.items = map[string]int{}
	}
	g.items[id+" "+b.Meta().Signal.String()] += b.Len()
	return nil
}

// Spans and log records of one receiver take their own ways and are counted apart.
func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, arrived := hosttest.NewWorld(), &got{}
		w.Accept = arrived.accept
		p := w.StartWith(t, withLogs(w), bothSignals)
		source := w.Source["source"]
		for _, b := range []*otlpdata.Batch{hosttest.Spans(4, "a"), records(t, 3)} {
			if err := source.Consume(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if items := arrived.take(); !maps.Equal(items, map[string]int{"sink traces": 5, "hop traces": 5, "hop logs": 3}) {
			t.Errorf("arrived: %v", items)
		}
		w.Accept = func(string, *otlpdata.Batch) error { return pipeline.Permanent(errors.New("bad")) }
		if err := source.Consume(t.Context(), records(t, 2)); err == nil {
			t.Error("no error")
		}
		want := []string{
			`tracing_pipeline_log_records_total{component="hop",kind="exporter",outcome="in",reason=""} 5`,
			`tracing_pipeline_log_records_total{component="hop",kind="exporter",outcome="refused",reason="permanent"} 2`,
			`tracing_pipeline_log_records_total{component="hop",kind="exporter",outcome="sent",reason=""} 3`,
			`tracing_pipeline_log_records_total{component="source",kind="receiver",outcome="accepted",reason=""} 3`,
			`tracing_pipeline_log_records_total{component="source",kind="receiver",outcome="received",reason=""} 5`,
			`tracing_pipeline_log_records_total{component="source",kind="receiver",outcome="refused",reason="permanent"} 2`,
			`tracing_pipeline_log_records_total{component="step",kind="processor",outcome="in",reason=""} 5`,
			`tracing_pipeline_log_records_total{component="step",kind="processor",outcome="refused",reason="permanent"} 2`,
			`tracing_pipeline_log_records_total{component="step",kind="processor",outcome="sent",reason=""} 3`,
		}
		if lines := p.Metrics(t, "tracing_pipeline_log_records_total{"); !slices.Equal(lines, want) {
			t.Errorf("counted\n%s", strings.Join(lines, "\n"))
		}
		if n := p.Counts(t)["receiver source received"]; n != 5 {
			t.Errorf("%d spans were received", n)
		}
		d := p.Details(t.Context())
		if len(d.Balances) != 2 || equation(d.Balances[0]) != "10 = 5 + 5 + 0 + 0 + 0 + 0, balanced" ||
			equation(d.Balances[1]) != "5 = 0 + 3 + 2 + 0 + 0 + 0, balanced" {
			t.Errorf("balances %+v", d.Balances)
		}
		if c := d.Report.Pipelines[1].Components; len(c) != 3 || c[2].Component != "hop (log records)" || c[2].State != status.OK {
			t.Errorf("components %+v", c)
		}
		if in := d.Intake.Receivers; len(in) != 1 || in[0].Received != 5 {
			t.Errorf("intake %+v", in)
		}
		var graph strings.Builder
		p.WriteDot(&graph)
		if !strings.Contains(graph.String(), `"processor step in logs" -> "exporter hop (log records)" [label="logs"]`) {
			t.Error(graph.String())
		}
		if err := p.End(); err != nil {
			t.Error(err)
		}
		p.CheckBalanced(t)
	})
}

// A receiver takes log records while a pipeline of logs has it. Exporters that only get log records
// are not built for spans.
func TestReloadOfLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, arrived := hosttest.NewWorld(), &got{}
		w.Accept = arrived.accept
		factories := withLogs(w)
		const onlyLogs = "receivers: {source: }\nexporters: {hop: }\n" +
			"service: {pipelines: {logs/a: {receivers: [source], exporters: [hop]}}}"
		const traces = "receivers: {source: }\nexporters: {sink: }\nservice: {pipelines: {traces: {receivers: [source], exporters: [sink]}}}"
		p := w.StartWith(t, factories, traces)
		source := w.Source["source"]
		takes := func() [2]bool {
			return [2]bool{pipeline.Takes(source, otlpdata.SignalTraces), pipeline.Takes(source, otlpdata.SignalLogs)}
		}
		if got := takes(); got != [2]bool{true, false} {
			t.Errorf("without a pipeline of logs: %v", got)
		}
		for _, c := range []struct {
			yaml   string
			builds int // of the exporter hop
			want   [2]bool
		}{
			{bothSignals, 2, [2]bool{true, true}},
			{onlyLogs, 0, [2]bool{false, true}},
			{traces, 0, [2]bool{true, false}},
		} {
			w.Events = nil
			if err := p.Reload(t.Context(), func() (*app.Config, error) { return w.LoadWith(factories, c.yaml) }); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := takes(); got != c.want {
				t.Errorf("%s\ntakes %v", c.yaml, got)
			}
			if builds := strings.Count(strings.Join(w.Events, " "), "build hop"); builds != c.builds {
				t.Errorf("%s\n%v", c.yaml, w.Events)
			}
			if c.want[otlpdata.SignalLogs] {
				if err := source.Consume(t.Context(), records(t, 1)); err != nil {
					t.Fatal(err)
				}
				if items := arrived.take(); items["hop logs"] != 1 {
					t.Errorf("%s\n%v", c.yaml, items)
				}
			}
		}
	})
}

// A batch that a receiver passes on after the last pipeline of its signal was removed is refused
// for a retry, and reaches no pipeline of the other signal.
func TestSignalThatIsNoLongerTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, arrived := hosttest.NewWorld(), &got{}
		w.Accept = arrived.accept
		factories := withLogs(w)
		p := w.StartWith(t, factories, bothSignals)
		source := w.Source["source"]
		const of = "receivers: {source: }\nexporters: {hop: }\nservice: {pipelines: {%s: {receivers: [source], exporters: [hop]}}}"
		for _, c := range []struct {
			pipeline    string
			taken, late *otlpdata.Batch
		}{
			{"traces", hosttest.OneSpan("a"), records(t, 1)},
			{"logs", records(t, 1), hosttest.OneSpan("a")},
		} {
			load := func() (*app.Config, error) { return w.LoadWith(factories, fmt.Sprintf(of, c.pipeline)) }
			if err := p.Reload(t.Context(), load); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := source.Consume(t.Context(), c.taken); err != nil {
				t.Error(err)
			}
			err := source.Consume(t.Context(), c.late)
			if err == nil || pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "since the configuration was reloaded") {
				t.Errorf("only %s: %v", c.pipeline, err)
			}
			if items := arrived.take(); !maps.Equal(items, map[string]int{"hop " + c.pipeline: 1}) {
				t.Errorf("only %s: %v arrived", c.pipeline, items)
			}
		}
		if err := p.End(); err != nil {
			t.Error(err)
		}
		p.CheckBalanced(t)
	})
}
