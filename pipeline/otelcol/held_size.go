package otelcol

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Estimated memory of objects in bytes, without the text in them. A test compares the estimate of
// ordinary traces with the heap.
const (
	sizeOfPart  = 768 // a resource and a scope, and the entries for the trace in the ledger and in the component
	sizeOfScope = 256 // a further scope
	sizeOfSpan  = 400
	sizeOfEvent = 160 // also of a link
	sizeOfValue = 96  // a key and a value
)

// part is the part of a request that belongs to one trace and one resource.
type part struct {
	id TraceID
	amount
}

// partsOf returns the parts of a request in order, and the sum of their memory. Each part has its
// own copy of the resource and the scopes. The parts share the metadata of the request.
func partsOf(td ptrace.Traces, metadata int64) (parts []part, bytes int64) {
	for _, rs := range td.ResourceSpans().All() {
		parts = appendParts(parts, rs)
	}
	if n := int64(len(parts)); n > 0 {
		for i := range parts {
			parts[i].bytes += (metadata + n - 1) / n
			bytes += parts[i].bytes
		}
	}
	return parts, bytes
}

// appendParts appends the parts of one resource.
func appendParts(parts []part, rs ptrace.ResourceSpans) []part {
	base := sizeOfPart + sizeOfMap(rs.Resource().Attributes()) + int64(len(rs.SchemaUrl()))
	type place struct{ part, scope int } // scope is the latest one
	places := map[TraceID]place{}
	for n, ss := range rs.ScopeSpans().All() {
		scope := sizeOfMap(ss.Scope().Attributes()) + int64(len(ss.Scope().Name())+len(ss.Scope().Version())+len(ss.SchemaUrl()))
		for _, s := range ss.Spans().All() {
			at, ok := places[s.TraceID()]
			switch {
			case !ok:
				at = place{len(parts), n}
				places[s.TraceID()] = at
				parts = append(parts, part{s.TraceID(), amount{bytes: base + scope}})
			case at.scope != n:
				places[s.TraceID()] = place{at.part, n}
				parts[at.part].bytes += sizeOfScope + scope
			}
			parts[at.part].addAmount(amount{1, sizeOf(s)})
		}
	}
	return parts
}

func sizeOf(s ptrace.Span) int64 {
	n := int64(sizeOfSpan + len(s.Name()) + len(s.TraceState().AsRaw()) + len(s.Status().Message()))
	n += sizeOfMap(s.Attributes())
	for _, e := range s.Events().All() {
		n += sizeOfEvent + int64(len(e.Name())) + sizeOfMap(e.Attributes())
	}
	for _, l := range s.Links().All() {
		n += sizeOfEvent + int64(len(l.TraceState().AsRaw())) + sizeOfMap(l.Attributes())
	}
	return n
}

func sizeOfMap(m pcommon.Map) (n int64) {
	for k, v := range m.All() {
		n += int64(len(k)) + sizeOfAny(v)
	}
	return n
}

func sizeOfAny(v pcommon.Value) int64 {
	n := int64(sizeOfValue)
	switch v.Type() {
	case pcommon.ValueTypeStr:
		n += int64(len(v.Str()))
	case pcommon.ValueTypeBytes:
		n += int64(v.Bytes().Len())
	case pcommon.ValueTypeMap:
		n += sizeOfMap(v.Map())
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			n += sizeOfAny(e)
		}
	}
	return n
}
