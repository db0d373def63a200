package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// A processor is replaced while a call is inside: other callers do not wait, and the previous
// processor stops after the call.
func TestReloadReplacesProcessorBehindCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		blocked := make(chan struct{})
		w.Accept = func(_ string, b *otlpdata.Batch) error {
			if b.Meta().Tenant == "slow" {
				<-blocked
			}
			return nil
		}
		p := w.Start(t, hosttest.Small)
		processors := func(list string) string {
			return strings.NewReplacer("exporters: {", "processors: {step: , step/2: }\nexporters: {",
				"receivers: [source],", "receivers: [source], processors: ["+list+"],").Replace(hosttest.Small)
		}
		if err := become(t, w, p, processors("step")); err != nil {
			t.Fatal(err)
		}
		outcome := make(chan error, 1)
		go func() { outcome <- w.Source["source"].Consume(t.Context(), hosttest.BatchFor("slow", "a")) }()
		synctest.Wait()
		began := time.Now()
		if err := become(t, w, p, processors("step/2")); err != nil {
			t.Fatal(err)
		}
		if err := w.Source["source"].Consume(t.Context(), hosttest.OneSpan("b")); err != nil || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		synctest.Wait()
		if slices.Contains(w.Events, "stop step") {
			t.Error("the processor has stopped with a call inside")
		}
		close(blocked)
		if err := <-outcome; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !slices.Contains(w.Events, "stop step") {
			t.Error("the processor has not stopped")
		}
	})
}

// door is a receiver whose clients never connect again.
type door struct{ hosttest.Part }

// HandOver waits for them.
func (d *door) HandOver(ctx context.Context) {
	if event := "hand over " + d.ID; d.World.Panics[event] {
		panic(event)
	}
	<-ctx.Done()
}

// doorFactory returns the factory of the receiver door. built is called with the next Consumer.
func doorFactory(w *hosttest.World, built func(pipeline.Consumer)) pipeline.Factory {
	return pipeline.Receiver("door", func() hosttest.SourceConfig { return hosttest.SourceConfig{Endpoint: "localhost:1"} },
		func(s pipeline.Settings, c hosttest.SourceConfig, next pipeline.Consumer) (*door, error) {
			built(next)
			return &door{hosttest.Part{World: w, ID: "door at " + string(c.Endpoint)}}, w.RecordBuild(s, "")
		})
}

// Components of earlier configurations stop in the background, at most eight of each. The process
// does not wait for their clients when it stops.
func TestReloadsWhileOthersRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		factories := append(w.Factories(), doorFactory(w, func(pipeline.Consumer) {}))
		yaml := func(i int) string {
			return fmt.Sprintf("receivers: {door: {endpoint: 'localhost:%d'}}\nexporters: {sink: }\n"+
				"service: {pipelines: {traces: {receivers: [door], exporters: [sink]}}}\n", i)
		}
		p := w.StartWith(t, factories, yaml(1))
		began := time.Now()
		reload := func(ctx context.Context, i int) error {
			return p.Reload(ctx, func() (*app.Config, error) { return w.LoadWith(factories, yaml(i)) })
		}
		for i := 2; i <= 9; i++ {
			if err := reload(t.Context(), i); err != nil || time.Since(began) > 0 {
				t.Fatalf("reload %d after %v: %v", i, time.Since(began), err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := reload(ended, 10); err == nil || !strings.Contains(err.Error(), "have not finished their requests") {
			t.Errorf("ninth reload: %v", err)
		}
		if err := reload(t.Context(), 11); err != nil || time.Since(began) == 0 {
			t.Errorf("tenth reload after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		if err := p.End(); err != nil || time.Since(began) > 0 {
			t.Errorf("stopped after %v: %v", time.Since(began), err)
		}
		for _, i := range []int{1, 9, 11} {
			if event := fmt.Sprint("stop door at localhost:", i); !slices.Contains(w.Events, event) {
				t.Errorf("no %s: %v", event, w.Events)
			}
		}
	})
}

// A processor that holds spans passes them on when it stops, which is after its receiver has
// stopped, however long that takes. The processors behind it are still there.
func TestRetiredProcessorsPassOnWhatTheyHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		var next pipeline.Consumer // of the latest door
		factories := append(w.Factories(), w.ShelfFactory(func(*hosttest.Shelf) {}), doorFactory(w, func(c pipeline.Consumer) { next = c }))
		yaml := func(i int, processors string) string {
			return fmt.Sprintf("receivers: {door: {endpoint: 'localhost:%d'}}\nprocessors: {shelf: , shelf/b: , step: , step/b: }\n"+
				"exporters: {sink: }\nservice: {stop_timeout: 5s, "+
				"pipelines: {traces: {receivers: [door], processors: [%s], exporters: [sink]}}}\n", i, processors)
		}
		p := w.StartWith(t, factories, yaml(1, "shelf, step"))
		if err := next.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Fatal(err)
		}
		c, err := w.LoadWith(factories, yaml(2, "shelf/b, step/b"))
		if err == nil {
			err = p.Reload(t.Context(), func() (*app.Config, error) { return c, nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		order := slices.DeleteFunc(slices.Clone(w.Events), func(e string) bool { return !strings.HasPrefix(e, "stop ") })
		if got := strings.Join(order, ", "); got != "stop door at localhost:1, stop shelf, stop step" {
			t.Error(got)
		}
		if c := p.Counts(t); c["processor shelf sent"] != 1 || c["exporter sink sent"] != 1 {
			t.Errorf("counted %v", c)
		}
	})
}

// A component whose HandOver panics is stopped: in the background, or before a store that it refers
// to is replaced.
func TestHandOverPanics(t *testing.T) {
	for name, exporters := range map[string]string{"in the background": "sink: ", "before its replacement": "sink: {max_traces: 1}"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := hosttest.NewWorld()
				w.Panics["hand over window"] = true
				factories := append(w.Factories(), pipeline.Extension("window", func() hosttest.AskConfig { return hosttest.AskConfig{} },
					func(s pipeline.Settings, _ hosttest.AskConfig) (*door, error) {
						return &door{hosttest.Part{World: w, ID: "window"}}, w.RecordBuild(s, "")
					}))
				yaml := func(http, exporters string) string {
					return "receivers: {source: }\nexporters: {" + exporters + "}\nextensions: {window: {storage: sink" + http + "}}\n" +
						"service: {extensions: [window], pipelines: {traces: {receivers: [source], exporters: [sink]}}}\n"
				}
				p := w.StartWith(t, factories, yaml("", "sink: "))
				c, err := w.LoadWith(factories, yaml(", http: {endpoint: 'localhost:2'}", exporters))
				if err == nil {
					err = p.Reload(t.Context(), func() (*app.Config, error) { return c, nil })
				}
				synctest.Wait()
				if err != nil || !slices.Contains(w.Events, "stop window") {
					t.Errorf("%v: %v", err, w.Events)
				}
				lines := p.Logged(t, "a removed component did not stop cleanly")
				if len(lines) != 1 || lines[0]["error"] != "BUG: HandOver panicked: hand over window" {
					t.Errorf("logged %v", lines)
				}
				bugs := p.Lines(t, "BUG: component panicked")
				if len(bugs) != 1 || bugs[0]["component"] != "window" || !strings.Contains(fmt.Sprint(bugs[0]["stack"]), "HandOver") {
					t.Errorf("logged %v", bugs)
				}
			})
		})
	}
}

// An exporter is removed when components of earlier configurations have passed on what they hold.
// A reload that waits for them ends when the process stops, and changes nothing.
func TestReloadWaitsForEarlierCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		var next pipeline.Consumer // of the latest door
		factories := append(w.Factories(), w.ShelfFactory(func(*hosttest.Shelf) {}), doorFactory(w, func(c pipeline.Consumer) { next = c }))
		yaml := func(generation, sink int) string {
			return fmt.Sprintf("receivers: {door: {endpoint: 'localhost:%d'}}\nprocessors: {shelf/1: , shelf/2: }\n"+
				"exporters: {sink/%d: }\nservice: {stop_timeout: 5s, "+
				"pipelines: {traces: {receivers: [door], processors: [shelf/%[1]d], exporters: [sink/%[2]d]}}}\n", generation, sink)
		}
		p := w.StartWith(t, factories, yaml(1, 1))
		if err := next.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Fatal(err)
		}
		reload := func(ctx context.Context, generation, sink int) error {
			return p.Reload(ctx, func() (*app.Config, error) { return w.LoadWith(factories, yaml(generation, sink)) })
		}
		if err := reload(t.Context(), 2, 1); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := reload(ended, 2, 2); err == nil || time.Since(began) > 0 || slices.Contains(w.Events, "stop sink/1") {
			t.Errorf("after %v: %v: %v", time.Since(began), err, w.Events)
		}
		if err := reload(t.Context(), 2, 3); err != nil || slices.Index(w.Events, "stop shelf/1") > slices.Index(w.Events, "stop sink/1") {
			t.Errorf("%v: %v", err, w.Events)
		}
		if c := p.Counts(t); c["processor shelf/1 sent"] != 1 || c["exporter sink/1 sent"] != 1 {
			t.Errorf("counted %v", c)
		}
	})
}

// A connector is replaced while a call is inside: it stops after the call.
func TestReloadReplacesConnectorBehindCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		blocked := make(chan struct{})
		w.Accept = func(string, *otlpdata.Batch) error {
			<-blocked
			return nil
		}
		p := w.Start(t, connected)
		outcome := make(chan error, 1)
		go func() { outcome <- w.Source["source"].Consume(t.Context(), hosttest.OneSpan("a")) }()
		synctest.Wait()
		if err := become(t, w, p, strings.Replace(connected, "[[traces/c]]", "[[traces/d]]", 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if slices.Contains(w.Events, "stop split/some") {
			t.Error("the connector has stopped with a call inside")
		}
		close(blocked)
		if err := <-outcome; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !slices.Contains(w.Events, "stop split/some") {
			t.Error("the connector has not stopped")
		}
	})
}
