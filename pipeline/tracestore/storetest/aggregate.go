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

// aggregate answers from the definition: the spans that are counted once, and each counted once for every request it came in.
func (o *oracle) aggregate(q tracestore.Query, a tracestore.Aggregation) (least, most tracestore.Aggregate, _ error) {
	once, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return least, most, err
	}
	often, _ := storequery.NewAggregateCounter(q, a)
	t := o.tenant(q.Tenant)
	for _, s := range t.spans {
		once.AddSpan(s)
		for range t.requests[content(s)] {
			often.AddSpan(s)
		}
	}
	return once.Answer(1), often.Answer(1), nil
}

// matching returns the spans for which a query holds, as exemplars.
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

// checkAggregateOf compares an aggregate with what was sent, and returns it.
func (s *suite) checkAggregateOf(store tracestore.Aggregator, q tracestore.Query, a tracestore.Aggregation) tracestore.Aggregate {
	s.Helper()
	got, err := store.Aggregate(s.ctx, q, a)
	if err != nil {
		s.Fatalf("Aggregate(%s, %s): %v", describe(q), describeAggregation(a), err)
	}
	least, most, err := s.sent.aggregate(q, a)
	if err != nil {
		s.Fatalf("Aggregate(%s, %s): no error, want %v", describe(q), describeAggregation(a), err)
	}
	err = wrongAggregate(&got, &least, &most, a)
	if err == nil {
		err = wrongExemplars(&got, s.sent.matching(q), a)
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
		fmt.Fprintf(&b, ", of these %s", describe(tracestore.Query{From: sel.From, To: sel.To, Where: sel.Where}))
	}
	return b.String()
}

// wrongAggregate tells the first difference between an answer and the definition's, of which a sample has a part.
func wrongAggregate(got, least, most *tracestore.Aggregate, a tracestore.Aggregation) error {
	if !got.Complete || got.Reason != "" {
		return fmt.Errorf("complete is %t %q", got.Complete, got.Reason)
	}
	if (got.Heatmap != nil) != (a.Heatmap.Step > 0) || (got.Facets != nil) != (a.Facets.Values > 0) {
		return fmt.Errorf("heatmap %v, facets %v", got.Heatmap, got.Facets)
	}
	share := got.Share
	switch {
	case got.Heatmap != nil && got.Heatmap.Share != share, got.Heatmap == nil && got.Facets != nil && got.Facets.Share != share:
		return fmt.Errorf("the share is %g, that of what was counted differs", share)
	}
	if err := wrongCount("spans", got.Spans, least.Spans, most.Spans, share); err != nil {
		return err
	}
	if err := wrongCount("errors", got.Errors, least.Errors, most.Errors, share); err != nil {
		return err
	}
	if got.Heatmap != nil {
		if err := wrongHeatmap(got.Heatmap, least.Heatmap, most.Heatmap); err != nil {
			return fmt.Errorf("heatmap: %w", err)
		}
	}
	if got.Facets != nil {
		if err := wrongFacets(got.Facets, least.Facets, most.Facets, a.Facets); err != nil {
			return fmt.Errorf("facets: %w", err)
		}
	}
	return nil
}

// wrongCount compares a number: a sample may have less than there is.
func wrongCount(of string, got, least, most uint64, share float64) error {
	switch {
	case share <= 0 || share > 1:
		return fmt.Errorf("%s: the share is %g", of, share)
	case got > most || got < least && share == 1:
		return fmt.Errorf("%s: %d of a share of %g, want %d to %d", of, got, share, least, most)
	}
	return nil
}

func wrongHeatmap(got, least, most *tracestore.Heatmap) error {
	if got.Step != least.Step {
		return fmt.Errorf("step %d, want %d", got.Step, least.Step)
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
			return fmt.Errorf("cell %d is %+v: not in order, or empty", i, *c)
		}
		cells[name{c.Start, c.Bucket}] = c
	}
	for i, l := range least.Cells {
		m, at := most.Cells[i], name{l.Start, l.Bucket}
		c := cells[at]
		delete(cells, at)
		if c == nil {
			c = &tracestore.HeatCell{}
		}
		if err := wrongCount(fmt.Sprintf("%+v", at), c.Count, l.Count, m.Count, got.Share); err != nil {
			return err
		}
		if err := wrongCount(fmt.Sprintf("errors of %+v", at), c.Errors, l.Errors, m.Errors, got.Share); err != nil {
			return err
		}
	}
	if len(cells) > 0 {
		return fmt.Errorf("%d cells where nothing is", len(cells))
	}
	return nil
}

// wrongFacets compares facets. Where no span is counted twice, and none is left out, they are equal.
func wrongFacets(got, least, most *tracestore.Facets, q tracestore.FacetQuery) error {
	if err := wrongCount("spans", got.Spans, least.Spans, most.Spans, got.Share); err != nil {
		return err
	}
	if err := wrongCount("selected", got.Selected, least.Selected, most.Selected, got.Share); err != nil {
		return err
	}
	exact := fmt.Sprintf("%+v", *least)
	if got.Share == 1 && exact == fmt.Sprintf("%+v", *most) {
		if g := fmt.Sprintf("%+v", *got); g != exact {
			return fmt.Errorf("\n got %s\nwant %s", g, exact)
		}
		return nil
	}
	named := len(q.Fields) > 0
	for i := range got.Facets {
		f := &got.Facets[i]
		if named && f.Field != q.Fields[i] || !named && i > 0 && !facetsInOrder(&got.Facets[i-1], f) {
			return fmt.Errorf("field %d, %+v, is not in order", i, f.Field)
		}
		of := func(f tracestore.Facet) bool { return f.Field == got.Facets[i].Field }
		l, m := slices.IndexFunc(least.Facets, of), slices.IndexFunc(most.Facets, of)
		if l < 0 || m < 0 {
			if least.Omitted == 0 {
				return fmt.Errorf("field %+v, which no span has", f.Field)
			}
			continue
		}
		if err := wrongFacet(f, &least.Facets[l], &most.Facets[m], got); err != nil {
			return fmt.Errorf("field %+v: %w", f.Field, err)
		}
	}
	if got.Share == 1 && len(got.Facets) != len(least.Facets) {
		return fmt.Errorf("%d fields, want %d", len(got.Facets), len(least.Facets))
	}
	return nil
}

func facetsInOrder(a, b *tracestore.Facet) bool {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Spans, a.Spans), cmp.Compare(a.Field.Place, b.Field.Place),
		cmp.Compare(a.Field.Key, b.Field.Key)) < 0
}

// wrongFacet compares what spans have of one field.
func wrongFacet(got, least, most *tracestore.Facet, all *tracestore.Facets) error {
	if err := wrongCount("spans", got.Spans, least.Spans, most.Spans, all.Share); err != nil {
		return err
	}
	if got.Distinct > most.Distinct || got.Distinct < least.Distinct && all.Share == 1 || len(got.Values) > got.Distinct || got.Other > most.Other {
		return fmt.Errorf("%d values, %d of them distinct, and %d others", len(got.Values), got.Distinct, got.Other)
	}
	for i := range got.Values {
		v := &got.Values[i]
		if i > 0 && !valuesInOrder(&got.Values[i-1], v) {
			return fmt.Errorf("value %d, %+v, is not in order", i, *v)
		}
		score := storequery.FacetScore(v.Count, v.Selected, all.Spans, all.Selected)
		if v.Score != score || math.Abs(score) > got.Score || v.Count == 0 || v.Selected > v.Count {
			return fmt.Errorf("value %+v, want a score of %g, and at most %g", *v, score, got.Score)
		}
		of := func(o tracestore.FacetValue) bool { return o.Text == got.Values[i].Text }
		if m := slices.IndexFunc(most.Values, of); m >= 0 && (v.Count > most.Values[m].Count || v.Selected > most.Values[m].Selected) {
			return fmt.Errorf("value %+v, want at most %+v", *v, most.Values[m])
		}
		if l := slices.IndexFunc(least.Values, of); l >= 0 && all.Share == 1 && v.Count < least.Values[l].Count {
			return fmt.Errorf("value %+v, want at least %+v", *v, least.Values[l])
		}
	}
	return nil
}

func valuesInOrder(a, b *tracestore.FacetValue) bool {
	return cmp.Or(cmp.Compare(math.Abs(b.Score), math.Abs(a.Score)), cmp.Compare(b.Score, a.Score), cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Text, b.Text)) < 0
}

// wrongExemplars tells what is wrong with the examples. How they are chosen is the store's affair.
func wrongExemplars(got *tracestore.Aggregate, matching map[tracestore.Exemplar]struct{}, a tracestore.Aggregation) error {
	if len(got.Exemplars) > a.Exemplars || a.Exemplars > 0 && len(got.Exemplars) == 0 && len(matching) > 0 && got.Share == 1 {
		return fmt.Errorf("%d exemplars of %d spans, want %d", len(got.Exemplars), len(matching), a.Exemplars)
	}
	for _, e := range got.Exemplars {
		if _, ok := matching[e]; !ok {
			return fmt.Errorf("exemplar %+v does not match, or comes twice", e)
		}
		delete(matching, e)
	}
	return nil
}

// askAggregate compares the answer to one random question, which is asked again within a budget.
func (s *suite) askAggregate(g *generator, store tracestore.Aggregator) {
	s.Helper()
	q := tracestore.Query{Tenant: g.tenant(), Where: g.expr(g.IntN(3))}
	from := g.Uint64N(randomTimes)
	q.From, q.To = at(base+from), at(base+from+g.Uint64N(randomTimes))
	if g.IntN(3) == 0 {
		q.From, q.To = at(base), at(base+randomTimes)
	}
	a := g.aggregation()
	if a.Heatmap.Step == 0 && g.IntN(2) == 0 {
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
	case 2: // which a store may count by other means; examples may then be too costly to find within a budget
		a.Heatmap.Step, a.Exemplars = time.Minute, 0
	}
	if g.IntN(4) == 0 {
		return a
	}
	a.Facets.Values = pick(g, 1, 3, 100, tracestore.MaxFacetValues)
	if g.IntN(2) == 0 {
		for range 1 + g.IntN(4) {
			f := tracestore.Field{Place: tracestore.Place(g.IntN(int(tracestore.RootName) + 1)), Key: g.key()}
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
	for range 10 {
		for range 4 {
			b := s.encode(g.tenant(), g.request())
			s.sometimesAgain(&g, sent)
			s.consume(b)
			sent = append(sent, b)
		}
		for range 20 {
			s.askAggregate(&g, store)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}
