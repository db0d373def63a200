package host_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// become reloads the program with another configuration.
func become(t *testing.T, w *hosttest.World, p *hosttest.Program, yaml string) error {
	t.Helper()
	return p.Reload(t.Context(), func() (*app.Config, error) { return w.Load(yaml) })
}

// Each file of testdata/reload has `# fail: EVENT` and `# panic: EVENT` lines, which apply to the
// second configuration, two configurations, and after `# then` the events of a reload from the
// first to the second, and the exporters that spans of each source reach afterwards.
func TestReload(t *testing.T) {
	hosttest.EachFile(t, "testdata/reload/*.txt", func(t *testing.T, file, text string) {
		synctest.Test(t, func(t *testing.T) { testReload(t, file, text) })
	})
}

func testReload(t *testing.T, file, text string) {
	w := hosttest.NewWorld()
	fails, text := hosttest.Header(text, "# fail: ")
	panics, text := hosttest.Header(text, "# panic: ")
	more, text := hosttest.Header(text, "# fail: ")
	both, want, _ := strings.Cut(text, "# then\n")
	first, second, _ := strings.Cut(both, "# becomes\n")
	p := w.Start(t, first)
	sources := w.Source
	for _, event := range slices.Concat(fails, more) {
		w.Fail[event] = errors.New(event + " failed")
	}
	for _, event := range panics {
		w.Panics[event] = true
	}
	w.Events = nil
	if err := become(t, w, p, second); err != nil {
		message, _, _ := strings.Cut(err.Error(), "\ngoroutine ")
		w.Events = append(w.Events, "error: "+message)
	}
	synctest.Wait() // for components that stop in the background
	status := p.Status()
	w.Events = append(w.Events, "status "+string(status.State))
	for id := range sources {
		w.Events = append(w.Events, reach(t, w, id))
	}
	slices.Sort(w.Events[len(w.Events)-len(sources):])
	clear(w.Fail)
	clear(w.Panics)
	got := strings.Join(w.Events, "\n") + "\n"
	if golden.Updating() {
		before, _, _ := strings.Cut(string(hosttest.Must(os.ReadFile(file))), "# then\n")
		golden.Write(t, file, before+"# then\n"+got)
		return
	}
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// reach sends a span from a source and returns the exporters that it reaches.
func reach(t *testing.T, w *hosttest.World, source string) string {
	var got []string
	var mu = make(chan struct{}, 1)
	w.Accept = func(id string, _ *otlpdata.Batch) error {
		mu <- struct{}{}
		defer func() { <-mu }()
		got = append(got, id)
		return nil
	}
	defer func() { w.Accept = nil }()
	if err := w.Source[source].Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
		got = append(got, err.Error())
	}
	slices.Sort(got)
	return source + " -> " + strings.Join(got, ", ")
}

// Callers wait while components are replaced. None is refused, and none calls a component that
// stops.
func TestReloadHoldsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		var inside atomic.Int32
		var stopping atomic.Bool
		w.Accept = func(id string, _ *otlpdata.Batch) error {
			if id == "sink" && stopping.Load() {
				t.Error("called while it stops")
			}
			inside.Add(1)
			time.Sleep(time.Second)
			inside.Add(-1)
			return nil
		}
		p := w.Start(t, hosttest.Small)
		source := w.Source["source"]
		outcomes := make(chan error, 100)
		send := func() { outcomes <- source.Consume(t.Context(), hosttest.OneSpan("a")) }
		w.OnStop = func(context.Context) {
			if n := inside.Load(); n > 0 {
				t.Errorf("%d calls are inside a component that is stopped", n)
			}
			stopping.Store(true)
			for range 50 {
				go send()
			}
			time.Sleep(time.Second)
			stopping.Store(false)
			w.OnStop = nil
		}
		for range 50 {
			go send()
		}
		synctest.Wait()
		if err := become(t, w, p, strings.ReplaceAll(hosttest.Small, "sink: ", "sink: {max_traces: 1}")); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if err := <-outcomes; err != nil {
				t.Error(err)
			}
		}
		if c := p.Counts(t); c["receiver source accepted"] != 100 || c["exporter sink sent"] != 100 {
			t.Errorf("counted %v", c)
		}
	})
}

// A processor that may hold something exclusively is stopped before its replacement is started.
// Callers wait meanwhile.
func TestReloadStopsExclusiveProcessorFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		factories := append(w.Factories(), w.SieveFactory())
		load := func(processors string) (*app.Config, error) {
			return w.LoadWith(factories, strings.NewReplacer("exporters: {", "processors: {sieve: , sieve/b: }\nexporters: {",
				"receivers: [source],", "receivers: [source], processors: ["+processors+"],").Replace(hosttest.Small))
		}
		c, err := load("sieve")
		if err != nil {
			t.Fatal(err)
		}
		p := hosttest.NewProgram(t, c, pipeline.SystemEnv())
		p.StartWithin(t, time.Minute)
		source := w.Source["source"]
		outcome := make(chan error, 1)
		w.OnStop = func(context.Context) {
			w.OnStop = nil
			go func() { outcome <- source.Consume(t.Context(), hosttest.OneSpan("a")) }()
			time.Sleep(time.Second)
		}
		w.Events = nil
		if err := p.Reload(t.Context(), func() (*app.Config, error) { return load("sieve/b") }); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.Events, ", "); got != "build sieve/b, stop sieve, start sieve/b" {
			t.Error(got)
		}
		if err := <-outcome; err != nil {
			t.Error(err)
		}
	})
}
