package otlpparts

import (
	"math"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Memory is the memory for copies of the spans of one batch, in the budget of requests in flight.
// It is not safe for concurrent use.
type Memory struct {
	*pipeline.Reservation
	what        string
	limit, used int64
}

// NewMemory reserves size bytes. what names the bytes of Grow in errors.
func NewMemory(budget *pipeline.Budget, size int64, what string) (*Memory, error) {
	limit := budget.Limit()
	if limit <= 0 {
		limit = math.MaxInt64
	}
	reservation, err := budget.Reserve(min(size, limit)) // a queued batch may be larger than a changed limit
	if err != nil {
		return nil, err
	}
	return &Memory{Reservation: reservation, what: what, limit: limit}, nil
}

// Grow reserves n more bytes. If all bytes of Grow together exceed the limit of the budget, the
// error is permanent.
func (m *Memory) Grow(n int) error {
	m.used += int64(n)
	if m.used > m.limit {
		return &otlpdata.LimitError{Limit: m.what, Max: int(m.limit), TooLarge: true}
	}
	return m.Reservation.Grow(min(int64(n), m.limit-m.Held()))
}
