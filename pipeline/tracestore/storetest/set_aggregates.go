package storetest

import (
	"reflect"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// setAggregate computes an aggregate of selected spans, or of their traces, by its definition. It
// also returns what may be an exemplar.
func setAggregate(traces []fullTrace, q tracestore.Query, set storequery.SpanSet, a storequery.SetAggregation) (
	tracestore.Aggregate, map[tracestore.Exemplar]struct{},
) {
	where := q.Where
	q.Where = nil
	if one, ok := a.Selected.(storequery.Select); ok && a.Facets.Selection != nil {
		selection := *a.Facets.Selection
		selection.Where = tracestore.And{selection.Where, one.Where}
		a.Facets.Selection = &selection
	}
	counter, err := storequery.NewAggregateCounter(q, a.Aggregation)
	if err != nil {
		panic(err)
	}
	exemplars := make(map[tracestore.Exemplar]struct{})
	add := func(s tracestore.Span) {
		counter.AddSpan(s)
		duration, _ := s.Duration()
		exemplars[tracestore.Exemplar{TraceID: s.TraceID, SpanID: s.SpanID, Start: s.Start, Duration: duration,
			Service: storequery.FacetText(s.Resource.Service), Name: storequery.FacetText(s.Operation()),
			Failed: s.StatusCode == otlpdata.StatusError}] = struct{}{}
	}
	from, to, ok := q.Window()
	for i := range traces {
		w, matched := &traces[i], false
		for at := range w.selected(set) {
			s := w.spans[at]
			if !ok || s.Start < from || s.Start > to || !tracestore.Match(where, s) {
				continue
			}
			if matched = true; a.Traces {
				continue
			}
			if !a.OfTrace {
				s.Trace = nil
			}
			add(s)
		}
		if matched && a.Traces {
			add(asSpan(w.spans[0].Trace, from, to))
		}
	}
	return counter.Answer(1), exemplars
}

// asSpan returns a span that has the counted properties of a trace.
func asSpan(sum *tracestore.Summary, from, to uint64) tracestore.Span {
	s := otlpdata.Span{TraceID: sum.ID, SpanID: sum.Root, Name: sum.RootName, Start: min(max(sum.Start, from), to)}
	s.End = s.Start + sum.End - sum.Start
	if sum.Errors > 0 {
		s.StatusCode = int32(ptrace.StatusCodeError)
	}
	return tracestore.Span{Span: &s, Resource: &otlpdata.Resource{Service: sum.RootService}, Trace: sum}
}

// checkSetAggregate compares an aggregate of a span set with its definition, without a budget and
// with the given one.
func (s *suite) checkSetAggregate(budget int, q tracestore.Query, traces []fullTrace, set storequery.SpanSet, a storequery.SetAggregation) {
	s.Helper()
	what := describeSet(q, set) + ", " + describeAggregation(a.Aggregation)
	want, exemplars := setAggregate(traces, q, set, a)
	check := func() tracestore.Aggregate {
		s.Helper()
		got, err := storequery.AggregateSet(s.ctx, s.store, q, set, a)
		if err != nil {
			s.Fatalf("AggregateSet(%s): %v", what, err)
		}
		complete := got
		// The parts of such a short window can have more spans than the budget.
		if q.Budget.Spans > 0 && (got.Share < 1 || q.To.Sub(q.From) <= time.Nanosecond) {
			complete.Reasons = got.Without(tracestore.ReasonBudget)
		}
		err = diffAggregate(&complete, &want, &want, a.Aggregation)
		if err == nil {
			err = diffExemplars(&got, exemplars, a.Aggregation)
		}
		if err != nil {
			s.Errorf("AggregateSet(%s, traces %t, selected %v), budget %d: %v", what, a.Traces, a.Selected, q.Budget.Spans, err)
		}
		return got
	}
	if got := check(); got.Share != 1 {
		s.Errorf("AggregateSet(%s): share is %g without a budget", what, got.Share)
	}
	q.Budget.Spans = budget
	_, exemplars = setAggregate(traces, q, set, a)
	first := check()
	_, exemplars = setAggregate(traces, q, set, a)
	if again := check(); !reflect.DeepEqual(first.Exemplars, again.Exemplars) || first.Spans != again.Spans || first.Share != again.Share {
		s.Errorf("AggregateSet(%s): %d spans of a share of %g, then %d of %g", what, first.Spans, first.Share, again.Spans, again.Share)
	}
}

// checkRandomSetAggregate compares a random aggregate of a random span set.
func (s *suite) checkRandomSetAggregate(g *generator) {
	s.Helper()
	tenant := g.tenant()
	q := tracestore.Query{Tenant: tenant}
	if g.IntN(3) == 0 {
		q.Where = g.expr(1)
	}
	from := g.Uint64N(randomTimes)
	q.From, q.To = at(base+from), at(base+from+g.Uint64N(randomTimes))
	if g.IntN(2) == 0 {
		q.From, q.To = at(base), at(base+randomTimes)
	}
	a := storequery.SetAggregation{Aggregation: g.aggregation(), Traces: g.IntN(2) == 0, OfTrace: g.IntN(2) == 0}
	switch {
	case a.Traces:
		a.Facets = tracestore.FacetQuery{}
		if a.Groups.Requested() {
			a.Groups = g.traceGroups()
		}
	case a.Facets.Selection != nil && g.IntN(2) == 0:
		a.Selected = storequery.Select{Where: g.expr(1)}
	}
	ofParent := func(f *tracestore.Field) { f.Parent = f.Place.HasKey() && g.IntN(4) == 0 }
	for i := range a.Groups.By {
		ofParent(&a.Groups.By[i])
	}
	ofParent(&a.Groups.Of)
	s.checkSetAggregate(1+g.IntN(300), q, s.sent.fullTraces(s, tenant), g.set(g.IntN(3)), a)
}
