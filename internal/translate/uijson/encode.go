package uijson

import (
	"encoding/hex"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func (w *writer) appendSpan(dst []byte, s *otlpdata.Span) []byte {
	w.warnings = w.warnings[:0]
	dst = append(dst, `{"traceID":"`...)
	dst = appendTraceID(dst, s.TraceID)
	dst = append(dst, `","spanID":"`...)
	dst = hex.AppendEncode(dst, s.SpanID[:])
	dst = append(dst, '"')
	if flags := s.NativeFlags(); flags != 0 {
		dst = strconv.AppendUint(append(dst, `,"flags":`...), uint64(flags), 10)
	}
	dst = appendText(append(dst, `,"operationName":`...), s.Operation())
	dst = appendReferences(append(dst, `,"references":`...), s)
	dst = appendMicros(append(dst, `,"startTime":`...), s.Start)
	dst = w.appendDuration(dst, s)
	dst = appendTags(append(dst, `,"tags":`...), w.spanTags(s))
	dst = append(dst, `,"logs":[`...)
	for i := range s.Events {
		e := &s.Events[i]
		dst = appendMicros(append(comma(dst, i), `{"timestamp":`...), e.Time)
		dst = append(appendTags(append(dst, `,"fields":`...), w.eventFields(e)), '}')
	}
	dst = appendProcessID(append(dst, `],"processID":"`...), w.processIndex())
	dst = append(dst, `","warnings":`...)
	return append(appendWarnings(dst, w.warnings), '}')
}

// appendTraceID appends the text of otlpdata.TraceID.String.
func appendTraceID(dst []byte, id otlpdata.TraceID) []byte {
	if [8]byte(id[:8]) == [8]byte{} {
		return hex.AppendEncode(dst, id[8:])
	}
	return hex.AppendEncode(dst, id[:])
}

// appendMicros converts nanoseconds to whole microseconds.
func appendMicros(dst []byte, ns uint64) []byte { return strconv.AppendUint(dst, ns/1000, 10) }

func appendWarnings(dst []byte, warnings []string) []byte {
	if len(warnings) == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, w := range warnings {
		dst = appendText(comma(dst, i), w)
	}
	return append(dst, ']')
}

// appendReferences writes the parent first. A link to the parent is not written as a second
// reference; it determines the type of the first.
func appendReferences(dst []byte, s *otlpdata.Span) []byte {
	dst = append(dst, '[')
	n := 0
	if !s.ParentID.IsZero() {
		childOf := true
		for i := range s.Links {
			if isToParent(&s.Links[i], s) {
				childOf = isChildOf(&s.Links[i])
			}
		}
		dst = appendReference(dst, s.TraceID, s.ParentID, childOf)
		n++
	}
	for i := range s.Links {
		l := &s.Links[i]
		if isToParent(l, s) {
			continue
		}
		dst = appendReference(comma(dst, n), l.TraceID, l.SpanID, isChildOf(l))
		n++
	}
	return append(dst, ']')
}

func isToParent(l *otlpdata.Link, s *otlpdata.Span) bool {
	return !s.ParentID.IsZero() && l.TraceID == s.TraceID && l.SpanID == s.ParentID
}

func isChildOf(l *otlpdata.Link) bool {
	refType, _ := otlpdata.Get(l.Attributes, "opentracing.ref_type")
	return refType.Str() == "child_of"
}

func appendReference(dst []byte, trace otlpdata.TraceID, span otlpdata.SpanID, childOf bool) []byte {
	if childOf {
		dst = append(dst, `{"refType":"CHILD_OF","traceID":"`...)
	} else {
		dst = append(dst, `{"refType":"FOLLOWS_FROM","traceID":"`...)
	}
	dst = appendTraceID(dst, trace)
	dst = append(dst, `","spanID":"`...)
	return append(hex.AppendEncode(dst, span[:]), `"}`...)
}

func appendProcess(dst []byte, service string, tags []otlpdata.KeyValue) []byte {
	dst = append(dst, `{"serviceName":`...)
	dst = appendText(dst, service)
	dst = append(dst, `,"tags":`...)
	return append(appendTags(dst, tags), '}')
}

func appendTags(dst []byte, tags []otlpdata.KeyValue) []byte {
	dst = append(dst, '[')
	for i := range tags {
		dst = appendTag(comma(dst, i), &tags[i])
	}
	return append(dst, ']')
}

func appendTag(dst []byte, kv *otlpdata.KeyValue) []byte {
	dst = append(dst, `{"key":`...)
	dst = appendText(dst, kv.Key)
	dst = append(dst, `,"type":"`...)
	v := kv.Value
	switch v.Kind() {
	case otlpdata.ValueBool:
		dst = v.AppendJSON(append(dst, `bool","value":`...))
	case otlpdata.ValueInt:
		dst = appendInt(append(dst, `int64","value":`...), v.Int())
	case otlpdata.ValueDouble:
		dst = v.AppendJSON(append(dst, `float64","value":`...))
	case otlpdata.ValueBytes:
		dst = v.AppendJSON(append(dst, `binary","value":`...))
	case otlpdata.ValueString:
		dst = appendString(dst, v.Str())
	default: // empty, or the JSON of an array or a map
		dst = appendString(dst, v.AsString())
	}
	return append(dst, '}')
}

// maxSafeInt is the largest integer that JavaScript does not round.
const maxSafeInt = 1<<53 - 1

func appendInt(dst []byte, i int64) []byte {
	if -maxSafeInt <= i && i <= maxSafeInt {
		return strconv.AppendInt(dst, i, 10)
	}
	dst = strconv.AppendInt(append(dst, '"'), i, 10)
	return append(dst, '"')
}
