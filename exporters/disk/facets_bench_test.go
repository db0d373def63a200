//go:build unix

package disk

import (
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// BenchmarkFacets counts values, groups and heatmaps as the page Explore does, of all spans except
// for those at both ends. Each window begins and ends a second later than the one before, as in a
// page that refreshes. DISK_BENCH_SPANS and DISK_BENCH_FOLDER set the size of the store; see
// benchStore. "first-ms" is the time of the first call, "first-cpu-ms" its CPU time.
func BenchmarkFacets(b *testing.B) {
	e := benchStore(b)
	oldest, newest, rows := boundsOf(e)
	facets := tracestore.FacetQuery{Values: 40}
	compare := tracestore.FacetQuery{Values: 40, Selection: &tracestore.Selection{Where: whereOf(b, `{ error }`)}}
	groups := func(f tracestore.Field) tracestore.Aggregation {
		return tracestore.Aggregation{Groups: tracestore.GroupQuery{Limit: 100, By: []tracestore.Field{{Place: tracestore.Service}, f}}}
	}
	for _, c := range []struct {
		name string
		want tracestore.Aggregation
	}{
		{"facets", tracestore.Aggregation{Facets: facets}},
		{"compare", tracestore.Aggregation{Facets: compare}},
		{"heatmap", tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: 7 * time.Second}, Exemplars: 500}},
		{"groups by name", groups(tracestore.Field{Place: tracestore.Name})},
		{"groups by attribute", groups(tracestore.Field{Place: tracestore.AnyAttribute, Key: "http.route"})},
	} {
		for name, where := range map[string]string{"all": "", "service": `{ service = "checkout" }`, "attribute": `{ cloud.region = "us-east-1" }`} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				q := tracestore.Query{From: oldest, To: newest.Add(-newest.Sub(oldest) / 8), Where: whereOf(b, where)}
				benchAggregate(b, e, rows, q, c.want)
			})
		}
	}
}

// benchAggregate measures an aggregation in windows that each begin and end a second later.
func benchAggregate(b *testing.B, e *exporter, rows int, q tracestore.Query, want tracestore.Aggregation) {
	var times []time.Duration
	var firstCPU time.Duration
	var found tracestore.Aggregate
	cpu := cpuTime(b)
	for b.Loop() {
		q.From, q.To = q.From.Add(time.Second), q.To.Add(time.Second)
		began := time.Now()
		var err error
		if found, err = e.Aggregate(b.Context(), q, want); err != nil {
			b.Fatal(err)
		}
		if times = append(times, time.Since(began)); firstCPU == 0 {
			firstCPU = cpuTime(b) - cpu
		}
	}
	first := times[0]
	slices.Sort(times)
	b.ReportMetric(float64(rows), "stored-spans")
	b.ReportMetric(float64(found.Spans), "spans")
	b.ReportMetric(found.Share, "share")
	b.ReportMetric(float64(first.Milliseconds()), "first-ms")
	b.ReportMetric(float64(firstCPU.Milliseconds()), "first-cpu-ms")
	b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(float64((cpuTime(b)-cpu-firstCPU).Milliseconds())/float64(max(b.N-1, 1)), "cpu-ms/op")
	b.ReportMetric(0, "ns/op")
}

// benchBudget is the default of max_aggregated_spans.
const benchBudget = 5_000_000

// BenchmarkMetricsQueries is like BenchmarkFacets, for what metrics queries ask: counts, durations
// and facets in steps of 15 s.
func BenchmarkMetricsQueries(b *testing.B) {
	e := benchStore(b)
	oldest, newest, rows := boundsOf(e)
	steps := func(m tracestore.Measure, by ...tracestore.Place) tracestore.Aggregation {
		g := tracestore.GroupQuery{Limit: 1, All: true, Step: 15 * time.Second, Measure: m, Of: tracestore.Field{Place: tracestore.Duration}}
		for _, p := range by {
			g.By = append(g.By, tracestore.Field{Place: p})
		}
		return tracestore.Aggregation{Groups: g}
	}
	compare := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 10}}
	for _, c := range []struct {
		name, where string
		want        tracestore.Aggregation
	}{
		{"rate by service", "", steps(tracestore.MeasureNone, tracestore.Service)},
		{"rate of errors", `{ error }`, steps(tracestore.MeasureNone)},
		{"quantiles by name", `{ service = "checkout" }`, steps(tracestore.MeasureDistribution, tracestore.Name)},
		{"histogram", "", steps(tracestore.MeasureDistribution)},
		{"compare errors", `{ error }`, compare},
		{"compare the rest", `{ !(error) }`, compare},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := tracestore.Query{From: oldest, To: newest.Add(-newest.Sub(oldest) / 8), Where: whereOf(b, c.where),
				Budget: tracestore.Budget{Spans: benchBudget}}
			benchAggregate(b, e, rows, q, c.want)
		})
	}
}
