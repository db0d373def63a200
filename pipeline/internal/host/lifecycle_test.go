package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// run loads, builds, starts and stops a configuration. It returns the events in order.
func run(ctx context.Context, w *hosttest.World, yaml string) []string {
	if _, err := session(ctx, w, yaml); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\ngoroutine ") // without the stack of a panic
		w.Events = append(w.Events, strings.Split("error: "+first, "\n")...)
	}
	return w.Events
}

func session(ctx context.Context, w *hosttest.World, yaml string) (*app.App, error) {
	config, err := w.Load(yaml)
	if err != nil {
		return nil, err
	}
	a, err := app.New(config, app.Options{Log: &bytes.Buffer{}})
	if err != nil {
		return nil, err
	}
	if err := a.Start(ctx); err != nil {
		return a, err
	}
	return a, a.Stop(ctx)
}

// Each file of testdata/lifecycle has `# fail: EVENT` and `# panic: EVENT` lines, a configuration,
// and after `# then` the expected events.
func TestLifecycle(t *testing.T) {
	hosttest.EachFile(t, "testdata/lifecycle/*.txt", func(t *testing.T, file, text string) {
		w := hosttest.NewWorld()
		fails, text := hosttest.Header(text, "# fail: ")
		for _, event := range fails {
			w.Fail[event] = errors.New(event + " failed")
		}
		panics, text := hosttest.Header(text, "# panic: ")
		for _, event := range panics {
			w.Panics[event] = true
		}
		yaml, want, _ := strings.Cut(text, "# then\n")
		got := hosttest.Lines(run(t.Context(), w, yaml)...) + "\n"
		if golden.Updating() {
			before, _, _ := strings.Cut(string(hosttest.Must(os.ReadFile(file))), "# then\n")
			golden.Write(t, file, before+"# then\n"+got)
			return
		}
		if got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

const large = `
receivers: {source: , source/2: }
processors: {step: , step/2: }
exporters: {sink: , sink/2: , hop: }
extensions: {watch: , ask: {storage: proxy}, proxy: {of: sink/2}}
service:
  extensions: [ask, watch]
  pipelines:
    traces: {receivers: [source, source/2], processors: [step, step/2], exporters: [sink, hop]}
    traces/b: {receivers: [source], processors: [step], exporters: [sink]}
`

// If a component fails to start, exactly the components before it are stopped, once each, in
// reverse order.
func TestStartFailsAtEach(t *testing.T) {
	started := withPrefix(run(t.Context(), hosttest.NewWorld(), large), "start ")
	if len(started) < 10 {
		t.Fatalf("only %d components: %v", len(started), started)
	}
	for k, event := range started {
		// Two instances of a processor have the same name; the first one fails.
		if slices.Index(started, event) != k {
			continue
		}
		for _, how := range []string{"fail", "panic"} {
			w := hosttest.NewWorld()
			w.Fail[event] = errors.New("no")
			w.Panics[event] = how == "panic"
			events := run(t.Context(), w, large)
			var stops []string
			for _, s := range slices.Backward(started[:k]) {
				stops = append(stops, "stop "+strings.TrimPrefix(s, "start "))
			}
			if got := withPrefix(events, "start "); !slices.Equal(got, started[:k+1]) {
				t.Errorf("%s %s: started %v", how, event, got)
			}
			if got := withPrefix(events, "stop "); !slices.Equal(got, stops) {
				t.Errorf("%s %s: stopped %v, want %v", how, event, got, stops)
			}
			last, id := events[len(events)-1], strings.TrimPrefix(event, "start ")
			if !strings.HasPrefix(last, "error: starting ") || !strings.Contains(last, id) {
				t.Errorf("%s %s: %s", how, event, last)
			}
		}
	}
}

func withPrefix(events []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool { return !strings.HasPrefix(e, prefix) })
}

// If a start is interrupted, started components are stopped with a context that has not ended.
func TestRollBackOutlivesTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := hosttest.NewWorld()
	w.Fail["start source"] = context.Canceled
	atStop := errors.New("not stopped")
	w.OnEvent = func(event string) {
		if event == "start source" {
			cancel()
		}
	}
	w.OnStop = func(ctx context.Context) { atStop = ctx.Err() }
	if _, err := session(ctx, w, hosttest.Small); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if atStop != nil {
		t.Errorf("Stop was called with a context that had ended: %v", atStop)
	}
}

// Every error of a stop is reported and does not keep other components from being stopped. The
// error of a panic is one line.
func TestStopFailures(t *testing.T) {
	w := hosttest.NewWorld()
	w.Fail["stop sink"], w.Panics["stop source"] = errors.New("disk full"), true
	_, err := session(t.Context(), w, hosttest.Small)
	if err == nil || err.Error() != "stopping receiver source: BUG: Stop panicked: stop source\nstopping exporter sink: disk full" {
		t.Errorf("got %v", err)
	}
	if got := withPrefix(w.Events, "stop "); !slices.Equal(got, []string{"stop source", "stop sink"}) {
		t.Errorf("stopped %v", got)
	}
}

func TestHealth(t *testing.T) {
	w := hosttest.NewWorld()
	var a *app.App
	var ready []string
	w.OnEvent = func(event string) {
		if a != nil {
			ready = append(ready, fmt.Sprint(event, " ", a.Health().Ready, " ", a.Health().Since.IsZero()))
		}
	}
	config, err := w.Load(hosttest.Small)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = app.New(config, app.Options{Log: &bytes.Buffer{}, Build: status.Build{Version: "1.2"}}); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h := a.Health(); !h.Ready || h.Since.IsZero() {
		t.Errorf("started: %+v", h)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"start sink false true", "start source false true", "stop source false true", "stop sink false true"}
	if !slices.Equal(ready, want) {
		t.Errorf("got %q, want %q", ready, want)
	}
	if a.Build().Version != "1.2" {
		t.Errorf("build %v", a.Build())
	}
	if got := a.Addr(pipeline.ID{Type: "source"}, "grpc"); got != "source at grpc" {
		t.Errorf("address %q", got)
	}
	if got := a.Addr(pipeline.ID{Type: "source"}, "http") + a.Addr(pipeline.ID{Type: "none"}, "grpc"); got != "" {
		t.Errorf("address %q of unknown listeners", got)
	}
}

// Every instance has a folder of its own below service.data_dir, whatever its name.
func TestDirectories(t *testing.T) {
	w := hosttest.NewWorld()
	_, err := session(t.Context(), w, `
receivers: {source: }
processors: {step: }
exporters: {sink: , sink/a/b: , sink/b: , "sink/..": , sink/../x: }
extensions: {hub/sink: }
service:
  data_dir: /data
  extensions: [hub/sink]
  pipelines:
    traces/x/y: {receivers: [source], processors: [step], exporters: [sink, sink/a/b, sink/b, "sink/..", sink/../x]}
    traces: {receivers: [source], processors: [step], exporters: [sink]}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/data/sink", "/data/sink-..", "/data/sink-..%2Fx", "/data/sink-a%2Fb", "/data/sink-b", "/data/extensions/hub-sink",
		"/data/processors/step/traces%2Fx%2Fy", "/data/processors/step/traces", "/data/receivers/source"}
	if !slices.Equal(w.Dirs, want) {
		t.Errorf("got  %q\nwant %q", w.Dirs, want)
	}
}
