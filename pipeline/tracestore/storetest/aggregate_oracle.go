package storetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// aggregate computes an aggregate by its definition: lower counts each span once, and upper counts
// it once for each request with it.
func (o *oracle) aggregate(q tracestore.Query, a tracestore.Aggregation) (lower, upper tracestore.Aggregate, _ error) {
	once, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return lower, upper, err
	}
	often, _ := storequery.NewAggregateCounter(q, a)
	t := o.tenant(q.Tenant)
	for _, s := range t.spans {
		once.AddSpan(s)
		for range t.requests[identity(s)] {
			often.AddSpan(s)
		}
	}
	return once.Answer(1), often.Answer(1), nil
}

// matching returns the spans that match a query, as exemplars.
func (o *oracle) matching(q tracestore.Query) map[tracestore.Exemplar]struct{} {
	out := make(map[tracestore.Exemplar]struct{})
	from, to, ok := q.Window()
	for _, s := range o.tenant(q.Tenant).spans {
		if !ok || s.Start < from || s.Start > to || !tracestore.Match(q.Where, s) {
			continue
		}
		duration, _ := s.Duration()
		out[tracestore.Exemplar{TraceID: s.TraceID, SpanID: s.SpanID, Start: s.Start, Duration: duration,
			Service: storequery.FacetText(s.Resource.Service), Name: storequery.FacetText(s.Operation()),
			Failed: s.StatusCode == otlpdata.StatusError}] = struct{}{}
	}
	return out
}

// checkAggregateOf compares an aggregate of the store with the aggregate of the spans sent, and
// returns it.
func (s *suite) checkAggregateOf(store tracestore.Aggregator, q tracestore.Query, a tracestore.Aggregation) tracestore.Aggregate {
	s.Helper()
	got, err := store.Aggregate(s.ctx, q, a)
	if err != nil {
		s.Fatalf("Aggregate(%s, %s): %v", describe(q), describeAggregation(a), err)
	}
	lower, upper, err := s.sent.aggregate(q, a)
	if err != nil {
		s.Fatalf("Aggregate(%s, %s): no error, want %v", describe(q), describeAggregation(a), err)
	}
	err = diffAggregate(&got, &lower, &upper, a)
	if err == nil {
		err = diffExemplars(&got, s.sent.matching(q), a)
	}
	if err != nil {
		s.Errorf("Aggregate(%s, %s): %v", describe(q), describeAggregation(a), err)
	}
	return got
}

func describeAggregation(a tracestore.Aggregation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "step %d, %d values of %v, %d exemplars", a.Heatmap.Step, a.Facets.Values, a.Facets.Fields, a.Exemplars)
	if sel := a.Facets.Selection; sel != nil {
		fmt.Fprintf(&b, ", selection %s", describe(tracestore.Query{From: sel.From, To: sel.To, Where: sel.Where}))
	}
	if a.Groups.Requested() {
		fmt.Fprintf(&b, ", groups %+v", a.Groups)
	}
	return b.String()
}

// diffAggregate describes the first count that is not between lower and upper. Samples may have
// lower counts.
func diffAggregate(got, lower, upper *tracestore.Aggregate, a tracestore.Aggregation) error {
	if !got.Complete() {
		return fmt.Errorf("reasons %v", got.Reasons)
	}
	if (got.Heatmap != nil) != (a.Heatmap.Step > 0) || (got.Facets != nil) != (a.Facets.Values > 0) {
		return fmt.Errorf("heatmap %v, facets %v; want only what was requested", got.Heatmap, got.Facets)
	}
	if (got.Groups != nil) != a.Groups.Requested() {
		return fmt.Errorf("groups %v; want them only if requested", got.Groups)
	}
	share := got.Share
	switch {
	case got.Heatmap != nil && got.Heatmap.Share != share, got.Heatmap == nil && got.Facets != nil && got.Facets.Share != share:
		return fmt.Errorf("share %g differs from the share of the heatmap or facets", share)
	case got.RelativeError < 0, got.RelativeError > 1, share == 1 && got.RelativeError > 0:
		return fmt.Errorf("relative error %g with share %g", got.RelativeError, share)
	}
	if err := diffCount("spans", got.Spans, lower.Spans, upper.Spans, share); err != nil {
		return err
	}
	if err := diffCount("errors", got.Errors, lower.Errors, upper.Errors, share); err != nil {
		return err
	}
	if got.Heatmap != nil {
		if err := diffHeatmap(got.Heatmap, lower.Heatmap, upper.Heatmap); err != nil {
			return fmt.Errorf("heatmap: %w", err)
		}
	}
	if got.Facets != nil {
		if err := diffFacets(got.Facets, lower.Facets, upper.Facets, a.Facets); err != nil {
			return fmt.Errorf("facets: %w", err)
		}
	}
	if got.Groups != nil {
		if err := diffGroups(got.Groups, lower.Groups, upper.Groups, a.Groups); err != nil {
			return fmt.Errorf("groups: %w", err)
		}
	}
	return nil
}

// diffCount compares a count with its bounds. A sample may have a lower count.
func diffCount(of string, got, lower, upper uint64, share float64) error {
	switch {
	case share <= 0 || share > 1:
		return fmt.Errorf("%s: share is %g", of, share)
	case got > upper || got < lower && share == 1:
		return fmt.Errorf("%s: count is %d with a sampled share of %g, want %d to %d", of, got, share, lower, upper)
	}
	return nil
}

func diffHeatmap(got, lower, upper *tracestore.Heatmap) error {
	if got.Step != lower.Step {
		return fmt.Errorf("step %d, want %d", got.Step, lower.Step)
	}
	type name struct {
		start  uint64
		bucket int
	}
	compare := func(a, b tracestore.HeatCell) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Bucket, b.Bucket))
	}
	cells := make(map[name]*tracestore.HeatCell)
	for i := range got.Cells {
		c := &got.Cells[i]
		if i > 0 && compare(got.Cells[i-1], *c) >= 0 || c.Count == 0 {
			return fmt.Errorf("cell %d is %+v: out of order or empty", i, *c)
		}
		cells[name{c.Start, c.Bucket}] = c
	}
	for i, l := range lower.Cells {
		m, at := upper.Cells[i], name{l.Start, l.Bucket}
		c := cells[at]
		delete(cells, at)
		if c == nil {
			c = &tracestore.HeatCell{}
		}
		if err := diffCount(fmt.Sprintf("%+v", at), c.Count, l.Count, m.Count, got.Share); err != nil {
			return err
		}
		if err := diffCount(fmt.Sprintf("errors of %+v", at), c.Errors, l.Errors, m.Errors, got.Share); err != nil {
			return err
		}
	}
	if len(cells) > 0 {
		return fmt.Errorf("%d cells without spans", len(cells))
	}
	return nil
}

// diffFacets compares facets. They must be equal if no span may count twice and the sample is
// complete.
func diffFacets(got, lower, upper *tracestore.Facets, q tracestore.FacetQuery) error {
	if err := diffCount("spans", got.Spans, lower.Spans, upper.Spans, got.Share); err != nil {
		return err
	}
	if err := diffCount("selected", got.Selected, lower.Selected, upper.Selected, got.Share); err != nil {
		return err
	}
	exact := fmt.Sprintf("%+v", *lower)
	if got.Share == 1 && exact == fmt.Sprintf("%+v", *upper) {
		if g := fmt.Sprintf("%+v", *got); g != exact {
			return fmt.Errorf("\n got %s\nwant %s", g, exact)
		}
		return nil
	}
	named := len(q.Fields) > 0
	for i := range got.Facets {
		f := &got.Facets[i]
		if named && f.Field != q.Fields[i] || !named && i > 0 && !facetsInOrder(&got.Facets[i-1], f) {
			return fmt.Errorf("field %d, %+v, out of order", i, f.Field)
		}
		of := func(f tracestore.Facet) bool { return f.Field == got.Facets[i].Field }
		l, m := slices.IndexFunc(lower.Facets, of), slices.IndexFunc(upper.Facets, of)
		if l < 0 || m < 0 {
			if lower.Omitted == 0 {
				return fmt.Errorf("field %+v: no span has it", f.Field)
			}
			continue
		}
		if err := diffFacet(f, &lower.Facets[l], &upper.Facets[m], got); err != nil {
			return fmt.Errorf("field %+v: %w", f.Field, err)
		}
	}
	if got.Share == 1 && len(got.Facets) != len(lower.Facets) {
		return fmt.Errorf("%d fields, want %d", len(got.Facets), len(lower.Facets))
	}
	return nil
}

func facetsInOrder(a, b *tracestore.Facet) bool {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Spans, a.Spans), cmp.Compare(a.Field.Place, b.Field.Place),
		cmp.Compare(a.Field.Key, b.Field.Key)) < 0
}

// diffFacet compares the values of one field.
func diffFacet(got, lower, upper *tracestore.Facet, all *tracestore.Facets) error {
	if err := diffCount("spans", got.Spans, lower.Spans, upper.Spans, all.Share); err != nil {
		return err
	}
	if got.Distinct > upper.Distinct || got.Distinct < lower.Distinct && all.Share == 1 ||
		len(got.Values) > got.Distinct || got.Other > upper.Other {
		return fmt.Errorf("%d values, %d distinct, %d others", len(got.Values), got.Distinct, got.Other)
	}
	for i := range got.Values {
		v := &got.Values[i]
		if i > 0 && !valuesInOrder(&got.Values[i-1], v) {
			return fmt.Errorf("value %d, %+v, out of order", i, *v)
		}
		score := storequery.FacetScore(v.Count, v.Selected, all.Spans, all.Selected)
		if v.Score != score || math.Abs(score) > got.Score || v.Count == 0 || v.Selected > v.Count {
			return fmt.Errorf("value %+v, want score %g, and at most %g", *v, score, got.Score)
		}
		of := func(o tracestore.FacetValue) bool { return o.Text == got.Values[i].Text }
		if m := slices.IndexFunc(upper.Values, of); m >= 0 && (v.Count > upper.Values[m].Count || v.Selected > upper.Values[m].Selected) {
			return fmt.Errorf("value %+v, want at most %+v", *v, upper.Values[m])
		}
		if l := slices.IndexFunc(lower.Values, of); l >= 0 && all.Share == 1 && v.Count < lower.Values[l].Count {
			return fmt.Errorf("value %+v, want at least %+v", *v, lower.Values[l])
		}
	}
	return nil
}

func valuesInOrder(a, b *tracestore.FacetValue) bool {
	return cmp.Or(cmp.Compare(math.Abs(b.Score), math.Abs(a.Score)), cmp.Compare(b.Score, a.Score), cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Text, b.Text)) < 0
}

// diffExemplars describes what is wrong with exemplars. Any matching spans may be exemplars.
func diffExemplars(got *tracestore.Aggregate, matching map[tracestore.Exemplar]struct{}, a tracestore.Aggregation) error {
	if len(got.Exemplars) > a.Exemplars || a.Exemplars > 0 && len(got.Exemplars) == 0 && len(matching) > 0 && got.Share == 1 {
		return fmt.Errorf("%d exemplars of %d spans, want %d", len(got.Exemplars), len(matching), a.Exemplars)
	}
	for _, e := range got.Exemplars {
		if _, ok := matching[e]; !ok {
			return fmt.Errorf("exemplar %+v does not match or is repeated", e)
		}
		delete(matching, e)
	}
	return nil
}

// checkRandomAggregate compares a random aggregate, without and with a budget.
func (s *suite) checkRandomAggregate(g *generator, store tracestore.Aggregator) {
	s.Helper()
	q := tracestore.Query{Tenant: g.tenant(), Where: g.expr(g.IntN(3))}
	from := g.Uint64N(randomTimes)
	q.From, q.To = at(base+from), at(base+from+g.Uint64N(randomTimes))
	if g.IntN(3) == 0 {
		q.From, q.To = at(base), at(base+randomTimes)
	}
	a := g.aggregation()
	if a.Heatmap.Step == 0 && a.Groups.Step == 0 && g.IntN(2) == 0 {
		q.From, q.To = time.Time{}, time.Time{}
	}
	s.checkAggregateOf(store, q, a)
	q.Budget.Spans = 1 + g.IntN(20)
	s.checkAggregateOf(store, q, a)
}

func (g *generator) aggregation() tracestore.Aggregation {
	a := tracestore.Aggregation{Exemplars: g.IntN(6)}
	switch g.IntN(4) {
	case 0, 1:
		a.Heatmap.Step = time.Duration(1 + g.IntN(30))
	case 2: // a store may count full minutes without examining spans; exemplars may then exceed the budget
		a.Heatmap.Step, a.Exemplars = time.Minute, 0
	}
	if g.IntN(2) == 0 {
		a.Groups = g.groupQuery()
	}
	if g.IntN(4) == 0 {
		return a
	}
	a.Facets.Values = pick(g, 1, 3, 100, tracestore.MaxFacetValues)
	if g.IntN(2) == 0 {
		for range 1 + g.IntN(4) {
			f := g.field()
			if !slices.Contains(a.Facets.Fields, f) {
				a.Facets.Fields = append(a.Facets.Fields, f)
			}
		}
	}
	if g.IntN(2) == 0 {
		a.Facets.Selection = &tracestore.Selection{Where: g.expr(g.IntN(2))}
		if g.IntN(2) == 0 {
			a.Facets.Selection.From = at(base + g.Uint64N(randomTimes))
		}
		if g.IntN(2) == 0 {
			a.Facets.Selection.To = at(base + g.Uint64N(randomTimes))
		}
	}
	return a
}

func checkRandomAggregates(s *suite) {
	store := s.aggregator()
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 4))}
	var sent []*otlpdata.Batch
	for range rounds(5, 3) {
		for range 4 {
			b := s.encode(g.tenant(), g.request())
			s.maybeResend(&g, sent)
			s.consume(b)
			sent = append(sent, b)
		}
		for range 20 {
			s.checkRandomAggregate(&g, store)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}
