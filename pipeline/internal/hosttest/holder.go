package hosttest

import (
	"context"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Shelf is the `shelf` processor: it holds all batches until Release or Stop.
type Shelf struct {
	Part
	Beside
	next pipeline.Consumer
	set  pipeline.Settings
	busy chan struct{} // full during Release and Drop: Stop waits for them

	mu      sync.Mutex
	batches []*otlpdata.Batch
	held    int64
}

// ShelfFactory returns the factory of the `shelf` processor. found is called with each new one.
func (w *World) ShelfFactory(found func(*Shelf)) pipeline.Factory {
	return pipeline.Processor("shelf", func() StepConfig { return StepConfig{} },
		func(s pipeline.Settings, _ StepConfig, next pipeline.Consumer) (*Shelf, error) {
			shelf := &Shelf{Part: Part{w, s.ID.String()}, next: next, set: s, busy: make(chan struct{}, 1)}
			found(shelf)
			return shelf, w.RecordBuild(s, "")
		})
}

var _ pipeline.Holder = (*Shelf)(nil)

// Consume keeps b.
func (s *Shelf) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, b)
	s.held += int64(b.Len())
	return nil
}

// Held returns the number of spans.
func (s *Shelf) Held() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

func (s *Shelf) take() []*otlpdata.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	batches := s.batches
	s.batches = nil
	return batches
}

func (s *Shelf) settled(batches []*otlpdata.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range batches {
		s.held -= int64(b.Len())
	}
}

// Release passes on all batches of each tenant as one.
func (s *Shelf) Release(ctx context.Context) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	byTenant := map[string][]*otlpdata.Batch{}
	for _, b := range s.take() {
		byTenant[b.Meta().Tenant] = append(byTenant[b.Meta().Tenant], b)
	}
	for _, batches := range byTenant {
		pipeline.ConsumeJoined(ctx, s.next, batches, func(of []*otlpdata.Batch, _ error) { s.settled(of) })
	}
}

// Drop drops all batches for a reason.
func (s *Shelf) Drop(reason string) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	batches := s.take()
	for _, b := range batches {
		s.set.Dropped(b.Len(), reason)
	}
	s.settled(batches)
}

// Stop passes on all batches unless ctx has ended.
func (s *Shelf) Stop(ctx context.Context) error {
	if ctx.Err() == nil {
		s.Release(ctx)
	}
	return s.Part.Stop(ctx)
}

// Sieve is the `sieve` processor: it drops batches of the service `dust`.
type Sieve struct {
	Part
	next pipeline.Consumer
}

// SieveFactory returns the factory of the `sieve` processor.
func (w *World) SieveFactory() pipeline.Factory {
	return pipeline.Processor("sieve", func() StepConfig { return StepConfig{} },
		func(s pipeline.Settings, _ StepConfig, next pipeline.Consumer) (*Sieve, error) {
			return &Sieve{Part{w, s.ID.String()}, next}, w.RecordBuild(s, "")
		})
}

// Consume is like ConsumeDropping without the number.
func (s *Sieve) Consume(ctx context.Context, b *otlpdata.Batch) error {
	_, err := s.ConsumeDropping(ctx, b)
	return err
}

// ConsumeDropping passes on b unless it is dust.
func (s *Sieve) ConsumeDropping(ctx context.Context, b *otlpdata.Batch) (int, error) {
	if b.Services()[0].Service == "dust" {
		return b.Len(), nil
	}
	return 0, s.next.Consume(ctx, b)
}
