package delivery_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const three = `
receivers: {source: }
processors: {step: }
exporters: {sink/a: , sink/b: , sink/c: }
service: {pipelines: {traces: {receivers: [source], processors: [step], exporters: [sink/a, sink/b, sink/c]}}}
`

// All branches get the batch, even if one fails. The sender gets the error that is most worth
// retrying.
func TestFanOutAnswers(t *testing.T) {
	w := hosttest.NewWorld()
	w.Start(t, three)
	partial := &pipeline.Partial{Rejected: 1, Err: errors.New("partial")}
	permanent, plain := pipeline.Permanent(errors.New("permanent")), errors.New("plain")
	soon, late := pipeline.Overloaded(errors.New("soon"), time.Second), pipeline.Overloaded(errors.New("late"), time.Hour)
	next := pipeline.GRPCStatus(late).Err() // the same, from a next hop
	f := func(a, b, c, want error) {
		t.Helper()
		answers := map[string]error{"sink/a": a, "sink/b": b, "sink/c": c}
		var mu sync.Mutex
		asked := map[string]int{}
		w.Accept = func(id string, b *otlpdata.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			asked[id]++
			return answers[id]
		}
		if got := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop")); !errors.Is(got, want) {
			t.Errorf("%v, %v, %v: got %v, want %v", a, b, c, got, want)
		}
		if !maps.Equal(asked, map[string]int{"sink/a": 1, "sink/b": 1, "sink/c": 1}) {
			t.Errorf("called %v", asked)
		}
	}
	f(nil, nil, nil, nil)
	f(nil, permanent, nil, permanent)
	f(partial, nil, nil, partial)
	f(permanent, partial, nil, permanent)
	f(permanent, plain, partial, plain)
	f(soon, plain, permanent, soon)
	f(plain, late, soon, late)
	f(soon, nil, late, late)
	f(soon, next, plain, next)
	f(context.Canceled, permanent, nil, context.Canceled)
}

// Branches run concurrently: each of these waits for the others.
func TestFanOutIsConcurrent(t *testing.T) {
	w := hosttest.NewWorld()
	w.Start(t, three)
	var all sync.WaitGroup
	all.Add(3)
	w.Accept = func(string, *otlpdata.Batch) error {
		all.Done()
		all.Wait()
		return nil
	}
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop")); err != nil {
		t.Error(err)
	}
}

// A panic of one branch does not affect the others.
func TestFanOutSurvivesPanics(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, three)
	w.Accept = func(id string, _ *otlpdata.Batch) error {
		if id == "sink/b" {
			panic("bug")
		}
		return nil
	}
	err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop"))
	if s := pipeline.GRPCStatus(err); s.Code() != codes.Internal {
		t.Errorf("got %v", err)
	}
	if c := p.Counts(t); c["exporter sink/a sent"] != 1 || c["exporter sink/c sent"] != 1 || c["exporter sink/b refused"] != 1 {
		t.Errorf("counts %v", c)
	}
	got := p.Logged(t, "BUG: Consume panicked; the batch is refused")
	if len(got) != 1 || got[0]["component"] != "sink/b" || got[0]["panic"] != "bug" {
		t.Errorf("logged %v", got)
	}
}

// All branches share one batch. They may use each form of it and edit copies.
func TestFanOutSharesTheBatch(t *testing.T) {
	w := hosttest.NewWorld()
	w.Start(t, three)
	var mu sync.Mutex
	got := map[*otlpdata.Batch]bool{}
	w.Accept = func(id string, b *otlpdata.Batch) error {
		mu.Lock()
		got[b] = true
		mu.Unlock()
		switch id {
		case "sink/a":
			_, err := b.Chunks()
			return err
		case "sink/b":
			_, err := b.Traces()
			return err
		}
		_, err := b.Edit(func(td ptrace.Traces) error {
			td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true })
			return nil
		})
		return err
	}
	b := hosttest.Spans(10, "shop", "bank")
	if err := w.Source["source"].Consume(t.Context(), b); err != nil {
		t.Error(err)
	}
	if !slices.Equal(slices.Collect(maps.Keys(got)), []*otlpdata.Batch{b}) {
		t.Errorf("%d batches", len(got))
	}
}

// Parts of a batch are resent only to branches that refused the batch permanently.
func TestPartsGoToRefusers(t *testing.T) {
	w := hosttest.NewWorld()
	var next pipeline.Consumer
	joiner := pipeline.Processor("joiner", func() hosttest.StepConfig { return hosttest.StepConfig{} },
		func(_ pipeline.Settings, _ hosttest.StepConfig, n pipeline.Consumer) (*hosttest.Step, error) {
			next = n
			return &hosttest.Step{Part: hosttest.Part{World: w, ID: "joiner"}, Next: n}, nil
		})
	w.StartWith(t, append(w.Factories(), joiner), strings.ReplaceAll(three, "step", "joiner"))
	f := func(answers map[string]error, want ...string) {
		t.Helper()
		var mu sync.Mutex
		var asked []string
		w.Accept = func(id string, _ *otlpdata.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, id)
			return answers[id]
		}
		pipeline.ConsumeJoined(t.Context(), next, []*otlpdata.Batch{hosttest.Spans(0, "shop"), hosttest.Spans(0, "bank")},
			func([]*otlpdata.Batch, error) {})
		again := asked[3:]
		slices.Sort(again)
		if both := slices.Sorted(slices.Values(slices.Concat(want, want))); !slices.Equal(again, both) {
			t.Errorf("%v: parts were sent to %v, want %v for each part", answers, again, want)
		}
	}
	bad, down := pipeline.Permanent(errors.New("bad")), errors.New("down")
	f(map[string]error{"sink/b": bad}, "sink/b")
	f(map[string]error{"sink/a": bad, "sink/c": bad}, "sink/a", "sink/c")
	f(map[string]error{"sink/a": bad, "sink/b": &pipeline.Partial{Rejected: 1, Err: bad}}, "sink/a")
	f(map[string]error{"sink/a": bad, "sink/b": bad, "sink/c": bad}, "sink/a", "sink/b", "sink/c")
	f(map[string]error{"sink/a": bad, "sink/b": down})
}

// A panic of a processor in a goroutine of its predecessor does not end the process.
func TestProcessorsAreGuarded(t *testing.T) {
	w := hosttest.NewWorld()
	async := pipeline.Processor("async", func() hosttest.StepConfig { return hosttest.StepConfig{} },
		func(_ pipeline.Settings, _ hosttest.StepConfig, next pipeline.Consumer) (hosttest.SendFunc, error) {
			return func(ctx context.Context, b *otlpdata.Batch) error {
				outcome := make(chan error)
				go func() { outcome <- next.Consume(ctx, b) }()
				return <-outcome
			}, nil
		})
	broken := pipeline.Processor("broken", func() hosttest.StepConfig { return hosttest.StepConfig{} },
		func(pipeline.Settings, hosttest.StepConfig, pipeline.Consumer) (hosttest.SendFunc, error) {
			return func(context.Context, *otlpdata.Batch) error { panic("bug") }, nil
		})
	text := strings.Replace(strings.Replace(three, "[step]", "[async, broken]", 1), "step: ", "async: , broken: ", 1)
	w.StartWith(t, append(w.Factories(), async, broken), text)
	err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop"))
	if s := pipeline.GRPCStatus(err); s.Code() != codes.Internal {
		t.Errorf("got %v", err)
	}
}
