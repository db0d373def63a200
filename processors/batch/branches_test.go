package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type none struct{}

// source is a receiver whose pipeline the test calls.
type source struct{}

func (*source) Start(context.Context) error { return nil }

// startBranches runs source -> batch -> strict and open, which give the answers of their names.
func startBranches(t *testing.T, answer map[string]func(context.Context, *otlpdata.Batch) error) pipeline.Consumer {
	t.Helper()
	var head pipeline.Consumer
	factories := []pipeline.Factory{Factory(),
		pipeline.Receiver("source", func() none { return none{} }, func(_ pipeline.Settings, _ none, next pipeline.Consumer) (*source, error) {
			head = next
			return &source{}, nil
		})}
	for name, f := range answer {
		factories = append(factories, pipeline.Exporter(name, func() none { return none{} },
			func(pipeline.Settings, none) (*sink, error) { return &sink{answer: f}, nil }))
	}
	text := "receivers: {source: }\nprocessors: {batch: {concurrency: 1}}\nexporters: {strict: , open: }\n" +
		"service: {pipelines: {traces: {receivers: [source], processors: [batch], exporters: [strict, open]}}}\n"
	config, err := app.Load(app.LoadOptions{Factories: factories, Files: []string{"c.yaml"},
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(config, app.Options{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return head
}

// When one of two branches refuses a joined request, its parts are not sent again to the branch that took it.
func TestPoisonIsNotSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		strict, open := map[string]int{}, map[string]int{}
		take := func(into map[string]int, poison string) func(context.Context, *otlpdata.Batch) error {
			return func(_ context.Context, b *otlpdata.Batch) error {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				if got := names(b); got[poison] == 0 {
					for name, n := range got {
						into[name] += n
					}
					return nil
				}
				return pipeline.Permanent(errors.New("poison"))
			}
		}
		head := startBranches(t, map[string]func(context.Context, *otlpdata.Batch) error{"strict": take(strict, "poison"), "open": take(open, "")})
		var wg sync.WaitGroup
		for _, name := range []string{"first", "good", "poison", "fine"} {
			wg.Go(func() {
				if err := head.Consume(t.Context(), request(t, "", name, 1)); (err != nil) != (name == "poison") {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if want := (map[string]int{"first": 1, "good": 1, "fine": 1}); !maps.Equal(strict, want) {
			t.Error("strict: " + fmt.Sprint(strict))
		}
		if want := (map[string]int{"first": 1, "good": 1, "fine": 1, "poison": 1}); !maps.Equal(open, want) {
			t.Error("open: " + fmt.Sprint(open))
		}
	})
}
