package tracestore

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// Span is one span with what it belongs to, as [Match] sees it.
type Span struct {
	Resource *otlpdata.Resource
	Scope    *otlpdata.Scope
	*otlpdata.Span
	// Trace is what the whole trace is like; nil where that is not known, and the places of the trace have no value. [Reader.Find] does not
	// know it, storequery.Find does.
	Trace *Summary
}

// WalkSpans calls visit for every span of a batch, in wire order. What it points to is valid during the call only; see [otlpdata.Walk].
// An error of visit ends the walk and is returned.
func WalkSpans(b *otlpdata.Batch, visit func(Span) error) error {
	segments, err := b.Segments()
	if err != nil {
		return err
	}
	for _, s := range segments {
		if err := otlpdata.Walk(s, &spanVisitor{visit: visit}); err != nil {
			return err
		}
	}
	return nil
}

type spanVisitor struct {
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	visit    func(Span) error
}

func (v *spanVisitor) Resource(r *otlpdata.Resource) error {
	v.resource = r
	return nil
}

func (v *spanVisitor) Scope(s *otlpdata.Scope) error {
	v.scope = s
	return nil
}

func (v *spanVisitor) Span(s *otlpdata.Span) error {
	return v.visit(Span{Resource: v.resource, Scope: v.scope, Span: s})
}
