package query

import (
	"fmt"
	"net/http"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// transform answers POST /api/transform: spans in OTLP JSON, of any content type, come back as traces. Nothing is stored or adjusted. The
// body is bounded by the listener, and is charged to the process's budget.
func (h *handler) transform(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		writeError(w, server.ErrorStatus(w.Header(), err), err.Error())
		return
	}
	batch, err := otlpdata.FromJSON(body, otlpdata.Meta{}, otlpdata.Limits{})
	var traces []spanGroups
	if err == nil {
		traces, err = byTrace(batch)
	}
	if err != nil {
		status, _ := pipeline.HTTPStatus(pipeline.Permanent(err))
		writeError(w, status, fmt.Sprintf("cannot unmarshal OTLP : %v", err))
		return
	}
	l := newList(w, r)
	defer l.close()
	opt := uijson.Options{Options: adjust.Options{Raw: true}, Flush: l.spill}
	for _, t := range traces {
		if l.add(func(dst []byte) ([]byte, error) { return uijson.AppendTrace(dst, opt, t.batch()) }) != nil {
			return // the client is gone
		}
	}
	h.finish(l, "[]", tail{})
}

// spanGroups are the spans of a trace, by what they belong to.
type spanGroups []spanGroup

// spanGroup is spans of one scope.
type spanGroup struct {
	owner *owner
	spans [][]byte
}

// owner is a scope with its resource.
type owner struct {
	resource otlpdata.Resource
	scope    otlpdata.Scope
}

// byTrace returns the spans of a request by traces, in order of their first spans. It copies no spans.
func byTrace(b *otlpdata.Batch) ([]spanGroups, error) {
	segments, err := b.Segments()
	if err != nil {
		return nil, err
	}
	g := grouper{index: make(map[otlpdata.TraceID]int)}
	for _, s := range segments {
		if err := otlpdata.Walk(s, &g); err != nil {
			return nil, err
		}
	}
	return g.traces, nil
}

type grouper struct {
	traces   []spanGroups
	index    map[otlpdata.TraceID]int
	resource otlpdata.Resource
	owner    *owner
}

// Resource notes what spans belong to.
func (g *grouper) Resource(r *otlpdata.Resource) error {
	g.resource = otlpdata.Resource{Service: r.Service, SchemaURL: r.SchemaURL, Raw: r.Raw}
	return nil
}

// Scope notes what spans belong to.
func (g *grouper) Scope(s *otlpdata.Scope) error {
	g.owner = &owner{g.resource, otlpdata.Scope{SchemaURL: s.SchemaURL, Raw: s.Raw}}
	return nil
}

// Span adds a span to its trace.
func (g *grouper) Span(s *otlpdata.Span) error {
	i, ok := g.index[s.TraceID]
	if !ok {
		i = len(g.traces)
		g.index[s.TraceID] = i
		g.traces = append(g.traces, nil)
	}
	t := g.traces[i]
	if n := len(t); n == 0 || t[n-1].owner != g.owner {
		t = append(t, spanGroup{owner: g.owner})
	}
	last := &t[len(t)-1]
	last.spans = append(last.spans, s.Raw)
	g.traces[i] = t
	return nil
}

// batch puts the trace together, which is no larger than the request.
func (t spanGroups) batch() *otlpdata.Batch {
	var encoded []byte
	var counts []otlpdata.ServiceCount
	for _, g := range t {
		encoded = otlpdata.AppendResourceSpans(encoded, &g.owner.resource, &g.owner.scope, g.spans...)
		counts = append(counts, otlpdata.ServiceCount{Service: g.owner.resource.Service, Spans: len(g.spans)})
	}
	return otlpdata.FromStored(encoded, otlpdata.Meta{}, counts...)
}
