package jaegerapi

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// spanGroups are the spans of a trace, grouped by resource and scope.
type spanGroups []spanGroup

// spanGroup holds encoded spans of one resource and scope.
type spanGroup struct {
	owner *owner
	spans [][]byte
}

// owner is a resource and a scope.
type owner struct {
	resource otlpdata.Resource
	scope    otlpdata.Scope
}

// byTrace groups the spans of a request by trace, in the order of their first spans. It does not
// copy spans.
func byTrace(b *otlpdata.Batch) ([]spanGroups, error) {
	g := grouper{index: make(map[otlpdata.TraceID]int)}
	if err := b.Walk(&g); err != nil {
		return nil, err
	}
	return g.traces, nil
}

// grouper is a visitor that groups spans by trace.
type grouper struct {
	traces   []spanGroups
	index    map[otlpdata.TraceID]int
	resource otlpdata.Resource
	owner    *owner
}

// Resource notes the resource of the spans that follow.
func (g *grouper) Resource(r *otlpdata.Resource) error {
	g.resource = otlpdata.Resource{Service: r.Service, SchemaURL: r.SchemaURL, Raw: r.Raw}
	return nil
}

// Scope notes the scope of the spans that follow.
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

// batch encodes the trace as one batch. It is not larger than the request.
func (t spanGroups) batch() *otlpdata.Batch {
	var encoded []byte
	var counts []otlpdata.ServiceCount
	for _, g := range t {
		encoded = otlpdata.AppendResourceSpans(encoded, &g.owner.resource, &g.owner.scope, g.spans...)
		counts = append(counts, otlpdata.ServiceCount{Service: g.owner.resource.Service, Spans: len(g.spans)})
	}
	return otlpdata.FromStored(encoded, otlpdata.Meta{}, counts...)
}
