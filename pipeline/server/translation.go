package server

import (
	"context"
	"errors"
	"runtime"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Translations are the requests of a receiver whose wire format is not OTLP, on their way to batches. They keep to the budget, and as many are
// under way at once as there are processors: more would not be faster, and would hold memory.
type Translations struct {
	budget *pipeline.Budget
	slots  chan struct{}
}

// NewTranslations returns none under way.
func NewTranslations(b *pipeline.Budget) *Translations {
	return &Translations{budget: b, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Translated is the batch of a request, with what it takes of the budget. The owner releases it when the batch's outcome is known.
type Translated struct {
	*otlpdata.Batch
	memory *TranslationMemory
}

// Release gives back what the batch takes of the budget.
func (t Translated) Release() { t.memory.held.Release() }

// TranslationMemory is what one request takes of the budget beside its body, which the server has taken it for.
type TranslationMemory struct {
	held  *pipeline.Reservation
	body  int64
	limit int64
}

// Resize makes it n bytes. What can never fit is a *otlpdata.LimitError: too large, not to be sent again; what does not fit now is overloaded.
func (m *TranslationMemory) Resize(n int64) error {
	if m.limit > 0 && n+m.body > m.limit {
		return &otlpdata.LimitError{Limit: "bytes of memory for the request", Max: int(m.limit), TooLarge: true}
	}
	return m.held.Resize(n)
}

// Do waits for its turn, takes memory bytes of the budget for a body, calls decode, and keeps what the batch takes from then on. decode may ask
// for more memory. Errors are decode's, the budget's as [TranslationMemory.Resize] tells, and ctx's while waiting.
func (t *Translations) Do(ctx context.Context, body []byte, memory int64, decode func(*TranslationMemory) (*otlpdata.Batch, error)) (Translated, error) {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return Translated{}, ctx.Err()
	}
	held, err := t.budget.Reserve(0)
	if err != nil {
		return Translated{}, err
	}
	m := &TranslationMemory{held: held, body: int64(len(body)), limit: t.budget.Limit()}
	b, err := m.translate(memory, decode)
	if err != nil {
		held.Release()
		return Translated{}, err
	}
	return Translated{b, m}, nil
}

func (m *TranslationMemory) translate(memory int64, decode func(*TranslationMemory) (*otlpdata.Batch, error)) (*otlpdata.Batch, error) {
	if err := m.Resize(memory); err != nil {
		return nil, err
	}
	b, err := decode(m)
	if err != nil {
		return nil, err
	}
	return b, m.Resize(int64(b.Size() + b.WalkMemory()))
}

// ReasonOf names the refusal of a request that was read, for Refused.
func ReasonOf(err error) string {
	var refusal *Refusal
	var limit *otlpdata.LimitError
	switch {
	case errors.As(err, &refusal):
		return refusal.Reason
	case errors.Is(err, pipeline.ErrOverBudget):
		return ReasonOverBudget
	case errors.As(err, &limit) && limit.TooLarge:
		return ReasonTooLarge
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ReasonIncomplete // nobody waits for the answer any more
	}
	return ReasonUndecodable
}
