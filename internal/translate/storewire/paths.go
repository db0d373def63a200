package storewire

import (
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutPathQuery converts a query for a path profile.
func PutPathQuery(q *tracestore.Query, sel *tracestore.Selection, o tracestore.PathOptions) *store_v1.PathProfileRequest {
	return &store_v1.PathProfileRequest{
		Query: PutQuery(q), Traces: int64(o.Traces),
		Selection: &store_v1.Selection{From: putTime(sel.From), To: putTime(sel.To), Where: putExpr(sel.Where)},
	}
}

// GetPathQuery returns a query for a path profile. The options may be invalid.
func GetPathQuery(tenant string, m *store_v1.PathProfileRequest) (
	q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions, err error,
) {
	var exprs exprReader
	if q, err = getQuery(tenant, m.GetQuery(), &exprs); err != nil {
		return q, sel, o, err
	}
	o.Traces = int(m.GetTraces())
	sel.From, sel.To = getTime(m.GetSelection().GetFrom()), getTime(m.GetSelection().GetTo())
	sel.Where, err = exprs.get(m.GetSelection().GetWhere(), 0)
	return q, sel, o, err
}

// PutPathProfile converts a path profile.
func PutPathProfile(p *tracestore.PathProfile) *store_v1.PathProfileResponse {
	out := &store_v1.PathProfileResponse{Selected: putPathSet(&p.Selected), Rest: putPathSet(&p.Rest),
		Scanned: int64(p.Scanned), Reasons: putReasons(p.Reasons)}
	type name struct{ service, name string }
	index := make(map[name]uint32, len(p.Operations))
	for i := range p.Operations {
		o := &p.Operations[i]
		index[name{o.Service, o.Name}] = uint32(i)
		out.Operations = append(out.Operations, &store_v1.PathOperation{Service: []byte(o.Service), Name: []byte(o.Name),
			Selected: putPathCounts(&o.Selected), Rest: putPathCounts(&o.Rest)})
	}
	for i := range p.Paths {
		c := &p.Paths[i]
		out.Paths = append(out.Paths, &store_v1.CallPath{Parent: int64(c.Parent) + 1, Operation: index[name{c.Service, c.Name}],
			Kind: c.Kind, Selected: putPathCounts(&c.Selected), Rest: putPathCounts(&c.Rest)})
	}
	return out
}

func putPathSet(s *tracestore.PathSet) *store_v1.PathSet {
	out := &store_v1.PathSet{Traces: s.Traces, Failed: s.Failed, Spans: s.Spans, Time: s.Time, TimeSquares: s.TimeSquares, Share: s.Share}
	for _, id := range s.IDs {
		out.Ids = append(out.Ids, id[:]...)
	}
	return out
}

func putPathCounts(c *tracestore.PathCounts) *store_v1.PathCounts {
	if *c == (tracestore.PathCounts{}) {
		return nil
	}
	return &store_v1.PathCounts{Traces: c.Traces, Calls: c.Calls, Errors: c.Errors, SelfTime: c.SelfTime, SelfSquares: c.SelfSquares,
		CallSquares: c.CallSquares}
}

// GetPathProfile returns a path profile.
func GetPathProfile(m *store_v1.PathProfileResponse) (p tracestore.PathProfile, err error) {
	p = tracestore.PathProfile{Scanned: int(m.GetScanned()), Reasons: getReasons(m.GetReasons())}
	if p.Selected, err = getPathSet(m.GetSelected()); err != nil {
		return p, err
	}
	if p.Rest, err = getPathSet(m.GetRest()); err != nil {
		return p, err
	}
	for _, o := range m.GetOperations() {
		p.Operations = append(p.Operations, tracestore.OperationProfile{Service: string(o.GetService()), Name: string(o.GetName()),
			Selected: getPathCounts(o.GetSelected()), Rest: getPathCounts(o.GetRest())})
	}
	for i, c := range m.GetPaths() {
		if c.GetParent() < 0 || c.GetParent() > int64(i) {
			return p, invalid("parent %d of call path %d", c.GetParent()-1, i)
		}
		if int(c.GetOperation()) >= len(p.Operations) {
			return p, invalid("operation %d of call path %d; there are %d", c.GetOperation(), i, len(p.Operations))
		}
		o := &p.Operations[c.GetOperation()]
		p.Paths = append(p.Paths, tracestore.CallPath{Parent: int(c.GetParent()) - 1, Service: o.Service, Name: o.Name, Kind: c.GetKind(),
			Selected: getPathCounts(c.GetSelected()), Rest: getPathCounts(c.GetRest())})
	}
	return p, nil
}

func getPathSet(m *store_v1.PathSet) (tracestore.PathSet, error) {
	s := tracestore.PathSet{Traces: m.GetTraces(), Failed: m.GetFailed(), Spans: m.GetSpans(), Time: m.GetTime(),
		TimeSquares: m.GetTimeSquares(), Share: m.GetShare()}
	const size = len(otlpdata.TraceID{})
	ids := m.GetIds()
	if len(ids)%size != 0 {
		return s, invalid("%d bytes of trace ids", len(ids))
	}
	for ; len(ids) > 0; ids = ids[size:] {
		s.IDs = append(s.IDs, otlpdata.TraceID(ids[:size]))
	}
	return s, nil
}

func getPathCounts(m *store_v1.PathCounts) tracestore.PathCounts {
	return tracestore.PathCounts{Traces: m.GetTraces(), Calls: m.GetCalls(), Errors: m.GetErrors(), SelfTime: m.GetSelfTime(),
		SelfSquares: m.GetSelfSquares(), CallSquares: m.GetCallSquares()}
}
