package pipelinetest

import (
	"context"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Sink is a Consumer that stores batches, for tests of the component before it. The zero value
// accepts everything. Sink is safe for concurrent use.
type Sink struct {
	// Answer is called for each batch. The batch is stored if Answer returns nil. A nil Answer
	// accepts all batches. Set it before the first batch.
	Answer func(context.Context, *otlpdata.Batch) error

	mu      sync.Mutex
	batches []*otlpdata.Batch
}

// Consume stores a batch if Answer returns nil.
func (s *Sink) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if s.Answer != nil {
		if err := s.Answer(ctx, b); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, b)
	return nil
}

// Batches returns the stored batches in order.
func (s *Sink) Batches() []*otlpdata.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// Spans returns the number of stored spans.
func (s *Sink) Spans() (n int) {
	for _, b := range s.Batches() {
		n += b.Len()
	}
	return n
}
