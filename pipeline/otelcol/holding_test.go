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

func buildHolding(t *testing.T, consume func(ctx context.Context, td ptrace.Traces, next consumer.Traces) error) *holdings {
	t.Helper()
	h := &holdings{memory: pipeline.NewHeldBudget(1 << 20), next: &sink{}}
	f := processor.NewFactory(component.MustNewType("late"), func() component.Config { return &hopConfig{} },
		processor.WithTraces(func(_ context.Context, _ processor.Settings, _ component.Config, next consumer.Traces) (processor.Traces, error) {
			inner, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error { return consume(ctx, td, next) })
			return &passing{Traces: inner}, err
		}, component.StabilityLevelStable))
	set := pipelinetest.NewFixture("late", 1<<20).Settings
	set.HeldMemory = h.memory
	set.Made = func(spans int) { h.made.Add(int64(spans)) }
	set.Dropped = func(spans int, _ string) { h.dropped.Add(int64(spans)) }
	p := buildWith(t, otelcol.HoldingProcessor(f, otelcol.Holding{
		Longest: func(component.Config) time.Duration { return time.Minute }, Flushes: true,
	}), set, nil, h.next)
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

// Spans that a component refuses after the client has its answer are lost, so they count as
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
				time.Sleep(5 * time.Minute) // what does not come out is given up
				h.check(t, 0, int64(c.batch.Len()), 0)
			})
		})
	}
}
