package uijson

import (
	"encoding/hex"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func appendSpan(dst []byte, s *span) []byte {
	dst = append(dst, `{"traceID":"`...)
	dst = appendTraceID(dst, s.traceID)
	dst = append(dst, `","spanID":"`...)
	dst = hex.AppendEncode(dst, s.id[:])
	dst = append(dst, '"')
	if s.flags != 0 {
		dst = strconv.AppendUint(append(dst, `,"flags":`...), uint64(s.flags), 10)
	}
	dst = append(dst, s.text[:s.head]...)
	dst = appendReferences(dst, s)
	dst = append(dst, s.text[s.head:]...)
	dst = append(dst, `,"warnings":`...)
	return append(appendWarnings(dst, s.warnings), '}')
}

// appendTraceID appends otlpdata.TraceID.String.
func appendTraceID(dst []byte, id otlpdata.TraceID) []byte {
	if [8]byte(id[:8]) == [8]byte{} {
		return hex.AppendEncode(dst, id[8:])
	}
	return hex.AppendEncode(dst, id[:])
}

// appendMicros appends nanoseconds as whole microseconds.
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

// appendReferences writes the parent first. A link to the parent is no second reference, it decides the type of the first.
func appendReferences(dst []byte, s *span) []byte {
	dst = append(dst, '[')
	n := 0
	if !s.parent.IsZero() {
		parent := link{traceID: s.traceID, spanID: s.parent, childOf: true}
		for _, l := range s.links {
			if l.isTo(parent) {
				parent.childOf = l.childOf
			}
		}
		dst = appendReference(dst, parent)
		n++
	}
	for _, l := range s.links {
		if !s.parent.IsZero() && l.isTo(link{traceID: s.traceID, spanID: s.parent}) {
			continue
		}
		dst = appendReference(comma(dst, n), l)
		n++
	}
	return append(dst, ']')
}

func (l link) isTo(other link) bool { return l.traceID == other.traceID && l.spanID == other.spanID }

func appendReference(dst []byte, l link) []byte {
	if l.childOf {
		dst = append(dst, `{"refType":"CHILD_OF","traceID":"`...)
	} else {
		dst = append(dst, `{"refType":"FOLLOWS_FROM","traceID":"`...)
	}
	dst = appendTraceID(dst, l.traceID)
	dst = append(dst, `","spanID":"`...)
	return append(hex.AppendEncode(dst, l.spanID[:]), `"}`...)
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
	default: // empty, or an array or a map as JSON
		dst = appendString(dst, v.AsString())
	}
	return append(dst, '}')
}

// maxSafeInt is the greatest integer that JavaScript, the reader of this JSON, does not round.
const maxSafeInt = 1<<53 - 1

func appendInt(dst []byte, i int64) []byte {
	if -maxSafeInt <= i && i <= maxSafeInt {
		return strconv.AppendInt(dst, i, 10)
	}
	dst = strconv.AppendInt(append(dst, '"'), i, 10)
	return append(dst, '"')
}
