package query

import (
	"errors"
	"net/url"
	"strings"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const defaultFacetValues = 10

// facetsAnswer is the data of GET /api/ui/v1/facets and compare. Counts are of the share of spans that was examined.
type facetsAnswer struct {
	Spans    uint64 `json:"spans"`
	Errors   uint64 `json:"errors"`
	Selected uint64 `json:"selected"` // spans that are selected, too
	share
	EstimatedSelected uint64        `json:"estimatedSelected"`
	Omitted           int           `json:"omitted"` // further fields
	Facets            []facetAnswer `json:"facets"`
}

// facetAnswer is the values of one field, as columns.
type facetAnswer struct {
	Field    string       `json:"field"` // as searches write it
	Spans    uint64       `json:"spans"` // that have the field
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

// facets reads GET /api/ui/v1/facets: the values that spans have, and how many have each.
func (h *handler) facets(v url.Values) (question, error) {
	a, err := h.facetQuery(v)
	if err != nil {
		return nil, err
	}
	return askFacets(a)
}

// compare reads GET /api/ui/v1/compare: how the values of selected spans differ from those of the others.
func (h *handler) compare(v url.Values) (question, error) {
	a, err := h.facetQuery(v)
	if err != nil {
		return nil, err
	}
	if a.Facets.Selection, err = parseSelection(v, a.window); err != nil {
		return nil, err
	}
	return askFacets(a)
}

func (h *handler) facetQuery(v url.Values) (a aggregated, err error) {
	if a, err = h.aggregation(v); err != nil {
		return a, err
	}
	if a.Facets.Values, err = countParam(v, "values", defaultFacetValues, tracestore.MaxFacetValues); err != nil {
		return a, err
	}
	a.Facets.Fields, err = parseFields(v["fields"])
	return a, err
}

func askFacets(a aggregated) (question, error) {
	if err := a.Check(a.query()); err != nil {
		return nil, err
	}
	return func(t *turn) (any, string, error) {
		found, err := a.ask(t)
		if err != nil {
			return nil, "", err
		}
		return facetsOf(&found), reasonOf(&found), nil
	}, nil
}

// parseFields reads fields as searches write them, several of them with commas between.
func parseFields(lists []string) ([]tracestore.Field, error) {
	text := strings.Join(lists, ", ")
	if text == "" {
		return nil, nil
	}
	fields, err := traceql.ParseFields(text)
	var wrong *traceql.Error
	if errors.As(err, &wrong) {
		err = errors.New(wrong.Detail())
	}
	if err != nil {
		return nil, paramError("fields", err)
	}
	return fields, nil
}

var errNoSelection = errors.New("nothing is selected: set one of sel_start, sel_end, sel_min, sel_max and sel_q")

// parseSelection reads the box in a heatmap that people draw, and a further condition.
func parseSelection(v url.Values, w window) (*tracestore.Selection, error) {
	chosen := false
	for _, name := range []string{"sel_start", "sel_end", "sel_min", "sel_max", "sel_q"} {
		chosen = chosen || v.Get(name) != ""
	}
	if !chosen {
		return nil, errNoSelection
	}
	var s tracestore.Selection
	var err error
	if s.From, err = nanosParam(v, "sel_start", w.from); err != nil {
		return nil, err
	}
	if s.To, err = nanosParam(v, "sel_end", w.to); err != nil {
		return nil, err
	}
	where, err := parseCondition(v, "sel_q")
	if err != nil {
		return nil, err
	}
	all := tracestore.And{}
	if where != nil {
		all = append(all, where)
	}
	if all, err = boundDuration(all, v, "sel_min", tracestore.Ge); err != nil {
		return nil, err
	}
	if all, err = boundDuration(all, v, "sel_max", tracestore.Le); err != nil {
		return nil, err
	}
	s.Where = all
	return &s, nil
}

// boundDuration adds what a parameter asks for, if it is there.
func boundDuration(all tracestore.And, v url.Values, name string, op tracestore.Op) (tracestore.And, error) {
	if v.Get(name) == "" {
		return all, nil
	}
	d, err := durationParam(v, name)
	if err != nil {
		return nil, err
	}
	return append(all, duration(op, d.Nanoseconds())), nil
}

func facetsOf(a *tracestore.Aggregate) *facetsAnswer {
	out := &facetsAnswer{Spans: a.Spans, Errors: a.Errors, Facets: []facetAnswer{}}
	f := a.Facets
	if f == nil {
		out.share = shareOf(a, 1)
		return out
	}
	out.share, out.Selected, out.Omitted = shareOf(a, f.Share), f.Selected, f.Omitted
	out.EstimatedSelected = estimate(f.Selected, f.Share)
	for i := range f.Facets {
		if facet := &f.Facets[i]; facet.Field != serviceAttribute() { // says what service does
			out.Facets = append(out.Facets, facetOf(facet))
		}
	}
	return out
}

// serviceAttribute is a field that searches cannot name: they take its name for service, which is the same but for services without one.
func serviceAttribute() tracestore.Field {
	return tracestore.Field{Place: tracestore.ResourceAttribute, Key: serviceKey}
}

func facetOf(f *tracestore.Facet) facetAnswer {
	n := len(f.Values)
	out := facetAnswer{
		Field: traceql.FormatField(f.Field), Spans: f.Spans, Selected: f.Selected, Distinct: f.Distinct, Other: f.Other, Score: f.Score,
		Values: valueColumns{make([]string, n), make([]uint64, n), make([]uint64, n), make([]float64, n)},
	}
	for i := range f.Values {
		val := &f.Values[i]
		out.Values.Text[i], out.Values.Count[i], out.Values.Selected[i], out.Values.Score[i] = val.Text, val.Count, val.Selected, val.Score
	}
	return out
}
