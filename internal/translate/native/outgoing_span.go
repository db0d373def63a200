package native

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Attributes of OTLP with a meaning in Jaeger's model.
const (
	serviceNameAttribute = "service.name"
	refTypeAttribute     = "opentracing.ref_type"
	refTypeChildOf       = "child_of"
	eventField           = "event"
	warningsAttribute    = "@jaeger@warnings" // an array of warnings
)

// noServiceName is the service of a process for a resource without attributes.
const noServiceName = "OTLPResourceNoServiceName"

// appendProcess appends the Process of a resource with these attributes.
func appendProcess(dst []byte, attributes []otlpdata.KeyValue) []byte {
	if len(attributes) == 0 {
		return protoenc.AppendString(dst, processServiceName, noServiceName)
	}
	named, invalid := false, 0
	for i := range attributes {
		kv := &attributes[i]
		if kv.Key == serviceNameAttribute && kv.Value.Kind() == otlpdata.ValueString && !named {
			named = true
			name := valid(kv.Value.Str())
			if dst = protoenc.AppendString(dst, processServiceName, name); name == kv.Value.Str() {
				continue
			}
		}
		dst = appendTag(dst, processTags, kv, &invalid)
	}
	return dst
}

// appendScope appends the tags for a scope.
func appendScope(dst []byte, s *otlpdata.Scope) []byte {
	dst = appendStringTag(dst, spanTags, "otel.scope.name", s.Name)
	return appendStringTag(dst, spanTags, "otel.scope.version", s.Version)
}

// appendSpan appends the fields of a Span, except its process and its warnings. scope is the result
// of appendScope.
func appendSpan(dst []byte, s *otlpdata.Span, scope []byte) []byte {
	dst = append(append(dst, spanTraceID<<3|protoenc.Length, 16), s.TraceID[:]...)
	dst = append(append(dst, spanID<<3|protoenc.Length, 8), s.SpanID[:]...)
	name, invalidName := s.Name, ""
	if !utf8.ValidString(name) {
		name, invalidName = otlpdata.InvalidSpanName, s.Name
	}
	dst = protoenc.AppendString(dst, spanOperationName, name)
	dst = appendReferences(dst, s)
	if flags := s.NativeFlags(); flags != 0 {
		dst = binary.AppendUvarint(append(dst, spanFlags<<3|protoenc.Varint), uint64(flags))
	}
	dst = appendTimestamp(dst, spanStartTime, s.Start)
	dst = appendDuration(dst, s)
	dst = append(dst, scope...)
	dst = appendSpanAttributes(dst, s.Attributes)
	dst = appendStringTag(dst, spanTags, otlpdata.InvalidSpanName, invalidName)
	dst = appendKindAndStatus(dst, s)
	dst = appendStringTag(dst, spanTags, "w3c.tracestate", s.TraceState)
	return appendLogs(dst, s.Events)
}

// appendSpanAttributes appends the attributes as tags, except the attributes for flags and
// warnings.
func appendSpanAttributes(dst []byte, attributes []otlpdata.KeyValue) []byte {
	invalid := 0
	for i := range attributes {
		kv := &attributes[i]
		if len(kv.Key) > 0 && kv.Key[0] == '@' && (kv.Key == otlpdata.FlagsAttribute || isWarnings(kv)) {
			continue
		}
		dst = appendTag(dst, spanTags, kv, &invalid)
	}
	return dst
}

func isWarnings(kv *otlpdata.KeyValue) bool {
	return kv.Key == warningsAttribute && kv.Value.Kind() == otlpdata.ValueArray
}

// appendWarnings appends the warnings in the attributes.
func appendWarnings(dst []byte, attributes []otlpdata.KeyValue) []byte {
	for i := range attributes {
		if !isWarnings(&attributes[i]) {
			continue
		}
		for w := range attributes[i].Value.Elements() {
			warning := valid(w.AsString())
			dst = append(protoenc.AppendHeader(dst, spanWarnings, len(warning)), warning...)
		}
	}
	return dst
}

func appendKindAndStatus(dst []byte, s *otlpdata.Span) []byte {
	dst = appendStringTag(dst, spanTags, "span.kind", s.KindName())
	switch s.StatusCode {
	case otlpdata.StatusOK:
		dst = appendStringTag(dst, spanTags, "otel.status_code", "OK")
	case otlpdata.StatusError:
		dst = appendStringTag(dst, spanTags, "otel.status_code", "ERROR")
		dst = appendScalarTag(dst, spanTags, "error", otlpdata.BoolValue(true))
	}
	return appendStringTag(dst, spanTags, "otel.status_description", s.StatusMessage)
}

// appendReferences appends the parent first, then the links. A link to the parent is not written as
// a second reference; its type becomes the type of the parent reference.
func appendReferences(dst []byte, s *otlpdata.Span) []byte {
	hasParent := !s.ParentID.IsZero()
	toParent := func(l *otlpdata.Link) bool { return hasParent && l.SpanID == s.ParentID && l.TraceID == s.TraceID }
	if hasParent {
		typ := childOf
		for i := range s.Links {
			if l := &s.Links[i]; toParent(l) {
				typ = refType(l)
			}
		}
		dst = appendReference(dst, s.TraceID, s.ParentID, typ)
	}
	for i := range s.Links {
		if l := &s.Links[i]; !toParent(l) {
			dst = appendReference(dst, l.TraceID, l.SpanID, refType(l))
		}
	}
	return dst
}

func refType(l *otlpdata.Link) byte {
	if v, ok := otlpdata.Get(l.Attributes, refTypeAttribute); ok && v.Str() == refTypeChildOf {
		return childOf
	}
	return followsFrom
}

func appendReference(dst []byte, trace otlpdata.TraceID, span otlpdata.SpanID, typ byte) []byte {
	size := byte(2 + len(trace) + 2 + len(span))
	if typ != childOf {
		size += 2
	}
	dst = append(dst, spanReferences<<3|protoenc.Length, size, refTraceID<<3|protoenc.Length, byte(len(trace)))
	dst = append(dst, trace[:]...)
	dst = append(dst, refSpanID<<3|protoenc.Length, byte(len(span)))
	dst = append(dst, span[:]...)
	if typ != childOf {
		dst = append(dst, refRefType<<3|protoenc.Varint, typ)
	}
	return dst
}

// appendLogs appends the events. A log always has a time, because decoders of the field read a
// missing time as the year 1.
func appendLogs(dst []byte, events []otlpdata.Event) []byte {
	const reserved = 1
	for i := range events {
		e := &events[i]
		var at int
		dst, at = protoenc.BeginMessage(dst, spanLogs, reserved)
		dst = appendTimestamp(dst, logTimestamp, e.Time)
		if v, ok := otlpdata.Get(e.Attributes, eventField); !ok || v.Str() != e.Name {
			dst = appendStringTag(dst, logFields, eventField, e.Name)
		}
		invalid := 0
		for j := range e.Attributes {
			dst = appendTag(dst, logFields, &e.Attributes[j], &invalid)
		}
		dst = protoenc.EndMessage(dst, at, reserved)
	}
	return dst
}

const nanosPerSecond = 1e9

// appendTimestamp appends a google.protobuf.Timestamp for nanoseconds since the Unix epoch.
func appendTimestamp(dst []byte, num int, ns uint64) []byte {
	return appendSeconds(dst, num, ns/nanosPerSecond, ns%nanosPerSecond)
}

// appendDuration appends the time between start and end as a google.protobuf.Duration. It is
// negative if the end is before the start, and is limited to the 292 years that decoders of the
// field accept.
func appendDuration(dst []byte, s *otlpdata.Span) []byte {
	if s.End >= s.Start {
		ns := min(s.End-s.Start, math.MaxInt64)
		return appendSeconds(dst, spanDuration, ns/nanosPerSecond, ns%nanosPerSecond)
	}
	ns := min(s.Start-s.End, math.MaxInt64)
	return appendSeconds(dst, spanDuration, -(ns / nanosPerSecond), -(ns % nanosPerSecond))
}

func appendSeconds(dst []byte, num int, seconds, nanos uint64) []byte {
	const reserved = 1
	dst, at := protoenc.BeginMessage(dst, num, reserved)
	if seconds != 0 {
		dst = binary.AppendUvarint(append(dst, timeSeconds<<3|protoenc.Varint), seconds)
	}
	if nanos != 0 {
		dst = binary.AppendUvarint(append(dst, timeNanos<<3|protoenc.Varint), nanos)
	}
	return protoenc.EndMessage(dst, at, reserved)
}
