package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// brief formats a status with times relative to start: `degraded; traces ok: source ok 0s, sink ok
// 0s; ask degraded 1s (reason)`.
func brief(s status.Report, start time.Time) string {
	part := func(c status.Component) string {
		out := fmt.Sprintf("%s %s %s", c.Component, c.State, c.Since.Sub(start))
		if c.Reason != "" {
			out += " (" + c.Reason + ")"
		}
		return out
	}
	out := []string{string(s.State)}
	for _, p := range s.Pipelines {
		var parts []string
		for _, c := range p.Components {
			parts = append(parts, part(c))
		}
		out = append(out, fmt.Sprintf("%s %s: %s", p.Pipeline, p.State, strings.Join(parts, ", ")))
	}
	for _, c := range s.Beside {
		out = append(out, part(c))
	}
	return strings.Join(out, "; ")
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		config, err := w.Load("receivers: {source: }\nprocessors: {step: }\n" +
			"exporters: {sink: , sink/b: }\nextensions: {ask: {storage: sink/b}}\n" +
			"service: {extensions: [ask], pipelines: {traces: {receivers: [source], processors: [step], exporters: [sink]},\n" +
			"  traces/b: {receivers: [source], processors: [step], exporters: [sink]}}}\n")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		a, err := app.New(config, app.Options{Log: &log})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		f := func(want ...string) {
			t.Helper()
			if got := brief(a.Status(), start); got != strings.Join(want, "; ") {
				t.Errorf("got  %s\nwant %s", got, strings.Join(want, "; "))
			}
		}
		f("starting", "traces starting: source starting 0s, step starting 0s, sink starting 0s",
			"traces/b starting: source starting 0s, step starting 0s, sink starting 0s", "sink/b starting 0s", "ask starting 0s")
		time.Sleep(time.Second)
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		const other = "traces/b ok: source ok 1s, step ok 1s, sink ok 1s"
		f("ok", "traces ok: source ok 1s, step ok 1s, sink ok 1s", other, "sink/b ok 1s", "ask ok 1s")
		time.Sleep(time.Second)
		w.Settings["sink/b"].Report(errors.New("disk full"))
		time.Sleep(time.Second)
		w.Settings["sink/b"].Report(errors.New("still full")) // same state, another reason
		f("degraded", "traces ok: source ok 1s, step ok 1s, sink ok 1s", other, "sink/b degraded 2s (still full)", "ask ok 1s")
		w.Settings["sink/b"].Report(nil)
		f("ok", "traces ok: source ok 1s, step ok 1s, sink ok 1s", other, "sink/b ok 3s", "ask ok 1s")
		w.Settings["sink"].Report(errors.New("gone"))
		f("degraded", "traces degraded: source ok 1s, step ok 1s, sink degraded 3s (gone)",
			"traces/b degraded: source ok 1s, step ok 1s, sink degraded 3s (gone)", "sink/b ok 3s", "ask ok 1s")
		if err := a.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		f("stopped", "traces stopped: source stopped 3s, step stopped 3s, sink stopped 3s",
			"traces/b stopped: source stopped 3s, step stopped 3s, sink stopped 3s", "sink/b stopped 3s", "ask stopped 3s")
		// A changed reason is logged at most once a minute.
		if n := strings.Count(log.String(), "component is degraded"); n != 2 {
			t.Errorf("%d degraded states were logged:\n%s", n, log.String())
		}
	})
}

// A component can make the process not ready for a while. Others are only degraded, and a reload
// works meanwhile.
func TestNotReady(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Small)
	report := w.Settings["sink"].Report
	f := func(ready bool, reason string) {
		t.Helper()
		h := p.Health()
		if h.Ready != ready || h.Reason != reason || h.Since.IsZero() {
			t.Errorf("health %+v, want ready %t because of %q", h, ready, reason)
		}
	}
	f(true, "")
	report(errors.New("slow"))
	f(true, "")
	report(fmt.Errorf("store: %w", pipeline.NotReady(errors.New("full"))))
	f(false, "exporter sink: store: full")
	if got := p.Status().State; got != status.Degraded {
		t.Errorf("state %s", got)
	}
	if err := p.Reload(t.Context(), func() (*app.Config, error) { return w.Load(hosttest.Small) }); err != nil {
		t.Errorf("reload: %v", err)
	}
	f(false, "exporter sink: store: full")
	report(errors.New("slow"))
	f(true, "")
	report(pipeline.NotReady(errors.New("full")))
	next := strings.Replace(hosttest.Small, "sink: ", "sink: {max_traces: 1}", 1)
	if err := p.Reload(t.Context(), func() (*app.Config, error) { return w.Load(next) }); err != nil {
		t.Errorf("reload: %v", err)
	}
	f(true, "") // the component was replaced
	var got []string
	for _, l := range p.Logged(t, "Health Check state change") {
		got = append(got, fmt.Sprint(l["status"], " ", l["reason"]))
	}
	want := []string{"ready <nil>", "unavailable exporter sink: store: full", "ready <nil>", "unavailable exporter sink: full",
		"ready <nil>", "unavailable <nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// Empty lists are encoded as [], not null.
func TestStatusJSON(t *testing.T) {
	config, err := hosttest.NewWorld().Load("extensions: {watch: }\nservice: {extensions: [watch]}\n")
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(config, app.Options{Log: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(a.Status())
	if want := `{"status":"starting","pipelines":[],"beside":[{"component":"watch","kind":"extension","status":"starting","since":"`; err != nil ||
		!strings.HasPrefix(string(got), want) {
		t.Errorf("%v %s", err, got)
	}
}

// The log level can be changed at runtime, also for the loggers of components.
func TestLogLevel(t *testing.T) {
	w := hosttest.NewWorld()
	config, err := w.Load(hosttest.Small)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a, err := app.New(config, app.Options{Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	w.Settings["sink"].Logger.Debug("before")
	a.LogLevel().SetLevel(zap.DebugLevel)
	w.Settings["sink"].Logger.Debug("after")
	if got := log.String(); strings.Contains(got, "before") || !strings.Contains(got, `"msg":"after"`) {
		t.Errorf("log: %s", got)
	}
}
