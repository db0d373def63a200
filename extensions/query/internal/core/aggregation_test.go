package core

import (
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Attributes of parents are counted in whole traces, whether they name groups or are measured.
func TestCountsRelatives(t *testing.T) {
	own := tracestore.Field{Place: tracestore.SpanAttribute, Key: "n"}
	parent := own
	parent.Parent = true
	for _, c := range []struct {
		spec tracestore.Aggregation
		want bool
	}{
		{tracestore.Aggregation{Groups: tracestore.GroupQuery{By: []tracestore.Field{own}, Of: own}}, false},
		{tracestore.Aggregation{Groups: tracestore.GroupQuery{By: []tracestore.Field{own, parent}}}, true},
		{tracestore.Aggregation{Groups: tracestore.GroupQuery{Of: parent}}, true},
		{tracestore.Aggregation{Facets: tracestore.FacetQuery{Fields: []tracestore.Field{parent}}}, true},
	} {
		a := Aggregation{Spec: c.spec}
		if got := a.countsRelatives(); got != c.want {
			t.Errorf("%+v: %t, want %t", c.spec, got, c.want)
		}
	}
}
