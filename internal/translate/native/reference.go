package native

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// reference is a reference from a span to another span.
type reference struct {
	traceID otlpdata.TraceID
	spanID  otlpdata.SpanID
	typ     int32 // childOf, followsFrom or an unknown type
}

// resolveReferences sets the parent of the span and turns the other references into links. The
// parent is a span of the same trace: the parent field of Thrift, unless a reference also names
// that span; otherwise the first childOf reference; otherwise the first followsFrom reference,
// which remains a link as well.
func (t *translator) resolveReferences() {
	s := &t.span
	if !t.parent.IsZero() && !t.refersTo(t.parent) {
		s.ParentID = t.parent
	} else {
		s.ParentID = t.referredParent()
	}
	for i := range t.refs {
		r := &t.refs[i]
		isParent := r.typ == int32(childOf) && r.spanID == s.ParentID && r.traceID == s.TraceID
		isNothing := r.traceID.IsZero() && r.spanID.IsZero()
		if !isParent && !isNothing {
			s.Links = append(s.Links, otlpdata.Link{TraceID: r.traceID, SpanID: r.spanID, Attributes: linkAttributes(r.typ)})
		}
	}
}

func (t *translator) refersTo(id otlpdata.SpanID) bool {
	for i := range t.refs {
		if r := &t.refs[i]; r.spanID == id && r.traceID == t.span.TraceID {
			return true
		}
	}
	return false
}

func (t *translator) referredParent() otlpdata.SpanID {
	var parent otlpdata.SpanID
	followed := false
	for i := range t.refs {
		r := &t.refs[i]
		switch {
		case r.traceID != t.span.TraceID:
		case r.typ == int32(childOf):
			return r.spanID
		case r.typ == int32(followsFrom) && !followed:
			parent, followed = r.spanID, true
		}
	}
	return parent
}

// Attributes of links for each reference type. They must not be modified.
var (
	childOfLink     = []otlpdata.KeyValue{{Key: refTypeAttribute, Value: otlpdata.StringValue(refTypeChildOf)}}
	followsFromLink = []otlpdata.KeyValue{{Key: refTypeAttribute, Value: otlpdata.StringValue("follows_from")}}
)

func linkAttributes(typ int32) []otlpdata.KeyValue {
	if typ == int32(childOf) {
		return childOfLink
	}
	return followsFromLink
}
