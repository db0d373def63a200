package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func emptyBatch(*TranslationMemory) (*otlpdata.Batch, error) {
	return otlpdata.FromOTLP(nil, otlpdata.Meta{}, otlpdata.Limits{})
}

func TestTranslationIsChargedToTheBudget(t *testing.T) {
	budget := pipeline.NewBudget(1000)
	tr := NewTranslator(budget)
	body := make([]byte, 100)
	var limit *otlpdata.LimitError
	if _, err := tr.Translate(t.Context(), body, 901, emptyBatch); !errors.As(err, &limit) || ReasonOf(err) != ReasonTooLarge {
		t.Errorf("larger than the budget: %v", err)
	}
	other, err := budget.Reserve(500)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Translate(t.Context(), body, 600, emptyBatch); ReasonOf(err) != ReasonOverBudget {
		t.Errorf("larger than the free budget: %v", err)
	}
	other.Release()
	during := int64(0)
	b, err := tr.Translate(t.Context(), body, 600, func(m *TranslationMemory) (*otlpdata.Batch, error) {
		if err := m.Resize(900); err != nil {
			t.Error(err)
		}
		during = budget.Used()
		return emptyBatch(m)
	})
	if err != nil || during != 900 || budget.Used() != int64(b.Batch.Size()+b.Batch.WalkMemory()) {
		t.Errorf("%v; %d bytes reserved during the translation, %d after it", err, during, budget.Used())
	}
	b.Release()
	broken := errors.New("broken")
	if _, err := tr.Translate(t.Context(), body, 600,
		func(*TranslationMemory) (*otlpdata.Batch, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes are still reserved", budget.Used())
	}
}

func TestConcurrentTranslationsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := NewTranslator(pipeline.NewBudget(0))
		gate := make(chan struct{})
		var running atomic.Int64
		done := make(chan error)
		n := 3 * runtime.GOMAXPROCS(0)
		for range n {
			go func() {
				_, err := tr.Translate(t.Context(), nil, 0, func(m *TranslationMemory) (*otlpdata.Batch, error) {
					running.Add(1)
					<-gate
					return emptyBatch(m)
				})
				done <- err
			}()
		}
		synctest.Wait()
		if got := running.Load(); got != int64(runtime.GOMAXPROCS(0)) {
			t.Errorf("%d concurrent translations", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := tr.Translate(ctx, nil, 0, emptyBatch); ReasonOf(err) != ReasonIncomplete {
			t.Errorf("disconnected client: %v", err)
		}
		close(gate)
		for range n {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestReasonOf(t *testing.T) {
	for want, err := range map[string]error{
		ReasonUndecodable: errors.New("x"),
		ReasonTooLarge:    fmt.Errorf("x: %w", &otlpdata.LimitError{TooLarge: true}),
		"mine":            fmt.Errorf("x: %w", &Refusal{Reason: "mine"}),
	} {
		if got := ReasonOf(pipeline.Permanent(err)); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
	if got := ReasonOf(&otlpdata.LimitError{}); got != ReasonUndecodable {
		t.Errorf("limit other than the size: got %q", got)
	}
}
