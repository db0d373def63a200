package storewire

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutAggregation converts an aggregation.
func PutAggregation(q *tracestore.Query, a *tracestore.Aggregation) *store_v1.AggregateRequest {
	out := &store_v1.AggregateRequest{
		Query: PutQuery(q), HeatmapStep: int64(a.Heatmap.Step), Exemplars: int64(a.Exemplars),
		Facets: &store_v1.FacetQuery{Values: int64(a.Facets.Values), All: a.Facets.All},
	}
	for _, f := range a.Facets.Fields {
		out.Facets.Fields = append(out.Facets.Fields, putField(f))
	}
	if s := a.Facets.Selection; s != nil {
		out.Facets.Selection = &store_v1.Selection{From: putTime(s.From), To: putTime(s.To), Where: putExpr(s.Where)}
	}
	if len(a.Groups.By) > 0 {
		out.Groups = putGroupQuery(&a.Groups)
	}
	return out
}

// GetAggregation returns an aggregation, which may be invalid, and its query.
func GetAggregation(tenant string, m *store_v1.AggregateRequest) (q tracestore.Query, a tracestore.Aggregation, err error) {
	var exprs exprReader
	if q, err = getQuery(tenant, m.GetQuery(), &exprs); err != nil {
		return q, a, err
	}
	a.Heatmap.Step, a.Exemplars = time.Duration(m.GetHeatmapStep()), int(m.GetExemplars())
	a.Facets.Values, a.Facets.All = int(m.GetFacets().GetValues()), m.GetFacets().GetAll()
	for _, field := range m.GetFacets().GetFields() {
		f, err := getField(field)
		if err != nil {
			return q, a, err
		}
		a.Facets.Fields = append(a.Facets.Fields, f)
	}
	if a.Groups, err = getGroupQuery(m.GetGroups()); err != nil {
		return q, a, err
	}
	if s := m.GetFacets().GetSelection(); s != nil {
		a.Facets.Selection = &tracestore.Selection{From: getTime(s.From), To: getTime(s.To)}
		a.Facets.Selection.Where, err = exprs.get(s.Where, 0)
	}
	return q, a, err
}

// cellsPerPart is the number of cells in one HeatCells message, so that an answer can be split.
const cellsPerPart = 4096

// PutAggregate converts an aggregate.
func PutAggregate(a *tracestore.Aggregate) *store_v1.AggregateResponse {
	out := &store_v1.AggregateResponse{Spans: a.Spans, Errors: a.Errors, Share: a.Share, Scanned: int64(a.Scanned),
		Reasons: putReasons(a.Reasons), RelativeError: a.RelativeError}
	if a.Heatmap != nil {
		out.Heatmap = &store_v1.Heatmap{Step: a.Heatmap.Step, Share: a.Heatmap.Share}
		for part := range slices.Chunk(a.Heatmap.Cells, cellsPerPart) {
			out.Cells = append(out.Cells, putCells(part))
		}
	}
	if f := a.Facets; f != nil {
		out.Facets = &store_v1.Facets{Spans: f.Spans, Selected: f.Selected, Share: f.Share, Omitted: int64(f.Omitted)}
		for i := range f.Facets {
			out.Facet = append(out.Facet, putFacet(&f.Facets[i]))
		}
	}
	putGroups(out, a.Groups)
	for i := range a.Exemplars {
		e := &a.Exemplars[i]
		out.Exemplars = append(out.Exemplars, &store_v1.Exemplar{TraceId: e.TraceID[:], SpanId: e.SpanID[:], Start: e.Start,
			Duration: e.Duration, Service: []byte(e.Service), Name: []byte(e.Name), Failed: e.Failed})
	}
	return out
}

func putCells(cells []tracestore.HeatCell) *store_v1.HeatCells {
	out := &store_v1.HeatCells{}
	for _, c := range cells {
		out.Start = append(out.Start, c.Start)
		out.Bucket = append(out.Bucket, uint32(c.Bucket))
		out.Count = append(out.Count, c.Count)
		out.Errors = append(out.Errors, c.Errors)
	}
	return out
}

func putFacet(f *tracestore.Facet) *store_v1.Facet {
	out := &store_v1.Facet{Field: putField(f.Field), Spans: f.Spans, Selected: f.Selected, Distinct: int64(f.Distinct),
		Other: f.Other, Score: f.Score}
	for _, v := range f.Values {
		out.Values = append(out.Values, &store_v1.FacetValue{Text: []byte(v.Text), Count: v.Count, Selected: v.Selected, Score: v.Score})
	}
	return out
}

// GetAggregate returns an aggregate.
func GetAggregate(m *store_v1.AggregateResponse) (a tracestore.Aggregate, err error) {
	a = tracestore.Aggregate{Spans: m.GetSpans(), Errors: m.GetErrors(), Share: m.GetShare(), Scanned: int(m.GetScanned()),
		Reasons: getReasons(m.GetReasons()), RelativeError: m.GetRelativeError()}
	if m.GetHeatmap() != nil {
		a.Heatmap = &tracestore.Heatmap{Step: m.GetHeatmap().GetStep(), Share: m.GetHeatmap().GetShare()}
		for _, part := range m.GetCells() {
			if a.Heatmap.Cells, err = getCells(a.Heatmap.Cells, part); err != nil {
				return a, err
			}
		}
	}
	if f := m.GetFacets(); f != nil {
		a.Facets = &tracestore.Facets{Spans: f.Spans, Selected: f.Selected, Share: f.Share, Omitted: int(f.Omitted)}
		for _, part := range m.GetFacet() {
			one, err := getFacet(part)
			if err != nil {
				return a, err
			}
			a.Facets.Facets = append(a.Facets.Facets, one)
		}
	}
	if a.Groups, err = getGroups(m); err != nil {
		return a, err
	}
	for _, e := range m.GetExemplars() {
		one, err := getExemplar(e)
		if err != nil {
			return a, err
		}
		a.Exemplars = append(a.Exemplars, one)
	}
	return a, nil
}

func getCells(cells []tracestore.HeatCell, m *store_v1.HeatCells) ([]tracestore.HeatCell, error) {
	n := len(m.GetStart())
	if len(m.GetBucket()) != n || len(m.GetCount()) != n || len(m.GetErrors()) != n {
		return nil, invalid("columns of heatmap cells differ in length")
	}
	for i := range n {
		if m.Bucket[i] >= tracestore.Buckets {
			return nil, invalid("duration bucket %d of a heatmap cell", m.Bucket[i])
		}
		cells = append(cells, tracestore.HeatCell{Start: m.Start[i], Bucket: int(m.Bucket[i]), Count: m.Count[i], Errors: m.Errors[i]})
	}
	return cells, nil
}

func getFacet(m *store_v1.Facet) (f tracestore.Facet, err error) {
	f = tracestore.Facet{Spans: m.GetSpans(), Selected: m.GetSelected(), Distinct: int(m.GetDistinct()), Other: m.GetOther(),
		Score: m.GetScore()}
	for _, v := range m.GetValues() {
		f.Values = append(f.Values, tracestore.FacetValue{
			Text: string(v.GetText()), Count: v.GetCount(), Selected: v.GetSelected(), Score: v.GetScore()})
	}
	f.Field, err = getField(m.GetField())
	return f, err
}

func getExemplar(m *store_v1.Exemplar) (e tracestore.Exemplar, err error) {
	e = tracestore.Exemplar{Start: m.GetStart(), Duration: m.GetDuration(), Service: string(m.GetService()),
		Name: string(m.GetName()), Failed: m.GetFailed()}
	if len(m.GetSpanId()) != len(e.SpanID) {
		return e, invalid("span id has %d bytes, want %d", len(m.GetSpanId()), len(e.SpanID))
	}
	e.SpanID = otlpdata.SpanID(m.GetSpanId())
	e.TraceID, err = GetTraceID(m.GetTraceId())
	return e, err
}
