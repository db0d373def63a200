package clickhouse_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// TestOperationsAfterMerge checks that no name disappears when parts are merged.
func TestOperationsAfterMerge(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil)
	now := uint64(time.Now().UnixNano())
	const names = 50
	for half := range 2 {
		var spans []span
		for i := range names / 2 {
			spans = append(spans, span{service: "shop", name: fmt.Sprintf("op %02d", half*names/2+i), trace: uint64(i), id: uint64(half + 1),
				kind: ptrace.SpanKindServer, start: now})
		}
		consume(t, e, batchOf(t, "", spans...))
	}
	s.Exec(t, "OPTIMIZE TABLE `"+database+"`.operations FINAL")
	ops, more, err := as[tracestore.Catalog](t, e).Operations(t.Context(), "", "shop", "", tracestore.NameQuery{})
	if err != nil || more || len(ops) != names {
		t.Fatalf("%d operations, more is %t, %v; want %d", len(ops), more, err, names)
	}
	for i, op := range ops {
		if want := (tracestore.Operation{Name: fmt.Sprintf("op %02d", i), Kind: "server"}); op != want {
			t.Errorf("operation %d is %v, want %v", i, op, want)
		}
	}
}

// TestCachedCalls checks that the calls of an hour are cached when the hour has settled, that two
// services with the same cache agree, and that late spans, replays and deletions are counted.
func TestCachedCalls(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	first, second := openOn(t, s, database, nil), openOn(t, s, database, nil)
	const hours = 3
	hour := uint64(time.Hour)
	begin := uint64(time.Now().UnixNano())/hour*hour - 10*hour
	for h := range uint64(hours) {
		consume(t, first, batchOf(t, "", span{service: "a", name: "call", trace: h, id: 1, kind: ptrace.SpanKindClient,
			start: begin + (h+1)*hour - 1},
			span{service: "b", name: "answer", trace: h, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: begin + (h+1)*hour}))
	}
	calls := func(store any, from, to time.Time) (n uint64) {
		t.Helper()
		g, err := as[tracestore.Edges](t, store).Dependencies(t.Context(), "", from, to)
		if err != nil || !g.Complete() {
			t.Fatalf("%+v, %v", g, err)
		}
		for _, e := range g.Edges {
			n += e.Calls
		}
		return n
	}
	check := func(what string, want uint64) {
		t.Helper()
		for range 2 { // the second time from the cache
			for _, store := range []any{first, second} {
				if got := calls(store, time.Time{}, time.Time{}); got != want {
					t.Errorf("%s: %d calls, want %d", what, got, want)
				}
			}
		}
	}
	settle(t, s, database, "")
	check("first", hours)
	if rows := s.Exec(t, "SELECT countDistinct(hour) FROM `"+database+"`.edges"); rows != "4\n" {
		t.Errorf("%q hours are cached, want 4", rows)
	}
	inserts := s.Exec(t, "SELECT max(max_block_number) FROM system.parts WHERE database = '"+database+"' AND table = 'edges'")
	if inserts != "1\n" {
		t.Errorf("%q inserts into the cache, want 1", inserts)
	}
	if got := calls(first, time.Unix(0, int64(begin+hour)), time.Unix(0, int64(begin+2*hour-1))); got != 1 {
		t.Errorf("one hour: %d calls, want 1", got)
	}
	late := batchOf(t, "", span{service: "c", name: "late", trace: 0, id: 3, parent: 2, kind: ptrace.SpanKindServer, start: begin + hour + 7})
	consume(t, second, late)
	check("late span", hours+1)
	consume(t, first, late)
	check("replay", hours+1)
	d := tracestore.Deletion{Service: "c"}
	if n, err := as[tracestore.Deleter](t, first).Delete(t.Context(), "", d); err != nil || n.Spans != 1 {
		t.Fatalf("deleted %d spans, %v", n.Spans, err)
	}
	check("deletion", hours)
	consume(t, second, late)
	check("resent after the deletion", hours+1)
}

// TestCallsOfService checks that the edges of a service are the same as among all edges.
func TestCallsOfService(t *testing.T) {
	s := engine.Shared(t)
	e := openOn(t, s, s.Database(t), nil)
	store := as[tracestore.Edges](t, e)
	const from, to = 2000, 3000
	consume(t, e, batchOf(t, "",
		// The caller starts before the window, and its callee within it.
		span{service: "shop", name: "call", trace: 1, id: 1, kind: ptrace.SpanKindClient, start: from - 1},
		span{service: "cart", name: "answer", trace: 1, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: from},
		// A span names the service as its peer.
		span{service: "web", name: "call", trace: 2, id: 1, kind: ptrace.SpanKindClient, start: from, peer: "shop"},
		// Calls of others, and a peer whose name ends with the name of the service.
		span{service: "web", name: "call", trace: 3, id: 1, kind: ptrace.SpanKindClient, start: from},
		span{service: "cart", name: "answer", trace: 3, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: to},
		span{service: "web", name: "call", trace: 3, id: 3, kind: ptrace.SpanKindClient, start: to, peer: "workshop"},
		// A call of the service in a trace that begins with others.
		span{service: "web", name: "call", trace: 4, id: 1, kind: ptrace.SpanKindClient, start: from},
		span{service: "shop", name: "answer", trace: 4, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: from + 1}))
	q := tracestore.EdgeQuery{From: time.Unix(0, from), To: time.Unix(0, to)}
	all, err := store.Edges(t.Context(), "", q)
	if err != nil || !all.Complete() || len(all.Edges) != 5 {
		t.Fatalf("%+v, %v; want 5 edges", all, err)
	}
	for _, service := range []string{"shop", "cart", "web", "workshop", "other"} {
		q.Service = service
		want := slices.DeleteFunc(slices.Clone(all.Edges), func(e tracestore.CallEdge) bool { return !q.Selects(e.Parent, e.Child) })
		got, err := store.Edges(t.Context(), "", q)
		if err != nil || !got.Complete() || len(got.Edges) != len(want) || len(want) > 0 && !reflect.DeepEqual(got.Edges, want) {
			t.Errorf("%s: %+v, %v; want %+v", service, got, err, want)
		}
	}
}
