package server

import (
	"context"
	"runtime"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Translator translates requests whose wire format is not OTLP into batches. It charges the budget
// for their memory and runs at most GOMAXPROCS translations at the same time: more would not be
// faster but would use more memory. It is safe for concurrent use.
type Translator struct {
	budget *pipeline.Budget
	slots  chan struct{}
}

// NewTranslator returns a translator that charges the budget b.
func NewTranslator(b *pipeline.Budget) *Translator {
	return &Translator{budget: b, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Translated is a translated batch and its memory reservation. The caller must call Release when
// the outcome of the batch is known.
type Translated struct {
	Batch  *otlpdata.Batch
	memory *TranslationMemory
}

// Release releases the memory reservation.
func (t Translated) Release() { t.memory.reservation.Release() }

// TranslationMemory is the memory reservation of one translation, in addition to the body of the
// request, which the server has already charged.
type TranslationMemory struct {
	reservation *pipeline.Reservation
	body        int64
	limit       int64 // of the budget; 0 if unlimited
}

// Resize sets the reservation to n bytes. It returns a *otlpdata.LimitError (too large, do not
// retry) if n can never fit, and an overloaded error if it does not fit now.
func (m *TranslationMemory) Resize(n int64) error {
	if m.limit > 0 && n+m.body > m.limit {
		return &otlpdata.LimitError{Limit: "bytes of memory for the request", Max: int(m.limit), TooLarge: true}
	}
	return m.reservation.Resize(n)
}

// Translate waits for a free slot, reserves memory bytes and calls decode, which may resize the
// reservation. It then resizes the reservation to the size of the batch. It returns errors of
// decode, of [TranslationMemory.Resize], and of ctx while waiting.
func (t *Translator) Translate(
	ctx context.Context, body []byte, memory int64, decode func(*TranslationMemory) (*otlpdata.Batch, error),
) (Translated, error) {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return Translated{}, ctx.Err()
	}
	reservation, err := t.budget.Reserve(0)
	if err != nil {
		return Translated{}, err
	}
	m := &TranslationMemory{reservation: reservation, body: int64(len(body)), limit: t.budget.Limit()}
	b, err := m.translate(memory, decode)
	if err != nil {
		reservation.Release()
		return Translated{}, err
	}
	return Translated{Batch: b, memory: m}, nil
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
