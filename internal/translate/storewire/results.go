package storewire

import (
	"time"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutFound converts a result without its spans.
func PutFound(r *tracestore.Result) *store_v1.FoundTrace {
	return &store_v1.FoundTrace{Id: r.ID[:], Start: r.Start, Summary: putSummary(r.Summary)}
}

// GetFound returns a result without its spans.
func GetFound(m *store_v1.FoundTrace) (r tracestore.Result, err error) {
	if r.ID, err = GetTraceID(m.GetId()); err != nil {
		return r, err
	}
	r.Start, r.Summary = m.GetStart(), getSummary(r.ID, m.GetSummary())
	return r, nil
}

func putSummary(s *tracestore.Summary) *store_v1.Summary {
	if s == nil {
		return nil
	}
	out := &store_v1.Summary{
		RootService: []byte(s.RootService), RootName: []byte(s.RootName), Start: s.Start, End: s.End,
		Spans: int64(s.Spans), Errors: int64(s.Errors), Orphans: int64(s.Orphans), Root: s.Root[:],
	}
	for _, svc := range s.Services {
		out.Services = append(out.Services, &store_v1.ServiceSummary{
			Name: []byte(svc.Name), Spans: int64(svc.Spans), Errors: int64(svc.Errors)})
	}
	return out
}

func getSummary(id otlpdata.TraceID, m *store_v1.Summary) *tracestore.Summary {
	if m == nil {
		return nil
	}
	var root otlpdata.SpanID
	copy(root[:], m.Root) // older servers do not send it
	out := &tracestore.Summary{
		ID: id, RootService: string(m.RootService), RootName: string(m.RootName), Start: m.Start, End: m.End,
		Spans: int(m.Spans), Errors: int(m.Errors), Orphans: int(m.Orphans), Root: root,
	}
	for _, svc := range m.Services {
		out.Services = append(out.Services, tracestore.ServiceSummary{
			Name: string(svc.GetName()), Spans: int(svc.GetSpans()), Errors: int(svc.GetErrors())})
	}
	return out
}

// PutOutcome converts the outcome of a search.
func PutOutcome(o *tracestore.Outcome, limited bool) *store_v1.Outcome {
	return &store_v1.Outcome{Reasons: putReasons(o.Reasons), Scanned: int64(o.Scanned), Next: putCursor(o.Next), Limited: limited}
}

// GetOutcome returns the outcome of a search.
func GetOutcome(m *store_v1.Outcome) (o tracestore.Outcome, err error) {
	o = tracestore.Outcome{Reasons: getReasons(m.GetReasons()), Scanned: int(m.GetScanned())}
	o.Next, err = getCursor(m.GetNext())
	return o, err
}

// PutNames converts a list of names. more says that there are others, too.
func PutNames(names []string, more bool) *store_v1.NamesResponse {
	return &store_v1.NamesResponse{Names: putTexts(names), Cut: more}
}

// PutOperations converts operations. more is as in PutNames.
func PutOperations(ops []tracestore.Operation, more bool) *store_v1.OperationsResponse {
	out := &store_v1.OperationsResponse{Operations: make([]*store_v1.Operation, len(ops)), Cut: more}
	for i, op := range ops {
		out.Operations[i] = &store_v1.Operation{Name: []byte(op.Name), Kind: []byte(op.Kind)}
	}
	return out
}

// GetOperations returns operations.
func GetOperations(m *store_v1.OperationsResponse) []tracestore.Operation {
	var out []tracestore.Operation
	for _, op := range m.GetOperations() {
		out = append(out, tracestore.Operation{Name: string(op.GetName()), Kind: string(op.GetKind())})
	}
	return out
}

// PutGraph converts calls between services or to peers.
func PutGraph(g *tracestore.Graph) *store_v1.GraphResponse {
	out := &store_v1.GraphResponse{Reasons: putReasons(g.Reasons), Edges: make([]*store_v1.Edge, len(g.Edges))}
	for i := range g.Edges {
		e := &g.Edges[i]
		out.Edges[i] = &store_v1.Edge{Parent: []byte(e.Parent), Child: []byte(e.Child), Messaging: e.Messaging,
			Calls: e.Calls, Errors: e.Errors, Duration: e.Duration}
	}
	return out
}

// GetGraph returns calls between services or to peers.
func GetGraph(m *store_v1.GraphResponse) tracestore.Graph {
	out := tracestore.Graph{Reasons: getReasons(m.GetReasons())}
	for _, e := range m.GetEdges() {
		out.Edges = append(out.Edges, tracestore.Edge{Parent: string(e.GetParent()), Child: string(e.GetChild()),
			Messaging: e.GetMessaging(), Calls: e.GetCalls(), Errors: e.GetErrors(), Duration: e.GetDuration()})
	}
	return out
}

// PutWindow converts the time range of a request for calls.
func PutWindow(from, to time.Time) *store_v1.GraphRequest {
	return &store_v1.GraphRequest{From: putTime(from), To: putTime(to)}
}

// GetWindow returns the time range of a request for calls.
func GetWindow(m *store_v1.GraphRequest) (from, to time.Time) {
	return getTime(m.GetFrom()), getTime(m.GetTo())
}
