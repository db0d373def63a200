package adjust

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// emitter applies a plan: it modifies the data of a walk and passes it to a visitor.
type emitter struct {
	plan    *plan
	visitor otlpdata.Visitor
	maxSkew time.Duration
	at      int // index of the next node

	resource otlpdata.Resource // sorted, without attributes moved from spans
	scope    otlpdata.Scope
	open     bool                // the visitor got the resource with the attributes in moved
	moved    []otlpdata.KeyValue // attributes moved from the previous span
	moving   []otlpdata.KeyValue // attributes to move from this span

	// Values that are passed to the visitor, and reused memory.
	span                           otlpdata.Span
	extended                       otlpdata.Resource
	resourceKVs, scopeKVs, spanKVs sorter
	joined                         []otlpdata.KeyValue
	links                          []otlpdata.Link
	warnings                       []string
}

func (e *emitter) beginPlan(p *plan, v otlpdata.Visitor) {
	e.plan, e.visitor, e.at, e.open = p, v, 0, false
	e.moved = e.moved[:0]
}

// Resource keeps the resource until a span needs it.
func (e *emitter) Resource(r *otlpdata.Resource) error {
	e.resource, e.open = *r, false
	e.resource.Raw = nil
	e.resource.Attributes = e.resourceKVs.attributes(r.Attributes)
	writeAddresses(e.resource.Attributes)
	return nil
}

// Scope keeps the scope. It passes the scope on if the visitor already has its resource.
func (e *emitter) Scope(s *otlpdata.Scope) error {
	e.scope = *s
	e.scope.Raw = nil
	e.scope.Attributes = e.scopeKVs.attributes(s.Attributes)
	if e.open {
		return e.visitor.Scope(&e.scope)
	}
	return nil
}

// Span passes on a span unless it is a duplicate, after its resource and scope.
func (e *emitter) Span(s *otlpdata.Span) error {
	n := &e.plan.nodes[e.at]
	e.at++
	if n.dropped {
		return nil
	}
	e.span = *s
	out := &e.span
	out.Raw, out.SpanID, out.ParentID = nil, n.id, n.parent
	e.warnings = e.warnings[:0]
	out.Attributes = e.spanAttributes(s.Attributes)
	out.Links = e.usefulLinks(s.Links)
	out.Events = e.spanKVs.events(s.Events)
	if n.moved {
		out.Start, out.End = shift(s.Start, n.delta), shift(s.End, n.delta)
		for i := range out.Events {
			out.Events[i].Time = shift(out.Events[i].Time, n.delta)
		}
	}
	if text := n.text(e.maxSkew); text != "" {
		e.warnings = append(e.warnings, text)
	}
	out.Attributes = addWarnings(out.Attributes, e.warnings)
	if err := e.showResource(); err != nil {
		return err
	}
	return e.visitor.Span(out)
}

// spanAttributes returns the sorted attributes without those that move to the resource. If the
// resource has another value, the attribute stays and the span gets a warning.
func (e *emitter) spanAttributes(attributes []otlpdata.KeyValue) []otlpdata.KeyValue {
	kvs := e.spanKVs.attributes(attributes)
	writeAddresses(kvs)
	e.moving = e.moving[:0]
	return slices.DeleteFunc(kvs, func(kv otlpdata.KeyValue) bool {
		if !isLibrary(kv) {
			return false
		}
		there, ok := otlpdata.Get(e.resource.Attributes, kv.Key)
		if !ok {
			there, ok = otlpdata.Get(e.moving, kv.Key)
		}
		switch {
		case !ok:
			e.moving = append(e.moving, kv)
		case there != kv.Value:
			e.warnings = append(e.warnings, "conflicting values between Span and Resource for attribute "+kv.Key)
			return false
		}
		return true
	})
}

// showResource passes on the resource and the scope, unless the visitor already has them in the
// form that this span needs.
func (e *emitter) showResource() error {
	if e.open && slices.Equal(e.moving, e.moved) {
		return nil
	}
	e.moved = append(e.moved[:0], e.moving...)
	e.open = true
	e.extended = e.resource
	if len(e.moved) > 0 {
		e.joined = append(append(e.joined[:0], e.resource.Attributes...), e.moved...)
		SortAttributes(e.joined)
		e.extended.Attributes = e.joined
	}
	if err := e.visitor.Resource(&e.extended); err != nil {
		return err
	}
	return e.visitor.Scope(&e.scope)
}

// usefulLinks returns the links with a trace id.
func (e *emitter) usefulLinks(links []otlpdata.Link) []otlpdata.Link {
	isEmpty := func(l otlpdata.Link) bool { return l.TraceID.IsZero() }
	if !slices.ContainsFunc(links, isEmpty) {
		return links
	}
	e.links = e.links[:0]
	for _, l := range links {
		if isEmpty(l) {
			e.warnings = append(e.warnings, "Invalid span link removed")
			continue
		}
		e.links = append(e.links, l)
	}
	return e.links
}

// small reports whether no reused list has a capacity above n.
func (e *emitter) small(n int) bool {
	return e.resourceKVs.small(n) && e.scopeKVs.small(n) && e.spanKVs.small(n) &&
		cap(e.joined) <= n && cap(e.links) <= n && cap(e.warnings) <= n && cap(e.moving) <= n && cap(e.moved) <= n
}

// forget clears the data of the trace and keeps the memory.
func (e *emitter) forget() {
	for _, s := range []*sorter{&e.resourceKVs, &e.scopeKVs, &e.spanKVs} {
		s.forget()
	}
	for _, kvs := range [][]otlpdata.KeyValue{e.joined, e.moved, e.moving} {
		clear(kvs[:cap(kvs)])
	}
	clear(e.links[:cap(e.links)])
	clear(e.warnings[:cap(e.warnings)])
	e.plan, e.visitor = nil, nil
	e.resource, e.extended, e.scope, e.span = otlpdata.Resource{}, otlpdata.Resource{}, otlpdata.Scope{}, otlpdata.Span{}
}
