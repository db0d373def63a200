package graph

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// countSegments returns a store of segments that count in reads how often they are read.
func countSegments(t *testing.T, reads *int, sent ...*otlpdata.Batch) realStore {
	t.Helper()
	s := newRealStore(t, 1, scan.Options{})
	for i, b := range sent {
		s.SegmentOf(t, b)
		s.Segments[i] = counted{Segment: s.Segments[i].(*segment.Segment), reads: reads}
	}
	return s
}

// heldView counts views that are not released.
type heldView struct {
	scan.View
	held *int
}

func (v heldView) Release() {
	*v.held--
	v.View.Release()
}

// TestWarm checks that a query reads nothing after Warm, that a second call does nothing, and that
// Warm works on one segment at a time and holds no view in between.
func TestWarm(t *testing.T) {
	reads := 0
	sent := scantest.CutTraces(t, 3, 90, scantest.Day)
	s := countSegments(t, &reads, sent...)
	steps, held := 0, 0
	s.Builder = New(scan.NewStore(func() scan.View {
		held++
		return heldView{s.View(), &held}
	}, scan.Options{}))
	pace := func(time.Duration) error {
		if held != 0 {
			t.Errorf("%d views held in pace", held)
		}
		steps++
		return nil
	}
	for _, want := range []int{3, 0} {
		if err := s.Warm(t.Context(), pace); err != nil || steps != want {
			t.Errorf("Warm took %d steps, want %d; error %v", steps, want, err)
		}
		steps, reads = 0, 0
		got, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
		if edges, _ := storequery.CountCalls(time.Time{}, time.Time{}, sent...); err != nil || !reflect.DeepEqual(got.Edges, edges) {
			t.Errorf("got %+v, %v; want %+v", got, err, edges)
		}
		if reads != 0 {
			t.Errorf("segments read %d times", reads)
		}
	}
}

// TestWarmTenants checks that Warm works for the tenants that were queried before.
func TestWarmTenants(t *testing.T) {
	reads := 0
	sent := scantest.CutTraces(t, 2, 30, scantest.Day)
	s := countSegments(t, &reads, ofTenant(t, sent[0], "a"), ofTenant(t, sent[1], "a"))
	for _, ask := range []bool{false, true} {
		if ask {
			from := scantest.Day.Add(time.Hour) // no spans
			if _, err := s.Dependencies(t.Context(), "a", from, from.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Warm(t.Context(), func(time.Duration) error { return nil }); err != nil {
			t.Fatal(err)
		}
		reads = 0
		if l := s.caches.byTenant["a"]; (l != nil) != ask || ask && len(l.entries) != 2 {
			t.Errorf("tenant queried: %v, cache %+v", ask, l)
		}
	}
}

// TestWarmEnds checks that Warm returns the error of pace or of its context, and keeps its results.
func TestWarmEnds(t *testing.T) {
	reads := 0
	s := countSegments(t, &reads, scantest.CutTraces(t, 3, 90, scantest.Day)...)
	later := errors.New("later")
	for n := 1; n <= 3; n++ {
		err := s.Warm(t.Context(), func(time.Duration) error { return later })
		if !errors.Is(err, later) || len(s.caches.byTenant[""].entries) != n {
			t.Errorf("Warm returned %v, %d entries, want %d", err, len(s.caches.byTenant[""].entries), n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Warm(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// slow is a segment whose first Open blocks until its context ends.
type slow struct {
	*segment.Segment
	met *bool
}

func (s slow) Open(ctx context.Context, number int) (source.Block, error) {
	if !*s.met {
		*s.met = true
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Segment.Open(ctx, number)
}

// TestWarmGivesWay checks that a waiting query makes Warm abandon a segment, and that Warm goes on
// with the next.
func TestWarmGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := scantest.CutTraces(t, 3, 90, scantest.Day)
		s := newRealStore(t, 1, scan.Options{})
		met := false
		for i, b := range sent {
			s.SegmentOf(t, b)
			s.Segments[i] = slow{Segment: s.Segments[i].(*segment.Segment), met: &met}
		}
		warmed := make(chan error)
		go func() { warmed <- s.Warm(t.Context(), func(time.Duration) error { return nil }) }()
		synctest.Wait()
		began := time.Now()
		got, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
		if edges, _ := storequery.CountCalls(time.Time{}, time.Time{}, sent...); err != nil || !reflect.DeepEqual(got.Edges, edges) {
			t.Errorf("got %+v, %v; want %+v", got, err, edges)
		}
		if waited := time.Since(began); waited != maxWarmWait {
			t.Errorf("query waited %s", waited)
		}
		if err := <-warmed; err != nil {
			t.Error(err)
		}
	})
}
