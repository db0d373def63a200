package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// checkGroups compares groups of spans that differ in everything.
func checkGroups(s *suite) {
	store, ok := optional[tracestore.Aggregator](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Aggregator")
	}
	s.send("", s.diverseRequest().traces)
	again := s.diverseRequest()
	s.send("", again.traces)
	s.send("", again.traces) // spans from two requests may count twice
	var fields []tracestore.Field
	for i := range tracestore.Places() {
		p := tracestore.Place(i)
		if p.Info().SearchOnly {
			continue
		}
		fields = append(fields, tracestore.Field{Place: p, Key: "k"})
	}
	for _, key := range []string{"number", "number.text", "even", "odd", "unique", "rare", "int", "service.name", "absent"} {
		fields = append(fields, tracestore.Field{Place: tracestore.AnyAttribute, Key: key},
			tracestore.Field{Place: tracestore.SpanAttribute, Key: key})
	}
	q := tracestore.Query{From: at(firstMinute), To: at(firstMinute + 2*minute)}
	for i, f := range fields {
		order := tracestore.GroupOrder(i % (int(tracestore.GroupsByTime) + 1))
		for _, by := range [][]tracestore.Field{{f}, {f, fields[(i+1+i%(len(fields)-2))%len(fields)]}} {
			g := tracestore.GroupQuery{By: by, Limit: tracestore.MaxGroups, Sort: order}
			s.checkAggregateOf(store, tracestore.Query{}, tracestore.Aggregation{Groups: g})
			g.Limit, g.Parts = 1+i%4, i%3
			s.checkAggregateOf(store, q, tracestore.Aggregation{Groups: g, Facets: tracestore.FacetQuery{Values: i % 2}, Exemplars: i % 3})
			q.Budget.Spans = 5 + i
			s.checkAggregateOf(store, q, tracestore.Aggregation{Groups: g, Heatmap: tracestore.HeatmapQuery{Step: time.Minute}})
			q.Budget.Spans = 0
		}
		s.checkAggregateOf(store, q, tracestore.Aggregation{Groups: measuredGroups(fields, i)})
		s.checkAggregateOf(store, q, tracestore.Aggregation{Groups: measuredGroups(fields, i), Facets: tracestore.FacetQuery{Values: 1}})
	}
	number := tracestore.Field{Place: tracestore.AnyAttribute, Key: "number"}
	for measure := tracestore.MeasureTotals; measure <= tracestore.MeasureDistribution; measure++ {
		s.checkAggregateOf(store, tracestore.Query{Where: tracestore.Cond{Field: number, Op: tracestore.Exists}},
			tracestore.Aggregation{Groups: tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Service}},
				Limit: tracestore.MaxGroups, Measure: measure, Of: number}})
	}
	s.checkBadGroups(store)
	s.checkManyGroups(store)
}

// measuredGroups returns a query for groups by several fields with the numbers of field number i.
func measuredGroups(fields []tracestore.Field, i int) tracestore.GroupQuery {
	g := tracestore.GroupQuery{Limit: tracestore.MaxGroups, Of: fields[i], Measure: tracestore.Measure(1 + i%2),
		Step: []time.Duration{0, time.Second, 7 * time.Second, time.Minute, math.MaxInt64}[i%5], Adjusted: i%3 == 0}
	for n := range i % (tracestore.MaxGroupFields + 1) {
		g.By = append(g.By, fields[(i+n*n)%len(fields)])
	}
	slices.SortFunc(g.By, func(a, b tracestore.Field) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Key, b.Key))
	})
	g.By = slices.Compact(g.By)
	return g
}

func (s *suite) checkBadGroups(store tracestore.Aggregator) {
	s.Helper()
	name, unknown := tracestore.Field{Place: tracestore.Name}, tracestore.Field{Place: tracestore.Place(len(tracestore.Places()))}
	q := tracestore.Query{From: at(firstMinute), To: at(firstMinute + minute)}
	one := []tracestore.Field{name}
	for _, g := range []tracestore.GroupQuery{
		{By: one, Limit: 1, Step: -1},
		{By: one, Limit: 1, Step: time.Second, Parts: 1},
		{By: one, Limit: 1, Step: time.Minute / tracestore.MaxGroupSteps},
		{By: one, Limit: 1, Measure: tracestore.MeasureDistribution + 1},
		{By: one, Limit: 1, Measure: tracestore.MeasureTotals, Of: unknown},
		{Step: time.Minute},
		{By: []tracestore.Field{name}},
		{By: []tracestore.Field{name}, Limit: tracestore.MaxGroups + 1},
		{By: []tracestore.Field{name}, Limit: 1, Sort: tracestore.GroupsByTime + 1},
		{By: []tracestore.Field{name, name}, Limit: 1},
		{By: []tracestore.Field{name}, Limit: 1, Parts: tracestore.MaxGroupParts + 1},
		{By: []tracestore.Field{unknown}, Limit: 1},
		{By: []tracestore.Field{{Place: tracestore.AnyText}}, Limit: 1},
		{By: make([]tracestore.Field, tracestore.MaxGroupFields+1), Limit: 1},
	} {
		if _, err := store.Aggregate(s.ctx, q, tracestore.Aggregation{Groups: g}); err == nil {
			s.Errorf("Aggregate by %v: no error", g)
		}
	}
}

// checkManyGroups sends more groups than are counted.
func (s *suite) checkManyGroups(store tracestore.Aggregator) {
	s.Helper()
	const more, requests = 30, 10
	const spans = storequery.MaxGroupsCounted + more
	for first := 0; first < spans; first += spans / requests {
		r := newRequest("values")
		for i := range uint64(spans / requests) {
			n := uint64(first) + i
			r.span(n, n, "op", base+n).Attributes().PutInt("unique", int64(n))
		}
		s.send("values", r.traces)
	}
	by := []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "unique"}}
	q := tracestore.Query{Tenant: "values"}
	a := tracestore.Aggregation{Groups: tracestore.GroupQuery{By: by, Limit: tracestore.MaxGroups}}
	got, err := store.Aggregate(s.ctx, q, a)
	if err != nil || got.Groups == nil {
		s.Fatalf("Aggregate: %+v, %v", got, err)
	}
	g := got.Groups
	if g.All.Durations.Count() != spans || g.Distinct != storequery.MaxGroupsCounted || g.Other != more || len(g.Groups) != a.Groups.Limit {
		s.Errorf("%d spans in %d groups and %d others; %d groups returned", g.All.Durations.Count(), g.Distinct, g.Other, len(g.Groups))
	}
}

// field returns a random field.
func (g *generator) field() tracestore.Field {
	f := tracestore.Field{Place: tracestore.Place(g.IntN(len(tracestore.Places()))), Key: g.key()}
	if f.Place.Info().SearchOnly {
		f.Place = tracestore.Name
	}
	return f
}

func (g *generator) groupQuery() tracestore.GroupQuery {
	q := tracestore.GroupQuery{Limit: pick(g, 1, 3, tracestore.MaxGroups)}
	q.Sort = tracestore.GroupOrder(g.IntN(int(tracestore.GroupsByTime) + 1))
	q.Parts = pick(g, 0, 1, 7)
	if g.IntN(2) == 0 {
		q.Parts, q.Step = 0, pick[time.Duration](g, 1, 7, 30, 1000)
	}
	if q.Step > 0 || g.IntN(4) == 0 {
		q.Measure, q.Of, q.Adjusted = tracestore.Measure(g.IntN(3)), g.field(), g.IntN(3) == 0
		if g.IntN(3) == 0 {
			q.Of = tracestore.Field{Place: tracestore.Duration}
		}
	}
	for range pick(g, 0, 1, 1, 2, 2, tracestore.MaxGroupFields) {
		if f := g.field(); !slices.Contains(q.By, f) {
			q.By = append(q.By, f)
		}
	}
	return q
}

// traceGroups is like groupQuery, for whole traces. Groups of traces by the services of their spans
// are not groups of a span.
func (g *generator) traceGroups() tracestore.GroupQuery {
	q := g.groupQuery()
	q.Measure, q.Adjusted = tracestore.MeasureNone, false
	q.By = []tracestore.Field{{Place: tracestore.RootService}, {Place: tracestore.RootName}}[:1+g.IntN(2)]
	return q
}

// diffGroups compares groups. They must be equal if no span may count twice and the sample is
// complete.
func diffGroups(got, lower, upper *tracestore.Groups, q tracestore.GroupQuery) error {
	exact := fmt.Sprintf("%+v", *lower)
	if got.Share == 1 && exact == fmt.Sprintf("%+v", *upper) {
		roundSums(got, lower)
		if g := fmt.Sprintf("%+v", *got); g != exact {
			return fmt.Errorf("\n got %s\nwant %s", g, exact)
		}
		return nil
	}
	if err := diffGroup(&got.All, &lower.All, &upper.All, got.Share); err != nil {
		return err
	}
	if len(got.Groups) > q.Limit || got.Distinct > upper.Distinct || got.Share == 1 && got.Distinct != lower.Distinct {
		return fmt.Errorf("%d groups of %d, want %d of %d to %d", len(got.Groups), got.Distinct, q.Limit, lower.Distinct, upper.Distinct)
	}
	find := func(list []tracestore.Group, key storequery.GroupKey) *tracestore.Group {
		for i := range list {
			if list[i].Values == key {
				return &list[i]
			}
		}
		return nil
	}
	for i := range got.Groups {
		g := &got.Groups[i]
		l, m := find(lower.Groups, g.Values), find(upper.Groups, g.Values)
		if m == nil && upper.Distinct <= q.Limit {
			return fmt.Errorf("no span is in group %+v", g.Values)
		}
		if l == nil || m == nil {
			continue
		}
		if err := diffGroup(g, l, m, got.Share); err != nil {
			return fmt.Errorf("%+v: %w", g.Values, err)
		}
	}
	return nil
}

// roundSums replaces sums of numbers by the expected ones if only the order of additions differs.
func roundSums(got, want *tracestore.Groups) {
	round := func(got, want *tracestore.Group) {
		for i := range min(len(got.Numbers), len(want.Numbers)) {
			g, w := &got.Numbers[i], &want.Numbers[i]
			if math.Abs(g.Sum-w.Sum) <= 1e-12*float64(w.Count)*max(math.Abs(w.Min), math.Abs(w.Max)) {
				g.Sum = w.Sum
			}
		}
	}
	round(&got.All, &want.All)
	for i := range min(len(got.Groups), len(want.Groups)) {
		round(&got.Groups[i], &want.Groups[i])
	}
}

// diffGroup compares the counts of a group.
func diffGroup(got, lower, upper *tracestore.Group, share float64) error {
	if err := diffCount("spans", got.Durations.Count(), lower.Durations.Count(), upper.Durations.Count(), share); err != nil {
		return err
	}
	if err := diffCount("time", got.Durations.Sum, lower.Durations.Sum, upper.Durations.Sum, share); err != nil {
		return err
	}
	return diffCount("errors", got.Errors, lower.Errors, upper.Errors, share)
}
