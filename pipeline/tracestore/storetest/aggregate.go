package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// aggregator returns the store as an Aggregator, if it implements it.
func (s *suite) aggregator() tracestore.Aggregator {
	a, ok := optional[tracestore.Aggregator](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Aggregator")
	}
	return a
}

func checkAggregates(s *suite) {
	store := s.aggregator()
	s.checkAllAggregates(store, 0)
	r := s.diverseRequest()
	s.send("", r.traces)
	s.checkAllAggregates(store, 1)
	s.checkAllCounted(store)
	r.span(1, 1, "twice", firstMinute).SetKind(ptrace.SpanKindServer)
	r.span(1, 1, "twice", firstMinute).SetKind(ptrace.SpanKindServer)
	late := newRequest("late") // starts before all others
	late.span(1, 1, "late", firstMinute-minute).Status().SetCode(ptrace.StatusCodeError)
	again := newRequest("late")
	late.traces.ResourceSpans().At(0).CopyTo(again.traces.ResourceSpans().At(0))
	s.send("", late.traces)
	s.send("other", again.traces)
	s.checkAllAggregates(store, 2)
	s.send("", again.traces) // spans from two requests may count twice
	s.checkAllAggregates(store, 3)
	s.checkBadAggregations(store)
	if _, ok := optional[tracestore.Deleter](s, s.store); !ok {
		return
	}
	s.delete("", tracestore.Deletion{Service: "late"})
	s.checkAllAggregates(store, 4)
	s.delete("", tracestore.Deletion{From: at(firstMinute + 2*minute)})
	s.checkAllAggregates(store, 5)
}

// checkAllCounted compares all values and groups, as requested to add up the results of several
// stores.
func (s *suite) checkAllCounted(store tracestore.Aggregator) {
	s.Helper()
	fields := []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "unique"}, {Place: tracestore.AnyAttribute, Key: "number"}}
	named := tracestore.FacetQuery{Values: 1, All: true, Fields: fields, Selection: &tracestore.Selection{}}
	for _, f := range []tracestore.FacetQuery{{Values: 1, All: true}, named} {
		a := tracestore.Aggregation{Facets: f, Groups: tracestore.GroupQuery{By: fields, Limit: 1, All: true}}
		got, err := store.Aggregate(s.ctx, tracestore.Query{}, a)
		want, _, _ := s.sent.aggregate(tracestore.Query{}, a)
		if err != nil || got.Facets == nil || got.Groups == nil {
			s.Fatalf("Aggregate(%s) of everything: %+v, %v", describeAggregation(a), got, err)
		}
		for _, of := range []*tracestore.Aggregate{&got, &want} {
			sortCounted(of)
		}
		if g, w := fmt.Sprintf("%+v", *got.Facets), fmt.Sprintf("%+v", *want.Facets); g != w {
			s.Errorf("all values of %v:\n got %s\nwant %s", f.Fields, g, w)
		}
		if g, w := fmt.Sprintf("%+v", got.Groups), fmt.Sprintf("%+v", want.Groups); g != w {
			s.Errorf("all groups:\n got %s\nwant %s", g, w)
		}
	}
}

// sortCounted sorts facets, their values, and groups.
func sortCounted(a *tracestore.Aggregate) {
	slices.SortFunc(a.Facets.Facets, func(a, b tracestore.Facet) int {
		return cmp.Or(cmp.Compare(a.Field.Place, b.Field.Place), cmp.Compare(a.Field.Key, b.Field.Key))
	})
	for _, f := range a.Facets.Facets {
		slices.SortFunc(f.Values, func(a, b tracestore.FacetValue) int { return cmp.Compare(a.Text, b.Text) })
	}
	if a.Groups != nil {
		slices.SortFunc(a.Groups.Groups, func(a, b tracestore.Group) int {
			return cmp.Compare(fmt.Sprint(a.Values), fmt.Sprint(b.Values))
		})
	}
}

// diverseRequest returns spans that differ in all counted fields: values of all types and places,
// long values, and several values of one key.
func (s *suite) diverseRequest() *request {
	r := newRequest("shop")
	resource := r.traces.ResourceSpans().At(0).Resource().Attributes()
	putAllTypes(resource)
	r.scope.Scope().Attributes().PutStr("k", "of the scope")
	// FacetText cuts long between characters after an even prefix, and within a character after an
	// odd one.
	long := strings.Repeat("ü", storequery.MaxFacetText)
	for i := range uint64(60) {
		sp := r.span(i/4, i, fmt.Sprint("op ", i%5), firstMinute+i*minute/20)
		sp.SetEndTimestamp(sp.StartTimestamp() + pcommon.Timestamp(i*i*i))
		sp.SetKind(ptrace.SpanKind(i % 7))
		sp.Status().SetCode(ptrace.StatusCode(i % 3))
		sp.Status().SetMessage(fmt.Sprint("message ", i%2))
		a := sp.Attributes()
		a.PutStr("k", fmt.Sprint("v", i%3))
		a.PutInt("number", int64(i%4))
		a.PutStr("number.text", fmt.Sprint(i%4))
		a.PutStr("even", long+fmt.Sprint(i%2))
		a.PutStr("odd", "x"+long+fmt.Sprint(i%2))
		a.PutStr("invalid", strings.Repeat("\xbf", int(250+i)))
		a.PutStr("unique", fmt.Sprint("unique ", i))
		if i%10 == 0 {
			putAllTypes(a)
			a.PutStr("rare", "")
		}
		if i%3 == 0 {
			for _, text := range []string{"one", "two", "one"} {
				e := sp.Events().AppendEmpty()
				e.SetName(text)
				e.Attributes().PutStr("k", "v"+text)
				sp.Links().AppendEmpty().Attributes().PutStr("k", text)
			}
		}
	}
	for i, start := range []uint64{0, 1, math.MaxInt64, math.MaxUint64} {
		r.span(99, uint64(i), "ends", start).SetEndTimestamp(pcommon.Timestamp(math.MaxUint64 - uint64(i%2)))
	}
	return r
}

// aggregateStages is the number of stages that together compare all combinations.
const aggregateStages = 3

// checkAllAggregates compares many combinations of windows, conditions and aggregations. Each stage
// compares a different part of them; aggregateStages consecutive stages compare all.
func (s *suite) checkAllAggregates(store tracestore.Aggregator, stage int) {
	s.Helper()
	eq := func(p tracestore.Place, key, text string) tracestore.Cond {
		return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Value: tracestore.Text(text)}
	}
	slow := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: tracestore.Ge, Value: tracestore.Number(20_000)}
	service, op := eq(tracestore.Service, "", "shop"), eq(tracestore.Name, "", "op 1")
	wheres := []tracestore.Expr{nil, service, tracestore.And{service, op}, tracestore.Or{op, eq(tracestore.SpanAttribute, "k", "v2")}, slow,
		eq(tracestore.Status, "", "error"), tracestore.Not{Expr: eq(tracestore.Kind, "", "server")}, eq(tracestore.Service, "", "unknown")}
	for i, window := range [][2]time.Time{
		{},
		{at(firstMinute), at(firstMinute + 2*minute)},
		{at(firstMinute + 1), at(firstMinute + 2*minute - 1)},
		{at(firstMinute - 10*minute), at(firstMinute + minute/2)},
		{at(firstMinute + minute), at(firstMinute + minute)},
		{at(firstMinute + minute), at(firstMinute)},
	} {
		for j, where := range wheres {
			if (i+j+stage)%aggregateStages != 0 {
				continue
			}
			q := tracestore.Query{Tenant: []string{"", "", "", "other", "unknown"}[(i+3*j)%5], From: window[0], To: window[1], Where: where}
			for k, a := range aggregationCases(i+j, slow) {
				if q.From.IsZero() {
					a.Heatmap.Step = time.Duration(k%2) * math.MaxInt64
				}
				s.checkAggregateOf(store, q, a)
			}
			q.Budget.Spans = 7 + i*j
			s.checkAggregateOf(store, q, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 9}, Exemplars: 3})
		}
	}
}

// aggregationCases returns aggregations; some depend on n.
func aggregationCases(n int, slow tracestore.Expr) []tracestore.Aggregation {
	step := tracestore.HeatmapQuery{Step: []time.Duration{time.Second, time.Minute, 2 * time.Minute, time.Hour, 12345678912}[n%5]}
	var fields []tracestore.Field
	for i := range tracestore.Places() {
		p := tracestore.Place(i)
		if p.Info().SearchOnly {
			continue
		}
		fields = append(fields, tracestore.Field{Place: p, Key: "k"})
	}
	selections := []*tracestore.Selection{{}, {Where: slow}, {From: at(firstMinute + minute)}, {To: at(firstMinute + minute), Where: slow}}
	return []tracestore.Aggregation{
		{},
		{Heatmap: step},
		{Facets: tracestore.FacetQuery{Values: 1000}},
		{Exemplars: 1 + n},
		{Heatmap: step, Facets: tracestore.FacetQuery{Values: 2, Fields: fields}},
		{Facets: tracestore.FacetQuery{Values: 3, Selection: selections[n%4]}, Exemplars: 1000},
		{Heatmap: step, Facets: tracestore.FacetQuery{Values: 100, Fields: fields, Selection: selections[(n+1)%4]}, Exemplars: 2},
	}
}

func (s *suite) checkBadAggregations(store tracestore.Aggregator) {
	s.Helper()
	twice := tracestore.Field{Place: tracestore.SpanAttribute, Key: "k"}
	unknown := tracestore.Field{Place: tracestore.Place(len(tracestore.Places()))}
	hour := tracestore.Query{From: at(base), To: at(base).Add(time.Hour)}
	for _, c := range []struct {
		q tracestore.Query
		a tracestore.Aggregation
	}{
		{hour, tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: -1}}},
		{hour, tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Second}}},
		{tracestore.Query{}, tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Hour}}},
		{hour, tracestore.Aggregation{Exemplars: -1}},
		{hour, tracestore.Aggregation{Exemplars: tracestore.MaxExemplars + 1}},
		{hour, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: -1}}},
		{hour, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: tracestore.MaxFacetValues + 1}}},
		{hour, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1, Fields: []tracestore.Field{twice, twice}}}},
		{hour, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1, Fields: []tracestore.Field{unknown}}}},
		{hour, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1, Fields: []tracestore.Field{{Place: tracestore.AnyText}}}}},
		{hour, tracestore.Aggregation{Facets: tracestore.FacetQuery{Fields: make([]tracestore.Field, tracestore.MaxFacets+1)}}},
	} {
		if _, err := store.Aggregate(s.ctx, c.q, c.a); err == nil {
			s.Errorf("Aggregate(%s, %s): no error", describe(c.q), describeAggregation(c.a))
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := store.Aggregate(ctx, hour, tracestore.Aggregation{Exemplars: 1}); err == nil {
		s.Errorf("Aggregate with a canceled context: no error")
	}
}

// checkManyValues sends more keys than are returned, and more values than are counted.
func checkManyValues(s *suite) {
	store := s.aggregator()
	const more = 30
	r := newRequest("wide")
	for i := range uint64(10) {
		sp := r.span(i, i, "op", base+i)
		for k := range tracestore.MaxFacets/8 + more*i { // 10 spans have the first keys, one has the last
			sp.Attributes().PutStr(fmt.Sprint("key ", k), fmt.Sprint(k%3))
		}
	}
	s.send("", r.traces)
	a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 2}}
	s.checkAggregateOf(store, tracestore.Query{}, a)
	one := tracestore.Cond{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: "key 280"}, Op: tracestore.Exists}
	a.Facets.Selection = &tracestore.Selection{Where: one}
	if got := s.checkAggregateOf(store, tracestore.Query{}, a); len(got.Facets.Facets) != tracestore.MaxFacets || got.Facets.Omitted == 0 {
		s.Errorf("%d fields, %d omitted", len(got.Facets.Facets), got.Facets.Omitted)
	}
	const spans = storequery.MaxFacetDistinct + more
	for first := 0; first < spans; first += spans / 10 {
		r := newRequest("values")
		for i := range uint64(spans / 10) {
			n := uint64(first) + i
			r.span(n, n, "op", base+n).Attributes().PutInt("unique", int64(n))
		}
		s.send("values", r.traces)
	}
	unique := tracestore.Field{Place: tracestore.SpanAttribute, Key: "unique"}
	a = tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: tracestore.MaxFacetValues, Fields: []tracestore.Field{unique}}}
	got, err := store.Aggregate(s.ctx, tracestore.Query{Tenant: "values"}, a)
	if err != nil {
		s.Fatalf("Aggregate: %v", err)
	}
	f := got.Facets.Facets[0]
	if f.Spans != spans || f.Distinct != storequery.MaxFacetDistinct || f.Other != more || len(f.Values) != tracestore.MaxFacetValues {
		s.Errorf("%d spans with %d values and %d others; %d values returned", f.Spans, f.Distinct, f.Other, len(f.Values))
	}
	s.checkSamples(store, "values", spans)
}

// checkSamples checks aggregates with budgets: the number of spans divided by the share must be
// close to the number of all spans. Answers must be repeatable unless the store is compacting.
func (s *suite) checkSamples(store tracestore.Aggregator, tenant string, spans int) {
	s.Helper()
	q := tracestore.Query{Tenant: tenant, From: at(base), To: at(base + uint64(spans))}
	fields := []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.Duration}}
	facets := tracestore.FacetQuery{Values: 10, Fields: fields}
	a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: 100}, Facets: facets, Exemplars: 10}
	for _, q.Budget.Spans = range []int{1, 10, 333, spans / 2, spans - 1, spans, 2 * spans} {
		got := s.checkAggregateOf(store, q, a)
		if q.Budget.Spans >= spans && (got.Share < 1 || got.Facets.Share < 1) {
			s.Errorf("shares %g and %g of %d spans with a budget of %d, want 1", got.Share, got.Facets.Share, spans, q.Budget.Spans)
		}
		for part, estimate := range map[string]float64{
			"heatmap": float64(got.Spans) / got.Heatmap.Share, "facets": float64(got.Facets.Spans) / got.Facets.Share,
		} {
			if math.Abs(estimate-float64(spans)) > 0.01*float64(spans) {
				s.Errorf("budget %d: %s estimates %.0f spans, want %d", q.Budget.Spans, part, estimate, spans)
			}
		}
		s.checkRepeatable(store, q, a, got)
	}
}

func (s *suite) checkRepeatable(store tracestore.Aggregator, q tracestore.Query, a tracestore.Aggregation, last tracestore.Aggregate) {
	s.Helper()
	for range 5 {
		again, err := store.Aggregate(s.ctx, q, a)
		if err != nil {
			s.Fatalf("Aggregate(%s): %v", describe(q), err)
		}
		if reflect.DeepEqual(again, last) {
			return
		}
		last = again
	}
	s.Errorf("Aggregate(%s, %s): answers are not repeatable", describe(q), describeAggregation(a))
}
