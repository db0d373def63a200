package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// Program is a running configuration of fakes.
type Program struct {
	*app.App
	Log *bytes.Buffer // complete once the program has stopped
	End func() error  // stops the program; may be called more than once
}

// Start runs a configuration until the test ends.
func (w *World) Start(t *testing.T, yaml string, overrides ...app.Override) *Program {
	t.Helper()
	return w.StartWith(t, w.Factories(), yaml, overrides...)
}

// StartWith is like Start with other factories.
func (w *World) StartWith(t *testing.T, factories []pipeline.Factory, yaml string, overrides ...app.Override) *Program {
	t.Helper()
	config, err := w.LoadWith(factories, yaml, overrides...)
	if err != nil {
		t.Fatal(err)
	}
	p := NewProgram(t, config, pipeline.SystemEnv())
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.End = sync.OnceValue(func() error { return p.Stop(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() {
		if err := p.End(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// NewProgram builds a configuration without starting it.
func NewProgram(t *testing.T, config *app.Config, env pipeline.Env) *Program {
	t.Helper()
	p := &Program{Log: &bytes.Buffer{}}
	var err error
	if p.App, err = app.New(config, app.Options{Log: p.Log, Env: &env}); err != nil {
		t.Fatal(err)
	}
	return p
}

// StartWithin starts the program and stops it when the test ends, for which it has the given time.
// The test may ignore the error of the stop.
func (p *Program) StartWithin(t *testing.T, stopTimeout time.Duration) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.End = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopTimeout)
		defer cancel()
		return p.Stop(ctx)
	})
	t.Cleanup(func() { p.End() }) //nolint:errcheck // tests that check the error call End themselves
}

// Logged stops the program and returns the log lines with a message.
func (p *Program) Logged(t *testing.T, msg string) []map[string]any {
	t.Helper()
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	return p.Lines(t, msg)
}

// Lines returns the log lines with a message. The program must have stopped.
func (p *Program) Lines(t *testing.T, msg string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(p.Log.String()) {
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

// CheckBalanced checks the final accounting. The program must have stopped.
func (p *Program) CheckBalanced(t *testing.T) {
	t.Helper()
	for _, l := range p.Lines(t, "final accounting of spans") {
		if l["balanced"] != true {
			t.Errorf("not balanced: %v", l)
		}
	}
}

func (p *Program) gather(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	families, err := p.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// Metrics returns the lines of /metrics that begin with a prefix.
func (p *Program) Metrics(t *testing.T, prefix string) []string {
	t.Helper()
	var text bytes.Buffer
	for _, f := range p.gather(t) {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return slices.DeleteFunc(strings.Split(text.String(), "\n"), func(l string) bool { return !strings.HasPrefix(l, prefix) })
}

// Counts returns the spans of tracing_pipeline_spans_total by "kind component outcome".
func (p *Program) Counts(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, f := range p.gather(t) {
		if f.GetName() != "tracing_pipeline_spans_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			l := labels(m)
			counts[l["kind"]+" "+l["component"]+" "+l["outcome"]] += int(m.GetCounter().GetValue())
		}
	}
	return counts
}

// NetCounts returns the metrics of the `net` exporter: its spans by outcome, `queued` and
// `retries`.
func (p *Program) NetCounts(t *testing.T) map[string]float64 {
	t.Helper()
	counts := map[string]float64{}
	for _, f := range p.gather(t) {
		for _, m := range f.GetMetric() {
			l := labels(m)
			switch {
			case l["component"] != "net":
			case f.GetName() == "tracing_pipeline_spans_total":
				counts[l["outcome"]] += m.GetCounter().GetValue()
			case f.GetName() == "tracing_queue_spans":
				counts["queued"] = m.GetGauge().GetValue()
			case f.GetName() == "tracing_exporter_retries_total":
				counts["retries"] = m.GetCounter().GetValue()
			}
		}
	}
	return counts
}

// CheckNet checks some of NetCounts, written `in:1 sent:1`.
func (p *Program) CheckNet(t *testing.T, want string) {
	t.Helper()
	got := p.NetCounts(t)
	for _, w := range strings.Fields(want) {
		name, n, _ := strings.Cut(w, ":")
		if fmt.Sprint(got[name]) != n {
			t.Errorf("counted %v, want %s", got, want)
			return
		}
	}
}

func labels(m *dto.Metric) map[string]string {
	l := map[string]string{}
	for _, p := range m.GetLabel() {
		l[p.GetName()] = p.GetValue()
	}
	return l
}

// Expect checks all of NetCounts, written `in:1 sent:1`.
func Expect(t *testing.T, got map[string]float64, want string) {
	t.Helper()
	if s := strings.TrimPrefix(fmt.Sprint(got), "map"); s != "["+want+"]" {
		t.Errorf("counted %s, want [%s]", s, want)
	}
}
