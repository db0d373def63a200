package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// outcome returns the n-th answer of an exporter: pseudo-random, the same in every run.
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

// Every span is counted once: by receivers as accepted or refused, by exporters as sent or refused.
func TestEverySpanIsAccountedFor(t *testing.T) {
	w := hosttest.NewWorld()
	var calls atomic.Uint64
	w.Accept = func(_ string, b *otlpdata.Batch) error { return outcome(calls.Add(1), b.Len()) }
	p := w.Start(t, hosttest.Branching)
	var wg sync.WaitGroup
	var offered, refused atomic.Int64
	for g := range 64 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20 {
				b := hosttest.Spans(r.IntN(5), "shop", "bank")
				err := w.Source[[]string{"source", "source/2"}[g%2]].Consume(t.Context(), b)
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
	c := p.Counts(t)
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
	if in := c["processor step in"]; in != c["processor step sent"]+c["processor step refused"] || in != c["receiver source received"] {
		t.Errorf("processor step: %v", c)
	}
	if got := c["receiver source received"] + c["receiver source/2 received"]; int64(got) != offered.Load() {
		t.Errorf("received %d, offered %d", got, offered.Load())
	}
	if got := c["receiver source refused"] + c["receiver source/2 refused"]; int64(got) != refused.Load() {
		t.Errorf("refused %d, clients saw %d refused", got, refused.Load())
	}
	if c["exporter sink in"] != int(offered.Load()) || c["exporter sink/2 in"] != c["receiver source received"] {
		t.Errorf("not all branches got all spans: %v", c)
	}

	last := p.Logged(t, "final accounting of spans")
	if len(last) != 1 || last[0]["balanced"] != true || len(last[0]["components"].([]any)) != 6 {
		t.Fatalf("accounting: %v", last)
	}
	first := last[0]["components"].([]any)[0].(map[string]any)
	if first["component"] != "source" || int(first["received"].(float64)) != c["receiver source received"] {
		t.Errorf("accounting begins with %v", first)
	}
}

// The final accounting does not depend on components, and only observers stop after it.
func TestAccountingSurvivesBrokenMetrics(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, strings.Replace(hosttest.Small, "\nservice: {", "\nextensions: {watch: , hub: }\nservice: {extensions: [watch, hub], ", 1))
	w.Settings["hub"].Metrics.MustRegister(hosttest.BrokenCollector{})
	if _, err := p.Gatherer().Gather(); err == nil {
		t.Fatal("the collector is not broken")
	}
	atStop := 0
	w.OnStop = func(context.Context) { atStop = strings.Count(p.Log.String(), "final accounting") }
	if got := p.Logged(t, "final accounting of spans"); len(got) != 1 || got[0]["balanced"] != true {
		t.Errorf("accounting: %v", got)
	}
	if atStop != 1 {
		t.Error("the observer was stopped before the accounting")
	}
}

// The label reason has the class of the error.
func TestReasons(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Small)
	for _, err := range []error{
		pipeline.Permanent(errors.New("x")), pipeline.Overloaded(errors.New("x"), 0), errors.New("x"), context.Canceled, context.DeadlineExceeded,
		pipeline.ErrStopping, pipeline.Overloaded(pipeline.ErrOverBudget, 0), &otlpdata.LimitError{TooLarge: true}, nil,
	} {
		w.Accept = func(string, *otlpdata.Batch) error { return err }
		if got := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "a")); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	w.Accept = func(string, *otlpdata.Batch) error { panic("x") }
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "a")); err == nil {
		t.Error("no error after a panic")
	}
	var got []string
	for _, l := range p.Metrics(t, `tracing_pipeline_spans_total{component="sink",kind="exporter",`) {
		got = append(got, strings.TrimPrefix(l, `tracing_pipeline_spans_total{component="sink",kind="exporter",outcome=`))
	}
	want := []string{`"in",reason=""} 10`, `"refused",reason="bug"} 1`, `"refused",reason="canceled"} 1`, `"refused",reason="deadline"} 1`,
		`"refused",reason="over_budget"} 1`, `"refused",reason="overloaded"} 1`, `"refused",reason="permanent"} 1`,
		`"refused",reason="stopping"} 1`, `"refused",reason="too_large"} 1`, `"refused",reason="unavailable"} 1`, `"sent",reason=""} 1`}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", hosttest.Lines(got...), hosttest.Lines(want...))
	}
}

// The two debug lines have the messages and fields of the public interface.
func TestDebugLines(t *testing.T) {
	debug := app.Override{Flag: "--log-level debug", Path: []string{"service", "telemetry", "logs", "level"}, Value: "debug"}
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Branching, debug)
	if err := w.Source["source/2"].Consume(t.Context(), hosttest.Spans(1, "shop")); err != nil {
		t.Fatal(err)
	}
	w.Accept = func(string, *otlpdata.Batch) error { return errors.New("no") }
	if err := w.Source["source/2"].Consume(t.Context(), hosttest.Spans(1, "shop")); err == nil {
		t.Fatal("no error")
	}
	check := func(msg string, want ...map[string]any) {
		t.Helper()
		got := p.Logged(t, msg)
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

// At the default log level, the allocations of an edge do not depend on the number of spans.
func TestDebugLinesCostNothingWhenOff(t *testing.T) {
	w := hosttest.NewWorld()
	w.Start(t, hosttest.Small)
	allocs := func(children int) float64 {
		b := hosttest.Spans(children, "shop")
		return testing.AllocsPerRun(100, func() {
			if err := w.Source["source"].Consume(t.Context(), b); err != nil {
				t.Error(err)
			}
		})
	}
	if one, many := allocs(0), allocs(5000); one != many || many > 6 {
		t.Errorf("%v allocations for one span, %v for many", one, many)
	}
}

// A degraded component is logged once, and a reason that changes at most once a minute.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		p := w.Start(t, hosttest.Small)
		report := w.Settings["sink"].Report
		report(nil)
		report(errors.New("disk full"))
		report(errors.New("disk full"))
		for i := range 50 {
			report(fmt.Errorf("disk has %d bytes", i))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		report(nil)
		report(nil)
		report(errors.New("disk gone"))
		report(nil)
		time.Sleep(time.Hour)
		var got []string
		for _, l := range append(p.Logged(t, "component is degraded"), p.Logged(t, "component recovered")...) {
			got = append(got, fmt.Sprint(l["component"], ": ", l["error"], " ", l["level"], " ", l["not-logged"]))
		}
		want := []string{"sink: disk full warn <nil>", "sink: disk has 49 bytes warn 49", "sink: disk gone warn <nil>",
			"sink: <nil> info <nil>", "sink: <nil> info <nil>"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// The log has the durability of each pipeline after the start.
func TestPipelineMeaning(t *testing.T) {
	p := hosttest.NewWorld().Start(t, hosttest.Branching)
	var got []string
	for _, l := range p.Logged(t, "pipeline ready") {
		got = append(got, fmt.Sprint(l["pipeline"], l["receivers"], l["processors"], l["exporters"], l["acknowledged-spans-are"]))
	}
	want := []string{"traces[source source/2] [] [sink hop]sink: in memory, hop: sent",
		"traces/b[source] [step] [sink/2 hop]sink/2: in memory, hop: sent"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
