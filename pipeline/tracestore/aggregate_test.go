package tracestore

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestAggregationCheck checks the errors for invalid aggregations.
func TestAggregationCheck(t *testing.T) {
	from := time.Unix(1_700_000_000, 0)
	hour := Query{From: from, To: from.Add(time.Hour)}
	heatmap := func(step time.Duration) Aggregation { return Aggregation{Heatmap: HeatmapQuery{Step: step}} }
	fields := func(f ...Field) Aggregation { return Aggregation{Facets: FacetQuery{Values: 1, Fields: f}} }
	for name, c := range map[string]struct {
		q    Query
		a    Aggregation
		want string // part of the error; "": no error
	}{
		"nothing":             {Query{}, Aggregation{}, ""},
		"a column for all":    {Query{}, heatmap(math.MaxInt64), ""},
		"fine columns":        {hour, heatmap(time.Hour / (MaxColumns - 1)), ""},
		"too fine columns":    {hour, heatmap(time.Second), "at least 1.8"},
		"no end":              {Query{From: from}, heatmap(time.Minute), "a start and an end"},
		"an empty window":     {Query{From: from, To: from.Add(-time.Hour)}, heatmap(1), ""},
		"a negative column":   {hour, heatmap(-time.Second), "-1s"},
		"negative exemplars":  {hour, Aggregation{Exemplars: -1}, "-1 exemplars"},
		"many exemplars":      {hour, Aggregation{Exemplars: MaxExemplars + 1}, "1001 exemplars"},
		"negative values":     {hour, Aggregation{Facets: FacetQuery{Values: -1}}, "-1 facet values"},
		"many values":         {hour, Aggregation{Facets: FacetQuery{Values: MaxFacetValues + 1}}, "1001 facet values"},
		"the maximum numbers": {hour, Aggregation{Exemplars: MaxExemplars, Facets: FacetQuery{Values: MaxFacetValues}}, ""},
		"many fields":         {hour, fields(make([]Field, MaxFacets+1)...), "201 facet fields"},
		"two fields":          {hour, fields(Field{Place: SpanAttribute, Key: "a"}, Field{Key: "a"}), ""},
		"a field twice":       {hour, fields(Field{Key: "a"}, Field{Place: Name}, Field{Key: "a"}), `"a"`},
		"an unknown place":    {hour, fields(Field{Place: Place(len(Places()))}), "unknown facet field place"},
	} {
		err := c.a.Check(c.q)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	for range 1000 { // the column width that an error recommends is valid
		q := Query{From: time.Unix(0, rand.Int64()), To: time.Unix(0, rand.Int64())}
		if err := (&HeatmapQuery{Step: 1}).check(q); err != nil {
			text := err.Error()
			width, err := time.ParseDuration(text[strings.LastIndex(text, " ")+1:])
			if err != nil || (HeatmapQuery{Step: width}).check(q) != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
}
