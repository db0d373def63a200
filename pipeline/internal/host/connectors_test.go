package host_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

const connected = `
receivers: {source: }
processors: {step: }
exporters: {sink: , sink/2: , sink/3: , hop: }
connectors: {split: , split/some: {pipelines: [[traces/c]]}}
service:
  pipelines:
    traces: {receivers: [source], exporters: [sink, split]}
    traces/a: {receivers: [split], processors: [step], exporters: [sink/2]}
    traces/b: {receivers: [split], exporters: [hop, split/some]}
    traces/c: {receivers: [split/some], exporters: [sink/3]}
    traces/d: {receivers: [split/some], exporters: [hop]}
`

// Spans are counted at a connector and behind it; the result combines all branches; and every
// pipeline has an equation that holds.
func TestConnectorAccounting(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, connected)
	w.Accept = func(id string, _ *otlpdata.Batch) error {
		if id == "sink/3" {
			return pipeline.Permanent(errors.New("no"))
		}
		return nil
	}
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(1, "shop")); !pipeline.IsPermanent(err) {
		t.Errorf("the result is %v, not the error of the branch that refuses", err)
	}
	w.Accept = nil
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(3, "shop")); err != nil {
		t.Error(err)
	}
	counts := p.Counts(t)
	for what, want := range map[string]int{"receiver source received": 6, "receiver source refused": 2, "exporter sink sent": 6,
		"connector split in": 6, "connector split sent": 4, "connector split refused": 2, "processor step sent": 6,
		"exporter sink/2 sent": 6, "connector split/some in": 6, "connector split/some sent": 4, "exporter sink/3 sent": 4,
		"exporter sink/3 refused": 2, "exporter hop in": 6} {
		if counts[what] != want {
			t.Errorf("%s: %d, want %d", what, counts[what], want)
		}
	}
	wantBranches := []string{
		`tracing_connector_spans_total{component="split",outcome="accepted",pipeline="traces/a"} 6`,
		`tracing_connector_spans_total{component="split",outcome="accepted",pipeline="traces/b"} 4`,
		`tracing_connector_spans_total{component="split",outcome="refused",pipeline="traces/a"} 0`,
		`tracing_connector_spans_total{component="split",outcome="refused",pipeline="traces/b"} 2`,
	}
	if got := p.Metrics(t, `tracing_connector_spans_total{component="split",`); !slices.Equal(got, wantBranches) {
		t.Errorf("branches:\n%s", strings.Join(got, "\n"))
	}
	verdicts := map[string]status.Verdict{}
	for _, b := range p.Details(t.Context()).Balances {
		verdicts[strings.Join(b.Pipelines, " ")] = b.Verdict
	}
	want := map[string]status.Verdict{"traces": status.Twice, "traces/a": status.Balanced, "traces/b traces/d": status.Twice,
		"traces/c": status.Balanced}
	if !maps.Equal(verdicts, want) {
		t.Errorf("equations %v", verdicts)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	p.CheckBalanced(t)
}

// The state, the durability and the graph of pipelines show a connector in both pipelines.
func TestConnectorsAreShown(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, connected)
	var got []string
	for _, s := range p.Status().Pipelines {
		for _, c := range s.Components {
			if c.Kind == "connector" {
				got = append(got, fmt.Sprintf("%s: %s as %s, %s", s.Pipeline, c.Component, c.Role, c.State))
			}
		}
	}
	want := []string{"traces: split as exporter, ok", "traces/a: split as receiver, ok", "traces/b: split as receiver, ok",
		"traces/b: split/some as exporter, ok", "traces/c: split/some as receiver, ok", "traces/d: split/some as receiver, ok"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	var text strings.Builder
	p.WriteGraph(&text)
	if want := "pipeline traces/b: split -> hop, split/some\n" +
		"  acknowledged spans are sent (hop), as in traces/c, traces/d (split/some)\n"; !strings.Contains(text.String(), want) {
		t.Errorf("graph %s", text.String())
	}
	text.Reset()
	p.WriteDot(&text)
	for _, want := range []string{`"exporter hop" [`, `"connector split" -> "processor step in traces/a" [label="traces/a"]`,
		`"receiver source" -> "connector split" [label="traces"]`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in %s", want, text.String())
		}
	}
}
