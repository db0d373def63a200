package app_test

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
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// become reloads the program with another configuration.
func (w *world) become(t *testing.T, p *program, yaml string) error {
	t.Helper()
	return p.Reload(t.Context(), func() (*app.Config, error) { return w.load(yaml) })
}

// Each file of testdata/reload has two configurations, with `# fail: EVENT` and `# panic: EVENT` lines first, which hold for the second one,
// and below `# then` what happens when the first one becomes the second. A span is sent from every source before and after, with the exporters
// that it reaches.
func TestReload(t *testing.T) {
	eachFile(t, "testdata/reload/*.txt", func(t *testing.T, file, text string) {
		w := newWorld()
		fails, text := header(text, "# fail: ")
		panics, text := header(text, "# panic: ")
		more, text := header(text, "# fail: ")
		both, want, _ := strings.Cut(text, "# then\n")
		first, second, _ := strings.Cut(both, "# becomes\n")
		p := w.start(t, first)
		sources := w.source
		for _, event := range slices.Concat(fails, more) {
			w.fail[event] = errors.New(event + " failed")
		}
		for _, event := range panics {
			w.panics[event] = true
		}
		w.events = nil
		if err := w.become(t, p, second); err != nil {
			message, _, _ := strings.Cut(err.Error(), "\ngoroutine ")
			w.events = append(w.events, "error: "+message)
		}
		status := p.Status()
		w.events = append(w.events, "status "+string(status.State))
		for id := range sources {
			w.events = append(w.events, w.reach(t, id))
		}
		slices.Sort(w.events[len(w.events)-len(sources):])
		clear(w.fail)
		clear(w.panics)
		got := strings.Join(w.events, "\n") + "\n"
		if golden.Updating() {
			before, _, _ := strings.Cut(string(must(os.ReadFile(file))), "# then\n")
			golden.Write(t, file, before+"# then\n"+got)
			return
		}
		if got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

// reach sends a span from a source and tells which exporters it gets to.
func (w *world) reach(t *testing.T, source string) string {
	var got []string
	var mu = make(chan struct{}, 1)
	w.take = func(id string, _ *otlpdata.Batch) error {
		mu <- struct{}{}
		defer func() { <-mu }()
		got = append(got, id)
		return nil
	}
	defer func() { w.take = nil }()
	if err := w.source[source].Consume(t.Context(), oneSpan("a")); err != nil {
		got = append(got, err.Error())
	}
	slices.Sort(got)
	return source + " -> " + strings.Join(got, ", ")
}

// While what they lead to is exchanged, callers wait; none is refused, and none calls a component that is being stopped.
func TestReloadHoldsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var inside atomic.Int32
		var stopping atomic.Bool
		w.take = func(id string, _ *otlpdata.Batch) error {
			if id == "sink" && stopping.Load() {
				t.Error("called while it is being stopped")
			}
			inside.Add(1)
			time.Sleep(time.Second)
			inside.Add(-1)
			return nil
		}
		p := w.start(t, small)
		source := w.source["source"]
		outcomes := make(chan error, 100)
		send := func() { outcomes <- source.Consume(t.Context(), oneSpan("a")) }
		w.stopping = func(context.Context) {
			if n := inside.Load(); n > 0 {
				t.Errorf("%d calls are inside a component that is stopped", n)
			}
			stopping.Store(true)
			for range 50 {
				go send()
			}
			time.Sleep(time.Second)
			stopping.Store(false)
			w.stopping = nil
		}
		for range 50 {
			go send()
		}
		synctest.Wait()
		if err := w.become(t, p, strings.ReplaceAll(small, "sink: ", "sink: {max_traces: 1}")); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if err := <-outcomes; err != nil {
				t.Error(err)
			}
		}
		if c := p.counts(t); c["receiver source accepted"] != 100 || c["exporter sink sent"] != 100 {
			t.Errorf("counted %v", c)
		}
	})
}
