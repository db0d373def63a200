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

// source is a receiver that does nothing. Tests call its consumer.
type source struct{}

func (*source) Start(context.Context) error { return nil }

// startBranches runs a pipeline source -> batch -> strict and open. consume has the functions of
// the exporters by name.
func startBranches(t *testing.T, consume map[string]func(context.Context, *otlpdata.Batch) error) pipeline.Consumer {
	t.Helper()
	var head pipeline.Consumer
	factories := []pipeline.Factory{Factory(),
		pipeline.Receiver("source", func() none { return none{} },
			func(_ pipeline.Settings, _ none, next pipeline.Consumer) (*source, error) {
				head = next
				return &source{}, nil
			})}
	for name, f := range consume {
		factories = append(factories, pipeline.Exporter(name, func() none { return none{} },
			func(pipeline.Settings, none) (*sink, error) { return &sink{consume: f}, nil }))
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

// If one of two branches refuses a joined request permanently, its parts are not resent to the
// other branch.
func TestPermanentErrorOfOneBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		strict, open := map[string]int{}, map[string]int{}
		accept := func(into map[string]int, invalid string) func(context.Context, *otlpdata.Batch) error {
			return func(_ context.Context, b *otlpdata.Batch) error {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				if got := names(b); got[invalid] == 0 {
					for name, n := range got {
						into[name] += n
					}
					return nil
				}
				return pipeline.Permanent(errors.New("invalid"))
			}
		}
		head := startBranches(t, map[string]func(context.Context, *otlpdata.Batch) error{"strict": accept(strict, "invalid"),
			"open": accept(open, "")})
		var wg sync.WaitGroup
		for _, name := range []string{"first", "good", "invalid", "fine"} {
			wg.Go(func() {
				if err := head.Consume(t.Context(), request(t, "", name, 1)); (err != nil) != (name == "invalid") {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if want := (map[string]int{"first": 1, "good": 1, "fine": 1}); !maps.Equal(strict, want) {
			t.Error("strict: " + fmt.Sprint(strict))
		}
		if want := (map[string]int{"first": 1, "good": 1, "fine": 1, "invalid": 1}); !maps.Equal(open, want) {
			t.Error("open: " + fmt.Sprint(open))
		}
	})
}
