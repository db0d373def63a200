package pipelinetest

import (
	"context"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Sink is the rest of a pipeline, for tests of what stands in front of it. The zero value takes everything. It is safe for concurrent use.
type Sink struct {
	// Answer decides about a batch before it is taken; nil takes all. It must not be changed while batches come.
	Answer func(context.Context, *otlpdata.Batch) error

	mu    sync.Mutex
	taken []*otlpdata.Batch
}

// Consume takes a batch if Answer lets it.
func (s *Sink) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if s.Answer != nil {
		if err := s.Answer(ctx, b); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, b)
	return nil
}

// Batches returns what was taken, in order.
func (s *Sink) Batches() []*otlpdata.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// Spans returns how many spans were taken.
func (s *Sink) Spans() (n int) {
	for _, b := range s.Batches() {
		n += b.Len()
	}
	return n
}
