package otelcol_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// holdings builds a holding processor that calls consume, and counts what it makes and drops.
type holdings struct {
	pipeline.Holder
	made, dropped atomic.Int64
	memory        *pipeline.Budget
	next          *sink
}

// consumeTraces is what a component does with spans.
type consumeTraces func(ctx context.Context, td ptrace.Traces, next consumer.Traces) error

// buildHolding builds, starts and later stops a processor with a sink.
func buildHolding(t *testing.T, consume consumeTraces) *holdings {
	t.Helper()
	next := &sink{}
	h := newHoldings(t, next, consume)
	h.next = next
	t.Cleanup(func() {
		if err := h.Holder.(pipeline.Stopper).Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// newHoldings builds and starts a processor.
func newHoldings(t *testing.T, next pipeline.Consumer, consume consumeTraces) *holdings {
	t.Helper()
	h := &holdings{memory: pipeline.NewHeldBudget(1 << 20)}
	f := processor.NewFactory(component.MustNewType("late"), func() component.Config { return &hopConfig{} },
		processor.WithTraces(func(_ context.Context, _ processor.Settings, _ component.Config, next consumer.Traces) (processor.Traces, error) {
			inner, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error { return consume(ctx, td, next) })
			return &passing{Traces: inner}, err
		}, component.StabilityLevelStable))
	set := pipelinetest.NewFixture("late", 1<<20).Settings
	set.HeldMemory = h.memory
	set.Made = func(spans int) { h.made.Add(int64(spans)) }
	set.Dropped = func(spans int, _ string) { h.dropped.Add(int64(spans)) }
	factory := otelcol.HoldingProcessor(f, otelcol.Holding{
		Longest: func(component.Config) time.Duration { return time.Minute }, Flushes: true,
	})
	p, err := factory.Build(set, factory.Defaults(), next)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.(pipeline.Starter).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Holder = p.(pipeline.Holder)
	return h
}

func (h *holdings) check(t *testing.T, made, dropped, held int64) {
	t.Helper()
	if h.made.Load() != made || h.dropped.Load() != dropped || h.Held() != held || (held == 0) != (h.memory.Used() == 0) {
		t.Errorf("made %d, dropped %d, held %d (%d bytes); want %d, %d, %d", h.made.Load(), h.dropped.Load(), h.Held(), h.memory.Used(),
			made, dropped, held)
	}
}

var errRefused = errors.New("refused")

// Spans that a component refuses after the client has its response are lost, so they count as
// dropped.
func TestRefusedAfterAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := buildHolding(t, func(context.Context, ptrace.Traces, consumer.Traces) error {
			<-release
			return errRefused
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Consume(ctx, otlpdata.FromTraces(spans("a", "b"), otlpdata.Meta{})); err != nil {
			t.Fatal(err)
		}
		h.check(t, 0, 0, 2)
		close(release)
		synctest.Wait()
		h.check(t, 0, 2, 0)
	})
}

// The client gets an error for all spans, so those that have come out before count as additional.
func TestRefusedAfterPassingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := buildHolding(t, func(ctx context.Context, _ ptrace.Traces, next consumer.Traces) error {
			if err := next.ConsumeTraces(ctx, spans("a")); err != nil {
				t.Error(err)
			}
			return errRefused
		})
		if err := h.Consume(t.Context(), otlpdata.FromTraces(spans("a", "b"), otlpdata.Meta{})); !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		synctest.Wait()
		h.check(t, 1, 0, 0)
		if len(h.next.got) != 1 {
			t.Errorf("passed on %d batches", len(h.next.got))
		}
	})
}

// stuck is a next consumer that ignores its context.
type stuck struct{ release chan struct{} }

func (s *stuck) Consume(context.Context, *otlpdata.Batch) error {
	<-s.release
	return nil
}

// A next consumer that ignores its context does not keep the process from stopping.
func TestStopWithStuckExporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &stuck{make(chan struct{})}
		h := newHoldings(t, next, func(ctx context.Context, td ptrace.Traces, next consumer.Traces) error {
			return next.ConsumeTraces(ctx, td)
		})
		if err := h.Consume(t.Context(), otlpdata.FromTraces(spans("a", "b"), otlpdata.Meta{})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Holder.(pipeline.Stopper).Stop(ctx); err == nil || !strings.Contains(err.Error(), "still sending 2 spans") {
			t.Errorf("got %v", err)
		}
		if h.Held() != 2 {
			t.Errorf("%d spans are held", h.Held())
		}
		close(next.release)
		synctest.Wait()
	})
}

// What a client makes the program hold is reserved: the texts of all scopes, and headers.
func TestHeldMemoryCountsEverything(t *testing.T) {
	const size = 10 << 10
	many := spans("a")
	scopes := many.ResourceSpans().At(0).ScopeSpans()
	for range 20 {
		scopes.At(0).CopyTo(scopes.AppendEmpty())
		scopes.At(scopes.Len() - 1).Scope().SetName(strings.Repeat("x", size))
	}
	headers := otlpdata.NewMetadata(map[string][]string{"large": {strings.Repeat("x", size)}})
	for name, c := range map[string]struct {
		batch *otlpdata.Batch
		least int64
	}{
		"scopes":  {otlpdata.FromTraces(many, otlpdata.Meta{}), 20 * size},
		"headers": {otlpdata.FromTraces(spans("a", "b"), otlpdata.Meta{Metadata: headers}), size},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := buildHolding(t, func(context.Context, ptrace.Traces, consumer.Traces) error { return nil })
				if err := h.Consume(t.Context(), c.batch); err != nil {
					t.Fatal(err)
				}
				if used := h.memory.Used(); used < c.least {
					t.Errorf("%d bytes are reserved, want at least %d", used, c.least)
				}
				time.Sleep(5 * time.Minute) // spans that are still held are then dropped
				h.check(t, 0, int64(c.batch.Len()), 0)
			})
		})
	}
}
