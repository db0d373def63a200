package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// spanID returns the id of a span or a parent of batchOf.
func spanID(n byte) otlpdata.SpanID { return otlpdata.SpanID{7: n} }

// TestIDsOfEqualSpans checks what needs the ids of spans and their parents, which the table of
// spans does not have, for spans of a trace that differ only in ids and kind.
func TestIDsOfEqualSpans(t *testing.T) {
	s := engine.Shared(t)
	e := openOn(t, s, s.Database(t), nil)
	store := as[tracestore.Aggregator](t, e)
	const start = 1000
	var all []span
	for i := range uint64(6) { // spans 1 to 6 with the parents 0, 1, 2, 0, 1, 2
		all = append(all, span{service: "a", name: "op", trace: 1, id: i + 1, parent: i % 3, kind: ptrace.SpanKind(i + 1), start: start})
	}
	consume(t, e, batchOf(t, "", all...))
	window := tracestore.Query{From: time.Unix(0, 0), To: time.Unix(0, 2*start)}
	parent := func(op tracestore.Op, n byte) tracestore.Expr {
		return tracestore.Cond{Field: tracestore.Field{Place: tracestore.ParentID}, Op: op, Value: tracestore.Text(spanID(n).String())}
	}
	kind := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Kind}, Value: tracestore.Text("client")}
	for _, c := range []struct {
		name    string
		where   tracestore.Expr
		matches []byte // last bytes of ids
	}{
		{"one kind", kind, []byte{3}},
		{"a parent", parent(tracestore.Eq, 2), []byte{3, 6}},
		{"another parent", parent(tracestore.Ne, 2), []byte{2, 5}},
		{"no such parent", tracestore.Not{Expr: parent(tracestore.Eq, 2)}, []byte{1, 2, 4, 5}},
		{"any parent", parent(tracestore.Exists, 0), []byte{2, 3, 5, 6}},
		{"a parent and a kind", tracestore.And{parent(tracestore.Eq, 2), kind}, []byte{3}},
	} {
		q := window
		q.Where = c.where
		a := tracestore.Aggregation{Exemplars: 1, Facets: tracestore.FacetQuery{Values: 10,
			Fields:    []tracestore.Field{{Place: tracestore.ParentID}, {Place: tracestore.Kind}},
			Selection: &tracestore.Selection{Where: parent(tracestore.Eq, 1)}},
			Groups: tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.ParentID}}, Limit: 10}}
		got, err := store.Aggregate(t.Context(), q, a)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if int(got.Spans) != len(c.matches) || !got.Complete() || got.Share != 1 {
			t.Errorf("%s: %d spans, complete %t, share %g; want %d", c.name, got.Spans, got.Complete(), got.Share, len(c.matches))
		}
		if len(got.Exemplars) != 1 || !slices.Contains(c.matches, got.Exemplars[0].SpanID[7]) {
			t.Errorf("%s: exemplars %+v, want one of %v", c.name, got.Exemplars, c.matches)
		}
		children := map[string]uint64{}
		for _, id := range c.matches {
			if p := byte(all[id-1].parent); p != 0 {
				children[spanID(p).String()]++
			}
		}
		checkParents(t, c.name, &got, children)
	}
}

// checkParents compares facets and groups with the number of spans by parent.
func checkParents(t *testing.T, name string, got *tracestore.Aggregate, children map[string]uint64) {
	t.Helper()
	for _, f := range got.Facets.Facets {
		if f.Field.Place != tracestore.ParentID {
			continue
		}
		for _, v := range f.Values {
			selected := uint64(0)
			if v.Text == spanID(1).String() {
				selected = v.Count
			}
			if v.Count != children[v.Text] || v.Selected != selected {
				t.Errorf("%s: parent %s has %d spans, %d of them selected; want %d", name, v.Text, v.Count, v.Selected, children[v.Text])
			}
		}
		if len(f.Values) != len(children) {
			t.Errorf("%s: parents %+v, want %v", name, f.Values, children)
		}
	}
	for _, g := range got.Groups.Groups {
		if key := g.Values[0]; key.Present && g.Durations.Count() != children[key.Text] {
			t.Errorf("%s: group %+v, want %d spans", name, g, children[key.Text])
		}
	}
}
