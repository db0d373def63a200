package scantest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Synthetic distributes spans among tables at random and stores some of them in several tables.
type Synthetic struct {
	Blocks Gauge
	Views  atomic.Int64 // number of views that are not released
	mu     sync.Mutex   // guards all fields below
	rng    *rand.Rand
	Tables []*table
	Damage []*source.DamageError
}

// NewSynthetic returns an empty store.
func NewSynthetic(tables int, seed uint64) *Synthetic {
	s := &Synthetic{rng: rand.New(rand.NewPCG(seed, 0))}
	for i := range tables {
		s.Tables = append(s.Tables, newTable(fmt.Sprintf("table %d", i), seed+uint64(i), &s.Blocks))
	}
	return s
}

// Collect sets OnDamage, so that reports are appended to Damage.
func (s *Synthetic) Collect(o scan.Options) scan.Options {
	o.OnDamage = func(e *source.DamageError) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Damage = append(s.Damage, e)
	}
	return o
}

// testView panics if it is released twice.
type testView struct {
	store    *Synthetic
	sources  []source.Source
	released atomic.Bool
}

// View returns a view of what is stored now. Releasing it twice panics.
func (s *Synthetic) View() scan.View {
	s.Views.Add(1)
	v := &testView{store: s}
	s.mu.Lock() // a request is visible as a whole or not at all
	defer s.mu.Unlock()
	for _, t := range s.Tables {
		v.sources = append(v.sources, t.snapshot(&v.released))
	}
	return v
}

// Sources implements scan.View.
func (v *testView) Sources() []source.Source { return v.sources }

// Release implements scan.View.
func (v *testView) Release() {
	if v.released.Swap(true) {
		panic("view released twice")
	}
	v.store.Views.Add(-1)
}

// Consume implements storetest.Subject.
func (s *Synthetic) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := make([][]tracestore.Span, len(s.Tables))
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		own := cloneSpan(sp)
		for again := true; again; again = s.rng.IntN(5) == 0 {
			i := s.rng.IntN(len(share))
			share[i] = append(share[i], own)
		}
		return nil
	})
	for i, spans := range share {
		s.rng.Shuffle(len(spans), func(a, b int) { spans[a], spans[b] = spans[b], spans[a] })
		s.Tables[i].add(b.Meta().Tenant, spans, 1+s.rng.IntN(100))
	}
	return err
}

// cloneSpan copies what is only valid during a walk.
func cloneSpan(s tracestore.Span) tracestore.Span {
	r, sc, sp := *s.Resource, *s.Scope, *s.Span
	r.Attributes, sc.Attributes, sp.Attributes = slices.Clone(r.Attributes), slices.Clone(sc.Attributes), slices.Clone(sp.Attributes)
	sp.Events, sp.Links = slices.Clone(sp.Events), slices.Clone(sp.Links)
	for i := range sp.Events {
		sp.Events[i].Attributes = slices.Clone(sp.Events[i].Attributes)
	}
	for i := range sp.Links {
		sp.Links[i].Attributes = slices.Clone(sp.Links[i].Attributes)
	}
	return tracestore.Span{Resource: &r, Scope: &sc, Span: &sp}
}

// Rot damages one of n blocks on average and repairs the others.
func (s *Synthetic) Rot(n int) {
	for _, t := range s.Tables {
		for _, b := range t.Blocks {
			b.Rot.Store(Sound)
			if s.rng.IntN(n) == 0 {
				b.Rot.Store(int32(1 + s.rng.IntN(rottenCells)))
			}
		}
	}
}
