package tracestore

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// Span is a span with its resource and scope, as [Match] sees it.
type Span struct {
	Resource *otlpdata.Resource
	Scope    *otlpdata.Scope
	*otlpdata.Span
	// Trace describes the whole trace. If it is nil, fields of the trace have no value:
	// storequery.Find sets it, [Reader.Find] does not.
	Trace *Summary
	// Children returns the number of direct children of the span. Like Trace, it is nil unless the
	// whole trace is known. It is valid as long as the span.
	Children func() int
	// Parent returns the first value of a field, without Field.Parent, in the parent of the span.
	// It is set as Children is.
	Parent func(Field) (v otlpdata.Value, ok bool)
	// Nested returns the position of the span in its trace. It is set as Children is.
	Nested func() NestedSet
}

// NestedSet is the position of a span in its trace. Left and Right count the first and the last
// visit of each span when the tree of the trace is walked, from 1; Parent is Left of the parent, or
// -1 for a root. All are 0 for a span whose parent or another ancestor is not in the trace.
type NestedSet struct{ Left, Right, Parent int32 }

// WalkSpans calls visit for each span of a batch, in wire order. The span is valid only during the
// call; see [otlpdata.Walk]. An error of visit ends the walk and is returned.
func WalkSpans(b *otlpdata.Batch, visit func(Span) error) error {
	return b.Walk(&spanVisitor{visit: visit})
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
