package storetest

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/aggregates"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// checkNames searches and counts attributes with several names on spans that have some of them.
func checkNames(s *suite) {
	for part := range 2 {
		r := newRequest(fmt.Sprint("service ", part))
		for i := range 48 {
			sp := r.span(uint64(i%12), uint64(100*part+i+1), "op", firstMinute+uint64(i)*second)
			putNamed(sp.Attributes(), i%6, "status", i)
			putNamed(sp.Attributes(), i/6%6, "size", i)
			if i%7 == 0 {
				putNamed(sp.Events().AppendEmpty().Attributes(), i/7%6, "status", i)
			}
		}
		resource := r.traces.ResourceSpans().At(0).Resource().Attributes()
		resource.PutStr([]string{"status.old", "status.new"}[part], "2")
		s.send("", r.traces)
	}
	fields := []tracestore.Field{namedField(tracestore.AnyAttribute, "status"), namedField(tracestore.SpanAttribute, "size"),
		namedField(tracestore.ResourceAttribute, "status"), namedField(tracestore.EventAttribute, "status")}
	for _, f := range fields {
		s.checkNamedConditions(f)
	}
	if store, ok := optional[tracestore.Aggregator](s, s.store); ok {
		s.checkNamedCounts(namesAggregator{store}, fields)
	}
}

// second is in nanoseconds.
const second = uint64(time.Second)

// namedField returns an attribute with three names.
func namedField(p tracestore.Place, key string) tracestore.Field {
	return tracestore.Field{Place: p, Key: key + ".old", Names: tracestore.JoinNames(key+".new", key+".middle", key+".old")}
}

// putNamed adds some of the names of an attribute, with equal or different values.
func putNamed(to pcommon.Map, which int, key string, value int) {
	n := int64(value % 4)
	switch which {
	case 0:
		to.PutInt(key+".old", n)
	case 1:
		to.PutInt(key+".new", n)
	case 2:
		to.PutInt(key+".old", n)
		to.PutInt(key+".new", n)
	case 3:
		to.PutInt(key+".old", n)
		to.PutStr(key+".new", "text")
	case 4:
		to.PutDouble(key+".middle", float64(n)/2)
		to.PutInt(key+".old", n)
	}
}

func (s *suite) checkNamedConditions(f tracestore.Field) {
	s.Helper()
	two := tracestore.Cond{Field: f, Op: tracestore.Eq, Value: tracestore.Text("2")}
	exists := tracestore.Cond{Field: f, Op: tracestore.Exists}
	for _, e := range []tracestore.Expr{
		two, tracestore.Not{Expr: two}, exists, tracestore.Not{Expr: exists},
		tracestore.Cond{Field: f, Op: tracestore.Ne, Value: tracestore.Text("2")},
		tracestore.Cond{Field: f, Op: tracestore.Ne, Value: tracestore.String("2")},
		tracestore.Cond{Field: f, Op: tracestore.Exists, Value: tracestore.String("")},
		tracestore.Cond{Field: f, Op: tracestore.Gt, Value: tracestore.Number(0.5)},
		tracestore.Cond{Field: f, Op: tracestore.Eq, Value: tracestore.Number(1)},
		tracestore.Cond{Field: f, Op: tracestore.Like, Value: tracestore.Pattern(regexp.MustCompile("^[1t]"))},
		tracestore.And{two, tracestore.Cond{Field: namedField(tracestore.SpanAttribute, "size"), Op: tracestore.Exists}},
		tracestore.Or{two, tracestore.Not{Expr: exists}},
	} {
		s.checkFind(tracestore.Query{Where: e}, tracestore.WantFull)
	}
	compare := tracestore.Compare{Op: tracestore.Lt, Left: f, Right: tracestore.Arithmetic{
		Op: '+', Left: namedField(tracestore.SpanAttribute, "size"), Right: f}}
	for _, e := range []tracestore.Expr{compare, tracestore.Not{Expr: compare}, withParent(two)} {
		s.checkSet(s.sent.fullTraces(s, ""), tracestore.Query{}, storequery.Select{Where: e}, tracestore.WantIDs)
	}
}

// withParent returns a condition on the parent.
func withParent(c tracestore.Cond) tracestore.Expr {
	c.Field.Parent = true
	return c
}

// namesAggregator counts attributes with several names.
type namesAggregator struct{ store tracestore.Aggregator }

// Aggregate implements tracestore.Aggregator.
func (a namesAggregator) Aggregate(ctx context.Context, q tracestore.Query, of tracestore.Aggregation) (tracestore.Aggregate, error) {
	return aggregates.Aggregate(ctx, a.store, q, of)
}

func (s *suite) checkNamedCounts(store tracestore.Aggregator, fields []tracestore.Field) {
	s.Helper()
	name, service := tracestore.Field{Place: tracestore.Name}, tracestore.Field{Place: tracestore.Service}
	window := tracestore.Query{From: at(firstMinute), To: at(firstMinute + minute)}
	some := tracestore.Cond{Field: fields[0], Op: tracestore.Ne, Value: tracestore.Text("1")}
	selected := &tracestore.Selection{Where: tracestore.Cond{Field: fields[1], Op: tracestore.Exists}}
	for i, f := range fields {
		other := fields[(i+1)%len(fields)]
		q := window
		if i%2 == 0 {
			q.Where = some
		}
		for _, a := range []tracestore.Aggregation{
			{Facets: tracestore.FacetQuery{Values: 2, Fields: []tracestore.Field{f}}},
			{Facets: tracestore.FacetQuery{Values: 10, Fields: []tracestore.Field{service, f, other}, Selection: selected}},
			{Groups: tracestore.GroupQuery{By: []tracestore.Field{f}, Limit: 100}},
			{Groups: tracestore.GroupQuery{By: []tracestore.Field{name, f}, Limit: 2, Parts: 3}},
			{Groups: tracestore.GroupQuery{By: []tracestore.Field{f, other}, Limit: 100, Sort: tracestore.GroupsByErrors}},
			{Groups: tracestore.GroupQuery{By: []tracestore.Field{service}, Limit: 100, Of: f, Measure: tracestore.MeasureDistribution}},
			{Groups: tracestore.GroupQuery{By: []tracestore.Field{other}, Limit: 100, Of: f, Measure: tracestore.MeasureTotals,
				Step: 10 * time.Second}},
			{Heatmap: tracestore.HeatmapQuery{Step: time.Second}, Exemplars: 2, Groups: tracestore.GroupQuery{By: []tracestore.Field{f}, Limit: 100},
				Facets: tracestore.FacetQuery{Values: 3, Fields: []tracestore.Field{other, name}}},
		} {
			s.checkAggregateOf(store, q, a)
		}
	}
}
