package conformance_test

import (
	"encoding/binary"
	"strings"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// eachSpan calls f for all spans.
func eachSpan(td ptrace.Traces, f func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span)) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				f(rs, ss, s)
			}
		}
	}
}

// nativeContent removes what the native model does not have. Lists and maps become text there.
func nativeContent(td ptrace.Traces) {
	eachSpan(td, func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) {
		rs.SetSchemaUrl("")
		rs.Resource().SetDroppedAttributesCount(0)
		ss.SetSchemaUrl("")
		ss.Scope().Attributes().Clear()
		ss.Scope().SetDroppedAttributesCount(0)
		for _, v := range s.Attributes().All() {
			if !isTag(v) {
				v.SetStr(v.AsString())
			}
		}
		s.SetFlags(0)
		s.SetDroppedAttributesCount(0)
		s.SetDroppedEventsCount(0)
		s.SetDroppedLinksCount(0)
		for _, e := range s.Events().All() {
			e.SetDroppedAttributesCount(0)
		}
		for _, l := range s.Links().All() {
			l.SetFlags(0)
			l.TraceState().FromRaw("")
			l.Attributes().Clear()
			l.SetDroppedAttributesCount(0)
		}
	})
}

// thriftContent removes what jaegerBatch does not translate.
func thriftContent(td ptrace.Traces) {
	eachSpan(td, func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
		s.Attributes().RemoveIf(func(_ string, v pcommon.Value) bool { return !isTag(v) })
	})
	nativeContent(td)
	eachSpan(td, func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) {
		rs.Resource().Attributes().RemoveIf(func(k string, _ pcommon.Value) bool { return k != "service.name" })
		ss.Scope().SetName("")
		ss.Scope().SetVersion("")
		s.TraceState().FromRaw("")
		s.Status().SetCode(ptrace.StatusCodeUnset)
		s.Status().SetMessage("")
		toMicroseconds(s)
	})
}

// toMicroseconds rounds times down. The duration is rounded, not the end.
func toMicroseconds(s ptrace.Span) {
	start, duration := s.StartTimestamp()/1000*1000, (s.EndTimestamp()-s.StartTimestamp())/1000*1000
	s.SetStartTimestamp(start)
	s.SetEndTimestamp(start + duration)
	for _, e := range s.Events().All() {
		e.SetTimestamp(e.Timestamp() / 1000 * 1000)
	}
}

func isTag(v pcommon.Value) bool {
	return v.Type() != pcommon.ValueTypeMap && v.Type() != pcommon.ValueTypeSlice
}

// jaegerBatch translates spans in the way of a client of one service.
func jaegerBatch(td ptrace.Traces) *jaeger.Batch {
	b := &jaeger.Batch{Process: &jaeger.Process{ServiceName: "unknown"}, Spans: []*jaeger.Span{}}
	eachSpan(td, func(rs ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
		service, _ := rs.Resource().Attributes().Get("service.name")
		b.Process.ServiceName = service.Str()
		traceID := s.TraceID()
		out := &jaeger.Span{
			TraceIdHigh: int64(binary.BigEndian.Uint64(traceID[:8])), TraceIdLow: int64(binary.BigEndian.Uint64(traceID[8:])),
			SpanId: jaegerSpanID(s.SpanID()), ParentSpanId: jaegerSpanID(s.ParentSpanID()), OperationName: s.Name(), Flags: 1,
			StartTime: int64(s.StartTimestamp() / 1000), Duration: int64((s.EndTimestamp() - s.StartTimestamp()) / 1000),
			Tags: append(jaegerTags(s.Attributes()), stringTag("span.kind", strings.ToLower(s.Kind().String()))),
		}
		for _, e := range s.Events().All() {
			out.Logs = append(out.Logs, &jaeger.Log{Timestamp: int64(e.Timestamp() / 1000),
				Fields: append(jaegerTags(e.Attributes()), stringTag("event", e.Name()))})
		}
		for _, l := range s.Links().All() {
			id := l.TraceID()
			out.References = append(out.References, &jaeger.SpanRef{RefType: jaeger.SpanRefType_FOLLOWS_FROM,
				TraceIdHigh: int64(binary.BigEndian.Uint64(id[:8])), TraceIdLow: int64(binary.BigEndian.Uint64(id[8:])),
				SpanId: jaegerSpanID(l.SpanID())})
		}
		b.Spans = append(b.Spans, out)
	})
	return b
}

func jaegerSpanID(id pcommon.SpanID) int64 { return int64(binary.BigEndian.Uint64(id[:])) }

func stringTag(key, value string) *jaeger.Tag {
	return &jaeger.Tag{Key: key, VType: jaeger.TagType_STRING, VStr: &value}
}

func jaegerTags(m pcommon.Map) (tags []*jaeger.Tag) {
	for k, v := range m.All() {
		t := &jaeger.Tag{Key: k}
		switch v.Type() {
		case pcommon.ValueTypeStr:
			t = stringTag(k, v.Str())
		case pcommon.ValueTypeInt:
			n := v.Int()
			t.VType, t.VLong = jaeger.TagType_LONG, &n
		case pcommon.ValueTypeDouble:
			d := v.Double()
			t.VType, t.VDouble = jaeger.TagType_DOUBLE, &d
		case pcommon.ValueTypeBool:
			b := v.Bool()
			t.VType, t.VBool = jaeger.TagType_BOOL, &b
		case pcommon.ValueTypeBytes:
			t.VType, t.VBinary = jaeger.TagType_BINARY, v.Bytes().AsRaw()
		default:
			continue
		}
		tags = append(tags, t)
	}
	return tags
}
