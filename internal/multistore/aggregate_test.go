package multistore

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var (
	service = tracestore.Field{Place: tracestore.Service}
	region  = tracestore.Field{Place: tracestore.SpanAttribute, Key: "region"}
	minute  = tracestore.Query{From: time.Unix(120, 0), To: time.Unix(180, 0)}
)

const second = uint64(time.Second)

func group(name string, errors uint64, durations ...uint64) tracestore.Group {
	return tracestore.Group{Values: storequery.GroupKey{{Text: name, Present: true}}, Errors: errors, Durations: histogram(durations...)}
}

// TestAggregate adds up two answers, with sums calculated by hand.
func TestAggregate(t *testing.T) {
	a := &canned{aggregate: tracestore.Aggregate{Spans: 10, Errors: 2, Share: 1, Scanned: 10,
		Heatmap: &tracestore.Heatmap{Step: second, Share: 1, Cells: []tracestore.HeatCell{
			{Start: 120 * second, Bucket: 5, Count: 4, Errors: 1}, {Start: 121 * second, Bucket: 7, Count: 6, Errors: 1}}},
		Facets: &tracestore.Facets{Spans: 10, Selected: 4, Share: 1, Facets: []tracestore.Facet{
			{Field: service, Spans: 10, Selected: 4, Distinct: 2, Values: []tracestore.FacetValue{
				{Text: "web", Count: 6, Selected: 4}, {Text: "db", Count: 4}}},
			{Field: region, Spans: 3, Distinct: 1, Other: 2, Values: []tracestore.FacetValue{{Text: "eu", Count: 1}}}}},
		Groups: &tracestore.Groups{All: group("", 2, 10, 20, 30), Share: 1, Distinct: 2, Other: 1,
			Groups: []tracestore.Group{group("web", 2, 10, 20), group("db", 0, 30)}},
		Exemplars: []tracestore.Exemplar{{SpanID: otlpdata.SpanID{1}, Start: 120 * second, Duration: 10},
			{SpanID: otlpdata.SpanID{2}, Start: 130 * second, Duration: 10}},
	}}
	b := &canned{aggregate: tracestore.Aggregate{Spans: 10, Errors: 3, Share: 1, Scanned: 12,
		Reasons: tracestore.Because(tracestore.ReasonDamage, "damaged file"),
		Heatmap: &tracestore.Heatmap{Step: second, Share: 1, Cells: []tracestore.HeatCell{
			{Start: 120 * second, Bucket: 5, Count: 1}, {Start: 120 * second, Bucket: 6, Count: 9, Errors: 3}}},
		Facets: &tracestore.Facets{Spans: 10, Selected: 1, Share: 1, Facets: []tracestore.Facet{
			{Field: service, Spans: 10, Selected: 1, Distinct: 2, Values: []tracestore.FacetValue{
				{Text: "db", Count: 9, Selected: 1}, {Text: "cache", Count: 1}}}}},
		Groups: &tracestore.Groups{All: group("", 1, 30, 40), Share: 1, Distinct: 2,
			Groups: []tracestore.Group{group("db", 1, 30), group("cache", 0, 40)}},
		Exemplars: []tracestore.Exemplar{{SpanID: otlpdata.SpanID{3}, Start: 140 * second, Duration: 1000}},
	}}
	want := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Second}, Exemplars: 2,
		Facets: tracestore.FacetQuery{Values: 2, Selection: &tracestore.Selection{}},
		Groups: tracestore.GroupQuery{By: []tracestore.Field{service}, Limit: 2, Sort: tracestore.GroupsByErrors}}
	got, err := over(a, b).Aggregate(t.Context(), minute, want)
	if err != nil {
		t.Fatal(err)
	}
	if got.Spans != 20 || got.Errors != 5 || got.Share != 1 || got.RelativeError != 0 || got.Scanned != 22 || got.Complete() ||
		got.Text() != "store b: damaged file" {
		t.Errorf("totals %+v", got)
	}
	cells := []tracestore.HeatCell{{Start: 120 * second, Bucket: 5, Count: 5, Errors: 1},
		{Start: 120 * second, Bucket: 6, Count: 9, Errors: 3}, {Start: 121 * second, Bucket: 7, Count: 6, Errors: 1}}
	if !reflect.DeepEqual(got.Heatmap.Cells, cells) || got.Heatmap.Share != 1 {
		t.Errorf("heatmap %+v, want %+v", got.Heatmap, cells)
	}
	// 5 of 20 spans are selected. web: 4 of 5 and 2 of 15. db: 1 of 5 and 12 of 15. cache: 0 of 5
	// and 1 of 15. eu: 0 of 5 and 1 of 15.
	score := func(selected, rest float64) float64 { return selected/5 - rest/15 }
	facets := &tracestore.Facets{Spans: 20, Selected: 5, Share: 1, Facets: []tracestore.Facet{
		{Field: service, Spans: 20, Selected: 5, Distinct: 3, Score: score(4, 2), Values: []tracestore.FacetValue{
			{Text: "web", Count: 6, Selected: 4, Score: score(4, 2)}, {Text: "db", Count: 13, Selected: 1, Score: score(1, 12)}}},
		{Field: region, Spans: 3, Distinct: 1, Other: 2, Score: -score(0, 1),
			Values: []tracestore.FacetValue{{Text: "eu", Count: 1, Score: score(0, 1)}}}}}
	if !reflect.DeepEqual(got.Facets, facets) {
		t.Errorf("facets %+v\n  want %+v", got.Facets, facets)
	}
	groups := &tracestore.Groups{All: tracestore.Group{Errors: 3, Durations: histogram(10, 20, 30, 30, 40)}, Share: 1, Distinct: 3, Other: 1,
		Groups: []tracestore.Group{group("web", 2, 10, 20), group("db", 1, 30, 30)}}
	if g, w := fmt.Sprintf("%+v", *got.Groups), fmt.Sprintf("%+v", *groups); g != w {
		t.Errorf("groups %s\n  want %s", g, w)
	}
	if e := got.Exemplars; len(e) != 2 || e[0].Duration != 1000 || e[1].Duration != 10 {
		t.Errorf("exemplars %+v, want one of each duration, newest first", e)
	}
}

// TestManyKeys checks that the fields of the result are those that the most spans of all stores
// have, although each store prefers others.
func TestManyKeys(t *testing.T) {
	facets := func(first string) *tracestore.Facets {
		f := &tracestore.Facets{Spans: 10, Share: 1}
		for i := range tracestore.MaxFacets {
			key := tracestore.Field{Place: tracestore.SpanAttribute, Key: fmt.Sprint(first, i)}
			f.Facets = append(f.Facets, tracestore.Facet{Field: key, Spans: 7})
		}
		f.Facets = append(f.Facets, tracestore.Facet{Field: region, Spans: 5})
		return f
	}
	s := over(&canned{aggregate: tracestore.Aggregate{Share: 1, Facets: facets("a")}},
		&canned{aggregate: tracestore.Aggregate{Share: 1, Facets: facets("b")}})
	got, err := s.Aggregate(t.Context(), minute, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1}})
	if err != nil || len(got.Facets.Facets) != tracestore.MaxFacets || got.Facets.Omitted != tracestore.MaxFacets+1 ||
		got.Facets.Facets[0].Field != region || got.Facets.Facets[0].Spans != 10 || got.Spans != 20 {
		t.Errorf("error %v, %d fields, %d omitted, first %+v", err, len(got.Facets.Facets), got.Facets.Omitted, got.Facets.Facets[0])
	}
}

// TestTooManyValues checks that the values and groups that are counted if the stores have too many
// are the most frequent ones.
func TestTooManyValues(t *testing.T) {
	answer := func(prefix string, more uint64) tracestore.Aggregate {
		f, all := tracestore.Facet{Field: region}, tracestore.Groups{Share: 1}
		for i := range storequery.MaxFacetDistinct {
			n := uint64(1)
			if i == 0 {
				n = more
			}
			f.Spans += n
			text := fmt.Sprint(prefix, i)
			f.Values = append(f.Values, tracestore.FacetValue{Text: text, Count: n})
			var h tracestore.Histogram
			h.ObserveN(1, n)
			all.All.Durations.Add(&h)
			all.Groups = append(all.Groups, tracestore.Group{Values: storequery.GroupKey{{Text: text, Present: true}}, Durations: h})
		}
		return tracestore.Aggregate{Share: 1, Facets: &tracestore.Facets{Spans: f.Spans, Share: 1, Facets: []tracestore.Facet{f}},
			Groups: &all}
	}
	a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 2, Fields: []tracestore.Field{region}},
		Groups: tracestore.GroupQuery{By: []tracestore.Field{region}, Limit: 2}}
	got, err := over(&canned{aggregate: answer("a", 5)}, &canned{aggregate: answer("b", 9)}).Aggregate(t.Context(), minute, a)
	if err != nil {
		t.Fatal(err)
	}
	f := got.Facets.Facets[0]
	const others = storequery.MaxFacetDistinct
	if want := []tracestore.FacetValue{{Text: "b0", Count: 9}, {Text: "a0", Count: 5}}; !reflect.DeepEqual(f.Values, want) ||
		f.Distinct != storequery.MaxFacetDistinct || f.Other != others {
		t.Errorf("values %+v of %d, %d others", f.Values, f.Distinct, f.Other)
	}
	g := got.Groups
	if g.Groups[0].Durations.Count() != 9 || g.Groups[1].Durations.Count() != 5 ||
		g.Distinct != storequery.MaxGroupsCounted || g.Other != others {
		t.Errorf("groups %+v of %d, %d others", g.Groups, g.Distinct, g.Other)
	}
}

// TestShares adds up samples with different shares, with estimates calculated by hand.
func TestShares(t *testing.T) {
	const values = 40
	rare, few := tracestore.Facet{Field: region, Spans: 100}, tracestore.Facet{Field: region, Spans: 50}
	for i := range values {
		rare.Values = append(rare.Values, tracestore.FacetValue{Text: fmt.Sprint("only in a ", i), Count: 1})
	}
	rare.Values = append(rare.Values, tracestore.FacetValue{Text: "all", Count: 60})
	few.Values = append(few.Values, tracestore.FacetValue{Text: "all", Count: 50})
	whole := &canned{aggregate: tracestore.Aggregate{Spans: 100, Errors: 40, Share: 1,
		Heatmap: &tracestore.Heatmap{Step: second, Share: 1,
			Cells: []tracestore.HeatCell{{Start: 120 * second, Bucket: 1, Count: 100, Errors: 40}}},
		Facets: &tracestore.Facets{Spans: 100, Share: 1, Facets: []tracestore.Facet{rare}}}}
	quarter := &canned{aggregate: tracestore.Aggregate{Spans: 50, Share: 0.25, RelativeError: 0.1,
		Heatmap: &tracestore.Heatmap{Step: second, Share: 0.25, Cells: []tracestore.HeatCell{{Start: 121 * second, Bucket: 1, Count: 50}}},
		Facets:  &tracestore.Facets{Spans: 50, Share: 0.25, Facets: []tracestore.Facet{few}}}}
	a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Second}, Facets: tracestore.FacetQuery{Values: 100}}
	got, err := over(whole, quarter).Aggregate(t.Context(), minute, a)
	if err != nil {
		t.Fatal(err)
	}
	// A quarter of 100 spans and 40 errors, and 50 spans; 300 spans in all, of which 200 are
	// estimated with a standard error of 20.
	if got.Spans != 75 || got.Errors != 10 || got.Share != 0.25 || math.Abs(got.RelativeError-20.0/300) > 1e-9 {
		t.Errorf("%d spans, %d errors, share %g, error %g", got.Spans, got.Errors, got.Share, got.RelativeError)
	}
	cells := []tracestore.HeatCell{{Start: 120 * second, Bucket: 1, Count: 25, Errors: 10}, {Start: 121 * second, Bucket: 1, Count: 50}}
	if !reflect.DeepEqual(got.Heatmap.Cells, cells) {
		t.Errorf("cells %+v, want %+v", got.Heatmap.Cells, cells)
	}
	f := got.Facets.Facets[0]
	if got.Facets.Spans != 75 || got.Facets.Share != 0.25 || f.Spans != 75 || f.Values[0] != (tracestore.FacetValue{Text: "all", Count: 65}) {
		t.Errorf("%d spans, share %g, %d spans with %+v", got.Facets.Spans, got.Facets.Share, f.Spans, f.Values[0])
	}
	if rest := f.Values[1:]; len(rest) != values/4 || !strings.HasPrefix(rest[0].Text, "only in a ") || rest[0].Count != 1 {
		t.Errorf("%d of %d rare values: %+v", len(rest), values, rest)
	}
}

// TestThinGroups checks that groups of a store with a higher share are reduced evenly.
func TestThinGroups(t *testing.T) {
	groups := []tracestore.Group{group("a", 4, 1, 1, 1, 1), group("b", 0, 9), group("c", 0, 9), group("d", 0, 9), group("e", 0, 9)}
	whole := &canned{aggregate: tracestore.Aggregate{Share: 1, Groups: &tracestore.Groups{
		All: group("", 4, 1, 1, 1, 1, 9, 9, 9, 9), Share: 1, Distinct: 5, Other: 3, Groups: groups}}}
	half := &canned{aggregate: tracestore.Aggregate{Share: 0.5, Groups: &tracestore.Groups{All: group("", 0, 1, 1), Share: 0.5,
		Distinct: 1, Groups: []tracestore.Group{group("a", 0, 1, 1)}}}}
	a := tracestore.Aggregation{Groups: tracestore.GroupQuery{By: []tracestore.Field{service}, Limit: 10}}
	got, err := over(whole, half).Aggregate(t.Context(), minute, a)
	if err != nil {
		t.Fatal(err)
	}
	g := got.Groups
	if got.Spans != 6 || got.Errors != 2 || got.Share != 0.5 || g.Share != 0.5 || g.All.Durations.Count() != 6 || g.Other != 2 ||
		g.Distinct != 3 || len(g.Groups) != 3 || g.Groups[0].Durations.Count() != 4 || g.Groups[0].Errors != 2 ||
		g.Groups[1].Durations.Count() != 1 {
		t.Errorf("%d spans, %d errors, share %g, groups %+v", got.Spans, got.Errors, got.Share, *g)
	}
}

// TestUnusableAggregates checks that a result that is not for the request is left out, and named.
func TestUnusableAggregates(t *testing.T) {
	cell := func(c tracestore.HeatCell) tracestore.Aggregate {
		heatmap := &tracestore.Heatmap{Step: second, Share: 1, Cells: []tracestore.HeatCell{c}}
		return tracestore.Aggregate{Share: 1, Heatmap: heatmap}
	}
	good := cell(tracestore.HeatCell{Start: 120 * second, Count: 1})
	wide := good
	wide.Heatmap = &tracestore.Heatmap{Step: 2 * second, Share: 1}
	for i, bad := range []tracestore.Aggregate{{}, wide, cell(tracestore.HeatCell{Start: 119 * second, Count: 1}),
		cell(tracestore.HeatCell{Start: 181 * second, Count: 1}), cell(tracestore.HeatCell{Start: 120 * second}),
		cell(tracestore.HeatCell{Start: 120 * second, Bucket: tracestore.HeatBuckets, Count: 1})} {
		a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Second}}
		got, err := over(&canned{aggregate: good}, &canned{aggregate: bad}).Aggregate(t.Context(), minute, a)
		if err != nil || got.Spans != 1 || got.Complete() || !strings.HasPrefix(got.Text(), "store b: the ") {
			t.Errorf("case %d: %+v, %v", i, got, err)
		}
	}
}
