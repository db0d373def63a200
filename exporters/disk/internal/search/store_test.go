package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// store deals spans among tables at random, some of them to several.
type store struct {
	*Engine
	gauge  gauge
	views  atomic.Int64 // that are not released
	mu     sync.Mutex   // guards all below
	rng    *rand.Rand
	tables []*table
	damage []*source.DamageError
}

func openStore(tables int, seed uint64, o Options) *store {
	s := &store{rng: rand.New(rand.NewPCG(seed, 0))}
	for i := range tables {
		s.tables = append(s.tables, newTable(fmt.Sprintf("table %d", i), seed+uint64(i), &s.gauge))
	}
	o.OnDamage = func(e *source.DamageError) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.damage = append(s.damage, e)
	}
	s.Engine = New(s.view, o)
	return s
}

// testView checks that it is released once.
type testView struct {
	store    *store
	sources  []source.Source
	released atomic.Bool
}

func (s *store) view() View {
	s.views.Add(1)
	v := &testView{store: s}
	s.mu.Lock() // one request is seen whole or not at all
	defer s.mu.Unlock()
	for _, t := range s.tables {
		v.sources = append(v.sources, t.snapshot(&v.released))
	}
	return v
}

func (v *testView) Sources() []source.Source { return v.sources }

func (v *testView) Release() {
	if v.released.Swap(true) {
		panic("a view is released twice")
	}
	v.store.views.Add(-1)
}

// Consume implements storetest.Subject.
func (s *store) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := make([][]tracestore.Span, len(s.tables))
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
		s.tables[i].add(b.Meta().Tenant, spans, 1+s.rng.IntN(100))
	}
	return err
}

// cloneSpan copies what is valid only during a walk.
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

func TestStore(t *testing.T) {
	for _, tables := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(tables, " sources"), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			storetest.Store(t, func(tb testing.TB) storetest.Subject {
				s := openStore(tables, seed, Options{PieceBytes: 64 << 10})
				tb.Cleanup(func() {
					if n := s.gauge.open.Load(); n != 0 {
						tb.Errorf("%d blocks are still open", n)
					}
				})
				return withoutCalls(s)
			})
		})
	}
}
