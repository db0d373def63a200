package multistore

import (
	"fmt"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// largeAggregate returns a result of one of several stores: a heatmap of 2000 columns, 50 fields
// with 1000 values, and 1000 groups. Half of the values and groups differ from those of other
// stores.
func largeAggregate(store int) tracestore.Aggregate {
	a := tracestore.Aggregate{Share: 1, Heatmap: &tracestore.Heatmap{Step: second, Share: 1},
		Facets: &tracestore.Facets{Spans: 1 << 20, Selected: 1 << 10, Share: 1}, Groups: &tracestore.Groups{Share: 1}}
	name := func(i int) string {
		if i%2 == 0 {
			return fmt.Sprintf("value of a common length %d", i)
		}
		return fmt.Sprintf("value of store %d with number %d", store, i)
	}
	for column := range uint64(tracestore.MaxColumns) {
		for bucket := range 20 {
			a.Heatmap.Cells = append(a.Heatmap.Cells, tracestore.HeatCell{Start: column * second, Bucket: 100 + 3*bucket, Count: 25, Errors: 1})
		}
	}
	for field := range 50 {
		key := tracestore.Field{Place: tracestore.SpanAttribute, Key: fmt.Sprint("key.", field)}
		f := tracestore.Facet{Field: key, Spans: 1 << 19, Distinct: 1000}
		for i := range 1000 {
			f.Values = append(f.Values, tracestore.FacetValue{Text: name(i), Count: uint64(1 + 512/(i+1)), Selected: uint64(i % 2)})
		}
		a.Facets.Facets = append(a.Facets.Facets, f)
	}
	durations := histogram(1_000, 2_000, 5_000, 20_000, 100_000, 1_000_000)
	for i := range 1000 {
		g := tracestore.Group{Values: storequery.GroupKey{{Text: name(i), Present: true}}}
		g.Durations.Add(&durations)
		a.Groups.All.Durations.Add(&durations)
		a.Groups.Groups = append(a.Groups.Groups, g)
	}
	return a
}

// BenchmarkMergeAggregates merges the results of 4 stores.
func BenchmarkMergeAggregates(b *testing.B) {
	var answers []answer[tracestore.Aggregate]
	for i := range 4 {
		answers = append(answers, answer[tracestore.Aggregate]{fmt.Sprint(i), largeAggregate(i)})
	}
	q := tracestore.Query{From: time.Unix(0, 0), To: time.Unix(tracestore.MaxColumns-1, 0)}
	for name, a := range map[string]tracestore.Aggregation{
		"heatmap": {Heatmap: tracestore.HeatmapQuery{Step: time.Second}},
		"facets":  {Facets: tracestore.FacetQuery{Values: 20, Selection: &tracestore.Selection{}}},
		"groups":  {Groups: tracestore.GroupQuery{By: []tracestore.Field{service}, Limit: 100, Sort: tracestore.GroupsByP99}},
	} {
		b.Run(name, func(b *testing.B) {
			var parts []answer[tracestore.Aggregate]
			for _, one := range answers { // only what was requested
				if a.Heatmap.Step == 0 {
					one.value.Heatmap = nil
				}
				if a.Facets.Values == 0 {
					one.value.Facets = nil
				}
				if len(a.Groups.By) == 0 {
					one.value.Groups = nil
				}
				parts = append(parts, one)
			}
			b.ReportAllocs()
			for b.Loop() {
				if out, err := mergeAggregates(q, a, parts, nil, nil); err != nil || !out.Complete() {
					b.Fatal(out.Text(), err)
				}
			}
		})
	}
}
