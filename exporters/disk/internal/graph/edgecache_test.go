package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestEdgeCache checks that answers stay correct while segments are added and removed, with much
// and with little memory, after any queries.
func TestEdgeCache(t *testing.T) {
	for _, memory := range []int64{0, 1, 3000} {
		rng := rand.New(rand.NewPCG(5, uint64(memory)))
		s := newRealStore(t, 1, scan.Options{Memory: memory})
		if _, err := s.Tables[1].Append(scantest.CutTraces(t, 2, 90, scantest.Day)[1], 0); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			if n := len(s.Segments); n > 4 || n > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(n)
				s.Segments = slices.Delete(s.Segments, i, i+1)
			} else {
				s.SegmentOf(t, scantest.CutTraces(t, 3, 90, scantest.Day.Add(time.Duration(rng.IntN(200))*time.Second))[rng.IntN(3)])
			}
			if rng.IntN(2) == 0 {
				scantest.Must(s.Warm(t.Context(), func(time.Duration) error { return nil }))
			}
			s.checkAnyWindow(t, rng)
		}
	}
}

// checkAnyWindow compares a result with the result of an empty cache.
func (s realStore) checkAnyWindow(t *testing.T, rng *rand.Rand) {
	t.Helper()
	from := scantest.Day.Add(time.Duration(rng.IntN(300)-60) * time.Second)
	to := from.Add(time.Duration(rng.IntN(200)) * time.Second)
	fresh := New(scan.NewStore(s.View, scan.Options{Memory: 1}))
	want, err := fresh.Dependencies(t.Context(), "", from, to)
	if err != nil || !want.Complete() {
		t.Fatalf("empty cache: got %+v, %v", want, err)
	}
	got, err := s.Dependencies(t.Context(), "", from, to)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%d segments, %s to %s: got %+v, %v, want %+v", len(s.Segments), from, to, got, err, want)
	}
}

// counted counts how often statistics are read and blocks are searched.
type counted struct {
	*segment.Segment
	reads *int
	index error
}

func (s counted) Edges() (*stats.EdgeStats, error) {
	*s.reads++
	return s.Segment.Edges()
}

func (s counted) TraceBlocks(tenant string, ids []otlpdata.TraceID) ([]int, error) {
	*s.reads++
	list, err := s.Segment.TraceBlocks(tenant, ids)
	return list, errors.Join(s.index, err)
}

// TestEdgeCacheRemembers checks that a repeated query reads no segments and that a query after a
// change reads only what is necessary. The parents in a removed segment are searched again and
// found elsewhere.
func TestEdgeCacheRemembers(t *testing.T) {
	reads := 0
	s := newRealStore(t, 1, scan.Options{})
	sent := scantest.CutTraces(t, 3, 90, scantest.Day)
	add := func(b *otlpdata.Batch) {
		s.SegmentOf(t, b)
		last := len(s.Segments) - 1
		s.Segments[last] = counted{Segment: s.Segments[last].(*segment.Segment), reads: &reads}
	}
	ask := func(most int, want ...*otlpdata.Batch) {
		t.Helper()
		reads = 0
		got, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
		if edges, _ := storequery.CountCalls(time.Time{}, time.Time{}, want...); err != nil || !reflect.DeepEqual(got.Edges, edges) {
			t.Errorf("got %+v, %v; want %+v", got, err, edges)
		}
		if reads > most {
			t.Errorf("segments read %d times, want at most %d", reads, most)
		}
	}
	add(sent[0])
	add(sent[1])
	ask(4, sent[:2]...)
	ask(0, sent[:2]...)
	add(sent[2])
	ask(6, sent...) // the statistics of the third, its spans in the other two, their spans in it, and far lookups
	ask(0, sent...)
	s.Segments = s.Segments[1:]
	ask(4, sent[1:]...)
	ask(0, sent[1:]...)
	add(sent[0])
	ask(6, sent...)
	ask(0, sent...)
}

// TestEdgeCacheSearchesMemtables checks that spans without a parent in segments are cached, or read
// again if they are many, and searched in memtables.
func TestEdgeCacheSearchesMemtables(t *testing.T) {
	for _, spans := range []int{300, 3 * maxCachedUnresolved} {
		s := newRealStore(t, 1, scan.Options{})
		sent := scantest.CutTraces(t, 1, spans, scantest.Day)
		s.SegmentOf(t, sent[0])
		for range 2 {
			if g, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{}); err != nil || len(g.Edges) > 1 {
				t.Fatalf("Dependencies returned %+v, %v", g, err)
			}
		}
		for _, b := range sent[1:] {
			if _, err := s.Tables[0].Append(b, 0); err != nil {
				t.Fatal(err)
			}
		}
		want, err := storequery.CountCalls(time.Time{}, time.Time{}, sent...)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
			if err != nil || !reflect.DeepEqual(got.Edges, want) {
				t.Errorf("%d spans: got %+v, %v; want %+v", spans, got.Edges, err, want)
			}
		}
	}
}

// TestEdgeCacheAfterDamage checks that every result says that it is incomplete because of damage.
func TestEdgeCacheAfterDamage(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	sent := scantest.CutTraces(t, 3, 90, scantest.Day)
	s.SegmentOf(t, sent[0])
	s.SegmentOf(t, sent[1])
	s.Segments[1] = blind{s.Segments[1].(*segment.Segment)}
	for range 3 {
		g, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
		if err != nil || g.Complete() {
			t.Errorf("got %+v, %v; want an incomplete answer", g, err)
		}
	}
}

// blind is a segment whose rows cannot be read because its vocabulary is damaged.
type blind struct{ *segment.Segment }

func (b blind) Tables() (*rows.Tables, error) {
	return nil, &source.DamageError{File: "f", Part: "tables", Err: errors.New("rotten")}
}

// TestEdgeCachesOfTenants checks that the caches of many tenants together respect the limit on
// memory, and that each has its own calls.
func TestEdgeCachesOfTenants(t *testing.T) {
	const limit = 8 << 10
	s := newRealStore(t, 1, scan.Options{Memory: limit})
	for i := range 30 {
		for _, b := range scantest.CutTraces(t, 1, 9+i, scantest.Day) {
			s.SegmentOf(t, ofTenant(t, b, fmt.Sprint("tenant ", i)))
		}
	}
	for range 2 {
		for i := range 30 {
			g, err := s.Dependencies(t.Context(), fmt.Sprint("tenant ", i), time.Time{}, time.Time{})
			n := uint64(0)
			for _, e := range g.Edges {
				n += e.Calls
			}
			if err != nil || n != uint64(8+i) {
				t.Fatalf("tenant %d has %d calls, %v", i, n, err)
			}
		}
		sum := int64(0)
		for _, l := range s.caches.byTenant {
			sum += l.memory
		}
		if sum > 2*limit || len(s.caches.byTenant) == 30 {
			t.Errorf("%d caches with %d bytes", len(s.caches.byTenant), sum)
		}
	}
}

// TestEdgeCacheForgetsNames checks that the names of removed segments do not fill the cache.
func TestEdgeCacheForgetsNames(t *testing.T) {
	const limit = 16 << 10
	s := newRealStore(t, 1, scan.Options{Memory: limit})
	for i := range 200 {
		s.Segments = nil
		s.SegmentOf(t, pair(fmt.Sprint("parent ", i), fmt.Sprint("child ", i)))
		if g, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{}); err != nil || len(g.Edges) != 1 {
			t.Fatalf("Dependencies returned %+v, %v", g, err)
		}
		if l := s.caches.byTenant[""]; l.memory > limit || len(l.entries) != 1 {
			t.Fatalf("%d entries with %d bytes", len(l.entries), l.memory)
		}
	}
}

// pair returns a request of a call between two services.
func pair(parent, child string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	for i, service := range []string{parent, child} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetSpanID([8]byte{byte(i + 1)})
		s.SetParentSpanID([8]byte{byte(i)})
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

func ofTenant(t *testing.T, b *otlpdata.Batch, tenant string) *otlpdata.Batch {
	t.Helper()
	td, err := b.Traces()
	if err != nil {
		t.Fatal(err)
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{Tenant: tenant})
}
