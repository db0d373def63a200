package disk

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// syntheticStore answers queries from synthetic sources with imprecise hints.
type syntheticStore struct {
	*scantest.Synthetic
	*queries
}

func newSyntheticStore(tables int, seed uint64, o scan.Options) *syntheticStore {
	s := scantest.NewSynthetic(tables, seed)
	return &syntheticStore{s, newQueries(s.View, s.Collect(o))}
}

// realStore answers queries from memtables and segments.
type realStore struct {
	*scantest.Real
	*queries
}

func newRealStore(tb testing.TB, seed uint64, o scan.Options) *realStore {
	tb.Helper()
	s := scantest.NewReal(tb, seed)
	return &realStore{s, newQueries(s.View, o)}
}

// withoutCalls hides the methods that count calls. The suite checks them only for stores that keep
// the spans of a request together.
func withoutCalls(s storetest.Subject) storetest.Subject { return struct{ storetest.Subject }{s} }

// TestQueriesOfSyntheticSources runs the suite of all stores on synthetic sources.
func TestQueriesOfSyntheticSources(t *testing.T) {
	soak.SkipIfRaced(t)
	for _, tables := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(tables, " sources"), func(t *testing.T) {
			seed := soak.Seed(t)
			run := storetest.Store
			if tables != 2 {
				run = func(t *testing.T, open func(testing.TB) storetest.Subject) {
					storetest.Variant(t, open, layoutChecks...)
				}
			}
			run(t, func(tb testing.TB) storetest.Subject {
				s := newSyntheticStore(tables, seed, scan.Options{PieceBytes: 64 << 10})
				tb.Cleanup(func() {
					if n := s.Blocks.Open.Load(); n != 0 {
						tb.Errorf("%d blocks left open", n)
					}
				})
				return withoutCalls(s)
			})
		})
	}
}

// TestQueriesOfMemtablesAndSegments runs the suite of all stores on memtables and segments.
func TestQueriesOfMemtablesAndSegments(t *testing.T) {
	soak.SkipIfRaced(t)
	seed := soak.Seed(t)
	storetest.Store(t, func(tb testing.TB) storetest.Subject {
		s := newRealStore(tb, seed, scan.Options{OnDamage: func(e *source.DamageError) { tb.Errorf("damage: %v", e) }})
		s.Distribute = true
		return withoutCalls(s)
	})
}

// TestQueriesWithOneDecoder checks that no query needs more than one decoder.
func TestQueriesWithOneDecoder(t *testing.T) {
	soak.SkipIfRaced(t)
	seed := soak.Seed(t)
	for i := range uint64(6) {
		s := newRealStore(t, seed+i, scan.Options{Decoders: 1})
		m := storetest.NewModel(t, seed+i)
		for range 60 {
			m.Write(s)
			m.Check(s)
		}
		m.CheckAll(s)
	}
}

// TestDecodersAreBounded checks that concurrent queries together open at most the allowed number of
// blocks, and that callers may write, stop or query while they iterate over results.
func TestDecodersAreBounded(t *testing.T) {
	const decoders, queries = 2, 20
	s := newSyntheticStore(2, 3, scan.Options{Decoders: decoders})
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(3, 3))}
	w.Send(t, s, 40)
	more := scantest.WideTrace(t, 10)
	var running sync.WaitGroup
	for i := range queries {
		running.Go(func() {
			res, err := s.Find(t.Context(), tracestore.Query{}, tracestore.Want(i%3))
			if err != nil {
				t.Errorf("Find: %v", err)
				return
			}
			n := 0
			for r, err := range res.All {
				if err != nil {
					t.Errorf("Find: %v", err)
				}
				if n++; n > i {
					break
				}
				scantest.Must(s.Consume(t.Context(), more))
				for _, err := range s.Traces(t.Context(), "", []tracestore.TraceRef{{ID: r.ID}}) {
					if err != nil {
						t.Errorf("Traces: %v", err)
					}
				}
				if _, err := s.AttributeValues(t.Context(), "", "k", "", 0); err != nil {
					t.Errorf("AttributeValues: %v", err)
				}
			}
		})
	}
	running.Wait()
	if most := s.Blocks.Most.Load(); most > decoders || most == 0 {
		t.Errorf("%d blocks were open at the same time, want at most %d", most, decoders)
	}
	if open, views := s.Blocks.Open.Load(), s.Views.Load(); open != 0 || views != 0 {
		t.Errorf("%d blocks and %d views left open", open, views)
	}
}
