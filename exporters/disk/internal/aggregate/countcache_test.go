package aggregate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/test/bench"
)

// keptStore stores spans of the data set in segments of several ranges and in a memtable.
func keptStore(t *testing.T) (realStore, scan.Range) {
	t.Helper()
	const spans, sealed = 50_000, 20
	s := newRealStore(t, 1, scan.Options{Decoders: 2})
	s.partRows, s.rangeBlocks = 1, 4
	n := 0
	for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		scantest.Must(err)
		_, err = s.Tables[0].Append(b, 0)
		scantest.Must(err)
		if n++; n%sealed == 0 && len(s.Segments) < 4 {
			s.Seal(0)
		}
	}
	times := scan.Range{From: ^uint64(0)}
	for _, src := range s.Segments {
		_, oldest, newest := src.Bounds()
		times.From, times.To = min(times.From, oldest), max(times.To, newest)
	}
	return s, times
}

// withoutOthers removes the values of fields that have uncounted values. Which values of such a
// field are counted depends on the cache.
func withoutOthers(a *tracestore.Aggregate) {
	if a.Facets == nil {
		return
	}
	for i := range a.Facets.Facets {
		if f := &a.Facets.Facets[i]; f.Other > 0 {
			f.Values, f.Other, f.Score = nil, 1, 0
		}
	}
	slices.SortFunc(a.Facets.Facets, func(a, b tracestore.Facet) int {
		return cmp.Or(cmp.Compare(a.Field.Place, b.Field.Place), cmp.Compare(a.Field.Key, b.Field.Key))
	})
}

// TestKeptCounts compares the counts of repeated queries with random windows with those that are
// not kept, with and without enough memory.
func TestKeptCounts(t *testing.T) {
	seed := soak.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, times := keptStore(t)
	failed := scantest.Property(tracestore.Status, tracestore.Eq, tracestore.Text("error"))
	service := scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text(bench.New(7, scantest.Day).Services()[5]))
	route := []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.AnyAttribute, Key: "http.route"}}
	wants := []tracestore.Aggregation{
		{Facets: tracestore.FacetQuery{Values: 20}},
		{Facets: tracestore.FacetQuery{Values: 20, Selection: &tracestore.Selection{Where: failed}}},
		{Facets: tracestore.FacetQuery{Values: 20, Fields: append(route, tracestore.Field{Place: tracestore.EventName})}},
		{Groups: tracestore.GroupQuery{Limit: 30, By: route}},
		{Groups: tracestore.GroupQuery{Limit: 30, By: []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.Name}}}},
		{Groups: tracestore.GroupQuery{Limit: 30, By: route[:1], Step: time.Second,
			Measure: tracestore.MeasureDistribution, Of: tracestore.Field{Place: tracestore.Duration}}},
		{Groups: tracestore.GroupQuery{Limit: 1, Step: time.Second,
			Measure: tracestore.MeasureDistribution, Of: tracestore.Field{Place: tracestore.Duration}}},
	}
	rounds := 20
	if soak.Raced() { // make test-long runs all
		rounds = 5
	}
	for _, limit := range []int64{8 << 20, 200 << 10} {
		s.counts = newCountCache(limit)
		scanned, direct := 0, 0
		for range rounds {
			from, to := times.From+rng.Uint64N(times.To-times.From), times.From+rng.Uint64N(times.To-times.From)
			q := tracestore.Query{From: scantest.At(min(from, to)), To: scantest.At(max(from, to))}
			if rng.IntN(2) == 0 {
				q.Where = service
			}
			if rng.IntN(3) == 0 {
				q.From, q.To = scantest.At(times.From), scantest.At(times.To)
			}
			a := wants[rng.IntN(len(wants))]
			if rng.IntN(2) == 0 && a.Facets.Values > 0 { // without exemplars, groups need less of a budget
				q.Budget.Spans = 10_000
			}
			got, err := s.Aggregate(t.Context(), q, a)
			scantest.Must(err)
			again, err := s.Aggregate(t.Context(), q, a)
			scantest.Must(err)
			a.Exemplars = 1 // so that counts are not kept
			want, err := s.Aggregate(t.Context(), q, a)
			scantest.Must(err)
			scanned, direct = scanned+again.Scanned, direct+want.Scanned
			withoutOthers(&got)
			withoutOthers(&again)
			withoutOthers(&want)
			if again.Scanned = got.Scanned; !reflect.DeepEqual(again, got) {
				t.Fatalf("%+v, %+v:\nfirst %+v %+v\nagain %+v %+v", q, a, got, got.Facets, again, again.Facets)
			}
			if got.Scanned, got.Exemplars = want.Scanned, want.Exemplars; !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v, %+v:\n got %+v %+v\nwant %+v %+v", q, a, got, got.Facets, want, want.Facets)
			}
			if s.counts.memory > limit {
				t.Fatalf("%d bytes are kept, the limit is %d", s.counts.memory, limit)
			}
		}
		t.Logf("examined %d spans instead of %d; %d ranges take %d bytes", scanned, direct, len(s.counts.counts), s.counts.memory)
		if scanned >= direct || len(s.counts.counts) == 0 {
			t.Errorf("examined %d spans, and %d without kept counts", scanned, direct)
		}
	}
	s.Segments = slices.Delete(s.Segments, 0, 1)
	if _, err := s.Aggregate(t.Context(), tracestore.Query{From: scantest.At(1), To: scantest.At(1)}, wants[0]); err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for key, counts := range s.counts.counts {
		if sum += counts.memory(); !slices.Contains(s.Segments, key.source) {
			t.Error("the counts of a segment that is gone are kept")
		}
	}
	if sum != s.counts.memory {
		t.Errorf("%d bytes are kept, %d were added up", sum, s.counts.memory)
	}
}

// TestKeptExemplars compares the exemplars of repeated queries with random windows with those that
// are not kept.
func TestKeptExemplars(t *testing.T) {
	rng := rand.New(rand.NewPCG(soak.Seed(t), 1))
	s, times := keptStore(t)
	service := scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text(bench.New(7, scantest.Day).Services()[5]))
	s.counts = newCountCache(8 << 20)
	direct := New(s.store)
	direct.counts = newCountCache(0)
	direct.rangeBlocks = math.MaxInt32 // only whole segments are ranges
	a := tracestore.Aggregation{Exemplars: 20}
	scanned, all := 0, 0
	for range 20 {
		short := (times.To - times.From) / 4
		q := tracestore.Query{From: scantest.At(times.From + rng.Uint64N(short)), To: scantest.At(times.To - rng.Uint64N(short))}
		if rng.IntN(2) == 0 {
			q.Where = service
		}
		if rng.IntN(3) == 0 {
			q.From, q.To = scantest.At(times.From), scantest.At(times.To)
		}
		if rng.IntN(2) == 0 {
			q.Budget.Spans = 10_000
		}
		want, err := direct.Aggregate(t.Context(), q, a)
		scantest.Must(err)
		for range 2 {
			got, err := s.Aggregate(t.Context(), q, a)
			scantest.Must(err)
			scanned, all = scanned+got.Scanned, all+want.Scanned
			if got.Scanned = want.Scanned; !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v:\n got %+v\nwant %+v", q, got, want)
			}
		}
	}
	if t.Logf("examined %d spans instead of %d", scanned, all); scanned >= all {
		t.Error("no exemplars are kept")
	}
}

// TestSkippedIDs checks that values that were skipped as ids are counted if a later query does not
// include the range with the ids.
func TestSkippedIDs(t *testing.T) {
	const ids, users = 20_000, 3
	s := newRealStore(t, 1, scan.Options{Decoders: 1})
	for part := range 2 {
		td := ptrace.NewTraces()
		list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for i := range ids {
			span := list.AppendEmpty()
			span.SetTraceID([16]byte{byte(i), byte(i >> 8), byte(part)})
			span.SetStartTimestamp(pcommon.Timestamp(1 + part))
			user := fmt.Sprint("user ", i)
			if part > 0 && i > 5000 { // in the same column
				user = fmt.Sprint("user ", i%users)
			}
			span.Attributes().PutStr("user", user)
		}
		s.SegmentOf(t, otlpdata.FromTraces(td, otlpdata.Meta{}))
	}
	user := []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "user"}}
	a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1, Fields: user}}
	for i, q := range []tracestore.Query{{}, {From: scantest.At(2)}, {}, {From: scantest.At(2)}} {
		got, err := s.Aggregate(t.Context(), q, a)
		scantest.Must(err)
		f := got.Facets.Facets[0]
		if i%2 == 0 && f.Distinct != storequery.MaxFacetDistinct || i%2 == 1 && (f.Distinct != 5001 || f.Other > 0 || f.Values[0].Count < 4999) {
			t.Errorf("query %d: %d values, %d others, %+v", i, f.Distinct, f.Other, f.Values)
		}
	}
}
