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

func TestTranslationKeepsToTheBudget(t *testing.T) {
	budget := pipeline.NewBudget(1000)
	tr := NewTranslations(budget)
	body := make([]byte, 100)
	var limit *otlpdata.LimitError
	if _, err := tr.Do(t.Context(), body, 901, emptyBatch); !errors.As(err, &limit) || ReasonOf(err) != ReasonTooLarge {
		t.Errorf("what can never fit: %v", err)
	}
	other, err := budget.Reserve(500)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Do(t.Context(), body, 600, emptyBatch); ReasonOf(err) != ReasonOverBudget {
		t.Errorf("what does not fit now: %v", err)
	}
	other.Release()
	during := int64(0)
	b, err := tr.Do(t.Context(), body, 600, func(m *TranslationMemory) (*otlpdata.Batch, error) {
		if err := m.Resize(900); err != nil {
			t.Error(err)
		}
		during = budget.Used()
		return emptyBatch(m)
	})
	if err != nil || during != 900 || budget.Used() != int64(b.Size()+b.WalkMemory()) {
		t.Errorf("%v; %d bytes were held during the translation, %d behind it", err, during, budget.Used())
	}
	b.Release()
	broken := errors.New("broken")
	if _, err := tr.Do(t.Context(), body, 600, func(*TranslationMemory) (*otlpdata.Batch, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes are still held", budget.Used())
	}
}

func TestTranslationsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := NewTranslations(pipeline.NewBudget(0))
		gate := make(chan struct{})
		var running atomic.Int64
		done := make(chan error)
		n := 3 * runtime.GOMAXPROCS(0)
		for range n {
			go func() {
				_, err := tr.Do(t.Context(), nil, 0, func(m *TranslationMemory) (*otlpdata.Batch, error) {
					running.Add(1)
					<-gate
					return emptyBatch(m)
				})
				done <- err
			}()
		}
		synctest.Wait()
		if got := running.Load(); got != int64(runtime.GOMAXPROCS(0)) {
			t.Errorf("%d at once", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := tr.Do(ctx, nil, 0, emptyBatch); ReasonOf(err) != ReasonIncomplete {
			t.Errorf("a client that is gone: %v", err)
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
		t.Errorf("a limit on the shape: got %q", got)
	}
}
