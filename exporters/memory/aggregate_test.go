package memory

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestAggregateScannedSpans checks that aggregates use indexes and respect the budget.
func TestAggregateScannedSpans(t *testing.T) {
	e, _ := open(t, 0)
	const traces = 1000
	consume(t, e, batch(t, "", ordinary(0, traces)))
	eq := func(p tracestore.Place, key, text string) tracestore.Cond {
		return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Value: tracestore.Text(text)}
	}
	service, name := eq(tracestore.Service, "", "service-1"), eq(tracestore.Name, "", "GET /path/5")
	user := eq(tracestore.AnyAttribute, "user.id", "user-77")
	for name, c := range map[string]struct {
		q                        tracestore.Query
		minScanned, maxScanned   int
		minSpans, estimatedSpans uint64
	}{
		"all":       {tracestore.Query{}, traces * spansPerTrace, traces * spansPerTrace, traces * spansPerTrace, 0},
		"a window":  {tracestore.Query{From: at(benchBase), To: at(benchBase)}, 1, spansPerTrace, 1, 0},
		"operation": {tracestore.Query{Where: tracestore.And{service, name}}, 1, traces * spansPerTrace / 4, 1, 0},
		"attribute": {tracestore.Query{Where: tracestore.And{service, user}}, 1, spansPerTrace, 1, 0},
		"nothing":   {tracestore.Query{Where: eq(tracestore.Service, "", "nothing")}, 0, 0, 0, 0},
		"budget":    {tracestore.Query{Budget: tracestore.Budget{Spans: 100}}, 90, 100, 90, traces * spansPerTrace},
		"budget of a union": {tracestore.Query{Where: tracestore.Or{service, name}, Budget: tracestore.Budget{Spans: 50}},
			20, 50, 20, traces * spansPerTrace / 4},
		"a budget of one": {tracestore.Query{Budget: tracestore.Budget{Spans: 1}}, 1, 1, 1, traces * spansPerTrace},
	} {
		got, err := e.Aggregate(t.Context(), c.q, tracestore.Aggregation{Exemplars: 10})
		if err != nil || !got.Complete() || got.Scanned < c.minScanned || got.Scanned > c.maxScanned || got.Spans < c.minSpans {
			t.Errorf("%s: %+v, %v; want %d to %d scanned", name, got, err, c.minScanned, c.maxScanned)
		}
		want := float64(c.estimatedSpans)
		if estimate := float64(got.Spans) / got.Share; want > 0 && math.Abs(estimate-want) > 0.5*want {
			t.Errorf("%s: share %g estimates %.0f spans, want about %.0f", name, got.Share, estimate, want)
		}
	}
}

// TestAggregateSamples checks that a sample of spans at regular intervals has spans of all services
// and many traces.
func TestAggregateSamples(t *testing.T) {
	e, _ := open(t, 0)
	const traces = 500
	consume(t, e, batch(t, "", ordinary(0, traces)))
	for _, budget := range []int{traces / 4, traces / 2, traces, 2 * traces} {
		q := tracestore.Query{Budget: tracestore.Budget{Spans: budget}}
		got, err := e.Aggregate(t.Context(), q, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1000,
			Fields: []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.SpanAttribute, Key: "user.id"}}}})
		if err != nil {
			t.Fatal(err)
		}
		services, users := got.Facets.Facets[0], got.Facets.Facets[1]
		if services.Distinct != 4 || services.Values[0].Count > 2*services.Values[3].Count {
			t.Errorf("budget %d: services %+v", budget, services.Values)
		}
		if users.Distinct < min(budget, traces)/2 {
			t.Errorf("budget %d: spans of %d traces", budget, users.Distinct)
		}
	}
}

// TestAggregateDeadline checks that an aggregate returns incomplete counts when its deadline is
// exceeded, and an error when it is canceled.
func TestAggregateDeadline(t *testing.T) {
	e, _ := open(t, 0)
	consume(t, e, batch(t, "", ordinary(0, 100)))
	for _, polls := range []int{0, 1, 2, 3} {
		late := &lateContext{Context: t.Context(), polls: polls, err: context.DeadlineExceeded}
		got, err := e.Aggregate(late, tracestore.Query{}, tracestore.Aggregation{Exemplars: 5})
		if polls < 2 {
			if err == nil {
				t.Errorf("after %d polls: %+v", polls, got)
			}
		} else if err != nil || !got.Has(tracestore.ReasonTime) || got.Spans != uint64(polls-1)*maxRows || got.Share != 1 {
			t.Errorf("after %d polls: %+v, %v", polls, got, err)
		}
		gone := &lateContext{Context: t.Context(), polls: polls, err: context.Canceled}
		if _, err := e.Aggregate(gone, tracestore.Query{}, tracestore.Aggregation{Exemplars: 5}); err == nil {
			t.Errorf("after %d polls: no error for a canceled context", polls)
		}
	}
}

// lateContext ends after a number of calls of Err.
type lateContext struct {
	context.Context
	polls int
	err   error
}

func (c *lateContext) Err() error {
	if c.polls--; c.polls < 0 {
		return c.err
	}
	return nil
}

func BenchmarkAggregate(b *testing.B) {
	e, _ := open(b, 1<<30)
	const traces = 5000
	consume(b, e, batch(b, "", ordinary(0, traces)))
	q := tracestore.Query{From: at(benchBase), To: at(benchBase).Add(time.Hour)}
	for name, a := range map[string]tracestore.Aggregation{
		"heatmap": {Heatmap: tracestore.HeatmapQuery{Step: time.Minute}},
		"facets":  {Facets: tracestore.FacetQuery{Values: 10}},
	} {
		for _, q.Budget.Spans = range []int{0, 10_000} {
			b.Run(fmt.Sprint(name, "/budget ", q.Budget.Spans), func(b *testing.B) {
				b.ReportAllocs()
				scanned := 0
				for b.Loop() {
					got, err := e.Aggregate(b.Context(), q, a)
					if err != nil {
						b.Fatal(err)
					}
					scanned = got.Scanned
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(scanned), "ns/span")
			})
		}
	}
}
