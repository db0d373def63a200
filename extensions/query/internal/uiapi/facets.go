package uiapi

import (
	"context"
	"net/url"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const defaultFacetValues = 10

// facetsAnswer is the data of GET /api/ui/v1/facets and compare. Counts cover the examined share of
// spans.
type facetsAnswer struct {
	Spans    uint64 `json:"spans"`
	Errors   uint64 `json:"errors"`
	Selected uint64 `json:"selected"` // spans that are in the selection
	route.SampleShare
	EstimatedSelected uint64        `json:"estimatedSelected"`
	Omitted           int           `json:"omitted"` // further fields
	Facets            []facetAnswer `json:"facets"`
}

// facetAnswer is the values of one field.
type facetAnswer struct {
	Field    string       `json:"field"`           // as in searches
	Names    []string     `json:"names,omitempty"` // of an attribute that was renamed: all names, the newest first
	Spans    uint64       `json:"spans"`           // spans that have the field
	Selected uint64       `json:"selected"`
	Distinct int          `json:"distinct"`
	Other    uint64       `json:"other"`
	Score    float64      `json:"score"`
	Values   valueColumns `json:"values"`
}

type valueColumns struct {
	Text     []string  `json:"text"`
	Count    []uint64  `json:"count"`
	Selected []uint64  `json:"selected"`
	Score    []float64 `json:"score"`
}

// facets parses GET /api/ui/v1/facets, which returns the values of fields with the number of spans
// that have them.
func (a *API) facets(ctx context.Context, v url.Values) (route.Query, error) {
	agg, err := a.facetQuery(ctx, v)
	if err != nil {
		return nil, err
	}
	return runFacets(agg)
}

// compare parses GET /api/ui/v1/compare, which returns how the values of selected spans differ from
// the values of the other spans.
func (a *API) compare(ctx context.Context, v url.Values) (route.Query, error) {
	agg, err := a.facetQuery(ctx, v)
	if err != nil {
		return nil, err
	}
	if err = route.SelectionParams(a.backend.Language(ctx), v, &agg); err != nil {
		return nil, err
	}
	return runFacets(agg)
}

func (a *API) facetQuery(ctx context.Context, v url.Values) (agg core.Aggregation, err error) {
	if agg, err = route.AggregationParams(ctx, a.backend, v); err != nil {
		return agg, err
	}
	if agg.Spec.Facets.Values, err = route.CountParam(v, "values", defaultFacetValues, tracestore.MaxFacetValues); err != nil {
		return agg, err
	}
	agg.Spec.Facets.Fields, err = httpapi.ParseFields(a.backend.Language(ctx), v["fields"]...)
	if err != nil {
		err = httpapi.ParamError("fields", err)
	}
	return agg, err
}

func runFacets(agg core.Aggregation) (route.Query, error) {
	if err := agg.Check(); err != nil {
		return nil, err
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		found, err := slot.Aggregate(&agg)
		if err != nil {
			return nil, nil, err
		}
		return facetsOf(&found), found.Reasons, nil
	}, nil
}

func facetsOf(a *tracestore.Aggregate) *facetsAnswer {
	out := &facetsAnswer{Spans: a.Spans, Errors: a.Errors, Facets: []facetAnswer{}}
	f := a.Facets
	if f == nil {
		out.SampleShare = route.ShareOf(a, 1)
		return out
	}
	out.SampleShare, out.Selected, out.Omitted = route.ShareOf(a, f.Share), f.Selected, f.Omitted
	out.EstimatedSelected = route.Estimate(f.Selected, f.Share)
	for i := range f.Facets {
		if facet := &f.Facets[i]; facet.Field != serviceAttribute() { // the same as service
			out.Facets = append(out.Facets, facetOf(facet))
		}
	}
	return out
}

// serviceAttribute is a field that searches cannot name, because its name means the service there.
// The two differ only for resources without the attribute.
func serviceAttribute() tracestore.Field {
	return tracestore.Field{Place: tracestore.ResourceAttribute, Key: core.ServiceKey}
}

func facetOf(f *tracestore.Facet) facetAnswer {
	n := len(f.Values)
	out := facetAnswer{
		Field: traceql.FormatField(f.Field), Spans: f.Spans, Selected: f.Selected, Distinct: f.Distinct, Other: f.Other, Score: f.Score,
		Values: valueColumns{make([]string, n), make([]uint64, n), make([]uint64, n), make([]float64, n)},
	}
	if f.Field.Names != "" {
		for name := range f.Field.EachName() {
			out.Names = append(out.Names, traceql.FormatField(name))
		}
	}
	for i := range f.Values {
		val := &f.Values[i]
		out.Values.Text[i], out.Values.Count[i], out.Values.Selected[i], out.Values.Score[i] = val.Text, val.Count, val.Selected, val.Score
	}
	return out
}
