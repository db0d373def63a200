package clickhouse_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// settle changes the arrival of all spans to an earlier time, so that results are cached. Tables of
// a cluster have a suffix.
func settle(tb testing.TB, s *engine.Server, database, suffix string) {
	tb.Helper()
	s.Exec(tb, "ALTER TABLE `"+database+"`.hours"+suffix+" UPDATE stored = stored - 3600 WHERE 1 SETTINGS mutations_sync = 1")
}

// TestCachedResults checks that facets and calls are cached when their spans have settled, and that
// late spans and deletions are counted.
func TestCachedResults(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil)
	start := time.Now().Add(-2 * time.Hour)
	send := func(trace uint64) {
		at := uint64(start.UnixNano()) + trace
		consume(t, e, batchOf(t, "", span{service: "a", name: "call", trace: trace, id: 1, kind: ptrace.SpanKindClient, start: at},
			span{service: "b", name: "answer", trace: trace, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: at}))
	}
	q := tracestore.Query{From: start, To: start.Add(time.Minute)}
	checkFacets := func(what string, want uint64) {
		t.Helper()
		got, err := as[tracestore.Aggregator](t, e).Aggregate(t.Context(), q, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 3}})
		if err != nil || !got.Complete() || got.Spans != 2*want || len(got.Facets.Facets) == 0 || got.Facets.Facets[0].Spans != 2*want {
			t.Errorf("%s: %d traces, want %d, %v, %+v", what, got.Spans/2, want, err, got.Facets)
		}
		clear(got.Facets.Facets[0].Values) // belongs to the caller
	}
	check := func(what string, want uint64) {
		t.Helper()
		checkFacets(what, want)
		g, err := as[tracestore.Edges](t, e).Dependencies(t.Context(), "", q.From, q.To)
		if err != nil || want > 0 && (len(g.Edges) != 1 || g.Edges[0].Calls != want) || want == 0 && len(g.Edges) > 0 {
			t.Errorf("%s: %+v %v, want %d calls", what, g.Edges, err, want)
		}
	}
	send(1)
	check("of recent spans", 1)
	send(2)
	check("with another trace", 2)
	settle(t, s, database, "")
	check("of settled spans", 2)
	hidden := "`" + database + "`"
	s.Exec(t, "RENAME TABLE "+hidden+".spans TO "+hidden+".spans2, "+hidden+".payload TO "+hidden+".payload2")
	check("without tables of spans", 2)
	s.Exec(t, "RENAME TABLE "+hidden+".spans2 TO "+hidden+".spans, "+hidden+".payload2 TO "+hidden+".payload")
	send(3)
	check("with a late trace", 3)
	if _, err := as[tracestore.Deleter](t, e).Delete(t.Context(), "", tracestore.Deletion{Traces: []otlpdata.TraceID{{15: 3}}}); err != nil {
		t.Fatal(err)
	}
	check("after a deletion", 2)
	s.Exec(t, "RENAME TABLE "+hidden+".hours TO "+hidden+".hours2")
	checkFacets("without the table that validates cached results", 2)
}

// TestCachedMinutes checks that windows share the cached calls of whole minutes.
func TestCachedMinutes(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil)
	begin := time.Now().Add(-2 * time.Hour).Truncate(time.Hour).Add(10 * time.Minute)
	end := begin.Add(3 * time.Minute)
	for i, at := range []time.Time{begin.Add(-1), begin, end.Add(-1), end} {
		start := uint64(at.UnixNano())
		consume(t, e, batchOf(t, "", span{service: "a", name: "call", trace: uint64(i), id: 1, kind: ptrace.SpanKindClient, start: start},
			span{service: "b", name: "answer", trace: uint64(i), id: 2, parent: 1, kind: ptrace.SpanKindServer, start: start}))
	}
	settle(t, s, database, "")
	check := func(what string, from, to time.Time, want uint64) {
		t.Helper()
		g, err := as[tracestore.Edges](t, e).Dependencies(t.Context(), "", from, to)
		if err != nil || !g.Complete() || want == 0 && len(g.Edges) > 0 || want > 0 && (len(g.Edges) != 1 || g.Edges[0].Calls != want) {
			t.Errorf("%s: %+v, %v, want %d calls", what, g, err, want)
		}
	}
	check("whole minutes", begin, end.Add(-1), 2)
	s.Exec(t, fmt.Sprintf("ALTER TABLE `%s`.payload DELETE WHERE start = %d SETTINGS mutations_sync = 1", database, begin.UnixNano()))
	check("longer window", begin.Add(-1), end, 4)
	check("window that ends later", begin, end, 3)
	check("window with another minute", begin.Add(-time.Minute), end.Add(-1), 3)
	check("window within a minute", begin, begin.Add(time.Minute-2), 0)
}

// TestCallsOfOverlappingWindows checks that queries with overlapping windows, which share cached
// calls of hours and their parts, count each call once.
func TestCallsOfOverlappingWindows(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil)
	const hours, traces, windows = 4, 300, 25
	begin := time.Now().Add(-8 * time.Hour).Truncate(time.Hour)
	random := rand.New(rand.NewPCG(1, 2))
	var spans []span
	var starts []time.Time // of callees
	for i := range uint64(traces) {
		called := begin.Add(time.Duration(random.Int64N(int64(hours * time.Hour))))
		at := called.Add(time.Duration(random.Int64N(int64(90 * time.Minute))))
		if i%10 == 0 {
			at = at.Truncate(5 * time.Minute)
		}
		starts = append(starts, at)
		spans = append(spans, span{service: "a", name: "call", trace: i, id: 1, kind: ptrace.SpanKindClient, start: uint64(called.UnixNano())},
			span{service: "b", name: "answer", trace: i, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: uint64(at.UnixNano())})
	}
	consume(t, e, batchOf(t, "", spans...))
	settle(t, s, database, "")
	for range windows {
		from := begin.Add(time.Duration(random.Int64N(int64(hours * time.Hour))))
		to := from.Add(time.Duration(random.Int64N(int64(hours * time.Hour))))
		if random.IntN(2) == 0 {
			from, to = from.Truncate(time.Minute), to.Truncate(5*time.Minute).Add(-1)
		}
		var want, got uint64
		for _, at := range starts {
			if !at.Before(from) && !at.After(to) {
				want++
			}
		}
		g, err := as[tracestore.Edges](t, e).Dependencies(t.Context(), "", from, to)
		for _, edge := range g.Edges {
			got += edge.Calls
		}
		if err != nil || !g.Complete() || got != want {
			t.Errorf("%s to %s: %+v, %v, want %d calls", from, to, g, err, want)
		}
	}
}
