package storewire

import (
	"slices"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutQuery converts a query without its tenant.
func PutQuery(q *tracestore.Query) *store_v1.Query {
	out := &store_v1.Query{
		From: putTime(q.From), To: putTime(q.To), Where: putExpr(q.Where), Limit: int64(q.Limit), After: putCursor(q.After),
		OfTrace: putExpr(q.OfTrace), Skip: putTraceIDs(q.Skip),
	}
	if q.Budget != (tracestore.Budget{}) {
		out.Budget = &store_v1.Budget{Spans: int64(q.Budget.Spans), TraceSpans: int64(q.Budget.TraceSpans)}
	}
	return out
}

// GetQuery returns the query of a tenant.
func GetQuery(tenant string, m *store_v1.Query) (q tracestore.Query, err error) {
	return getQuery(tenant, m, &exprReader{})
}

func getQuery(tenant string, m *store_v1.Query, exprs *exprReader) (q tracestore.Query, err error) {
	q = tracestore.Query{
		Tenant: tenant, From: getTime(m.GetFrom()), To: getTime(m.GetTo()), Limit: int(m.GetLimit()),
		Budget: tracestore.Budget{Spans: int(m.GetBudget().GetSpans()), TraceSpans: int(m.GetBudget().GetTraceSpans())},
	}
	if q.Where, err = exprs.get(m.GetWhere(), 0); err != nil {
		return q, err
	}
	if q.OfTrace, err = exprs.get(m.GetOfTrace(), 0); err != nil {
		return q, err
	}
	if q.Skip, err = getTraceIDs(m.GetSkip()); err != nil {
		return q, err
	}
	q.After, err = getCursor(m.GetAfter())
	return q, err
}

func putTraceIDs(ids map[otlpdata.TraceID]struct{}) []byte {
	out := make([]byte, 0, len(ids)*len(otlpdata.TraceID{}))
	for id := range ids {
		out = append(out, id[:]...)
	}
	return out
}

func getTraceIDs(b []byte) (map[otlpdata.TraceID]struct{}, error) {
	const size = len(otlpdata.TraceID{})
	if len(b)%size != 0 {
		return nil, invalid("trace ids have %d bytes, want a multiple of %d", len(b), size)
	}
	if len(b) == 0 {
		return nil, nil
	}
	out := make(map[otlpdata.TraceID]struct{}, len(b)/size)
	for id := range slices.Chunk(b, size) {
		out[otlpdata.TraceID(id)] = struct{}{}
	}
	return out, nil
}

func putCursor(c tracestore.Cursor) *store_v1.Cursor {
	if !c.Set {
		return nil
	}
	return &store_v1.Cursor{Start: c.Start, Id: c.ID[:]}
}

func getCursor(m *store_v1.Cursor) (c tracestore.Cursor, err error) {
	if m == nil {
		return c, nil
	}
	c.ID, err = GetTraceID(m.GetId())
	c.Start, c.Set = m.GetStart(), true
	return c, err
}

// PutWant converts a tracestore.Want.
func PutWant(w tracestore.Want) store_v1.Want {
	switch w {
	case tracestore.WantSummaries:
		return store_v1.Want_WANT_SUMMARIES
	case tracestore.WantFull:
		return store_v1.Want_WANT_FULL
	}
	return store_v1.Want_WANT_IDS
}

// GetWant returns what a search returns for each trace.
func GetWant(w store_v1.Want) (tracestore.Want, error) {
	switch w {
	case store_v1.Want_WANT_IDS:
		return tracestore.WantIDs, nil
	case store_v1.Want_WANT_SUMMARIES:
		return tracestore.WantSummaries, nil
	case store_v1.Want_WANT_FULL:
		return tracestore.WantFull, nil
	}
	return 0, invalid("unknown want %d", w)
}

// PutRefs converts references to traces.
func PutRefs(refs []tracestore.TraceRef) *store_v1.TracesRequest {
	out := &store_v1.TracesRequest{Refs: make([]*store_v1.TraceRef, len(refs))}
	for i := range refs {
		out.Refs[i] = &store_v1.TraceRef{Id: refs[i].ID[:], From: putTime(refs[i].From), To: putTime(refs[i].To)}
	}
	return out
}

// GetRefs returns references to traces.
func GetRefs(m *store_v1.TracesRequest) ([]tracestore.TraceRef, error) {
	out := make([]tracestore.TraceRef, len(m.GetRefs()))
	for i, r := range m.GetRefs() {
		id, err := GetTraceID(r.GetId())
		if err != nil {
			return nil, err
		}
		out[i] = tracestore.TraceRef{ID: id, From: getTime(r.GetFrom()), To: getTime(r.GetTo())}
	}
	return out, nil
}

// PutDeletion converts a deletion.
func PutDeletion(d *tracestore.Deletion) *store_v1.DeleteRequest {
	out := &store_v1.DeleteRequest{Service: []byte(d.Service), From: putTime(d.From), To: putTime(d.To)}
	for i := range d.Traces {
		out.Traces = append(out.Traces, d.Traces[i][:])
	}
	return out
}

// GetDeletion returns a deletion, which may be invalid.
func GetDeletion(m *store_v1.DeleteRequest) (d tracestore.Deletion, err error) {
	d = tracestore.Deletion{Service: string(m.GetService()), From: getTime(m.GetFrom()), To: getTime(m.GetTo())}
	for _, b := range m.GetTraces() {
		id, err := GetTraceID(b)
		if err != nil {
			return d, err
		}
		d.Traces = append(d.Traces, id)
	}
	return d, nil
}
