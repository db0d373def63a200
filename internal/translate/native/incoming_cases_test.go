package native

import (
	"math"
	"slices"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
)

func str(key, v string) *jaeger.Tag { return &jaeger.Tag{Key: key, VStr: &v} }
func long(key string, v int64) *jaeger.Tag {
	return &jaeger.Tag{Key: key, VType: jaeger.TagType_LONG, VLong: &v}
}
func boolean(key string, v bool) *jaeger.Tag {
	return &jaeger.Tag{Key: key, VType: jaeger.TagType_BOOL, VBool: &v}
}
func double(key string, v float64) *jaeger.Tag {
	return &jaeger.Tag{Key: key, VType: jaeger.TagType_DOUBLE, VDouble: &v}
}

// thriftSpan returns a span with all required fields and these tags.
func thriftSpan(tags ...*jaeger.Tag) *jaeger.Span {
	return &jaeger.Span{TraceIdLow: 0x0102030405060708, SpanId: 0x1112131415161718, OperationName: "op",
		StartTime: 1_700_000_000_000_001, Duration: 2_000, Tags: tags}
}

func thriftBatch(service string, spans ...*jaeger.Span) *jaeger.Batch {
	return &jaeger.Batch{Process: &jaeger.Process{ServiceName: service}, Spans: spans}
}

func with(s *jaeger.Span, change func(*jaeger.Span)) *jaeger.Span {
	change(s)
	return s
}

// thriftCases returns batches that Thrift can express. Golden files have the same names.
func thriftCases() map[string]*jaeger.Batch {
	processed := thriftBatch("", thriftSpan())
	processed.Process.Tags = []*jaeger.Tag{str("hostname", "h"), str("jaeger.version", "Go-2.30.0"), str("ip", "10.0.0.1"),
		str("client-uuid", "c1"), boolean("b", true), str("ip", "10.0.0.2")}
	kept := thriftBatch("s", thriftSpan())
	kept.Process.Tags = []*jaeger.Tag{str("hostname", "h"), str("host.name", "there"), long("jaeger.version", 7)}
	return map[string]*jaeger.Batch{
		"tags": thriftBatch("svc", thriftSpan(str("s", "v"), str("s", ""), str("", "no key"),
			str("invalid \xff", "\xfe"), boolean("t", true),
			boolean("f", false), long("l", math.MinInt64), long("l", 1), double("d", 0.1), double("inf", math.Inf(1)),
			&jaeger.Tag{Key: "bin", VType: jaeger.TagType_BINARY, VBinary: []byte{0, 255}},
			&jaeger.Tag{Key: "unknown", VType: 9}, &jaeger.Tag{Key: "unknown", VType: math.MinInt32},
			&jaeger.Tag{Key: "no string"}, &jaeger.Tag{Key: "no double", VType: jaeger.TagType_DOUBLE},
			&jaeger.Tag{Key: "no bool", VType: jaeger.TagType_BOOL}, &jaeger.Tag{Key: "no long", VType: jaeger.TagType_LONG},
			&jaeger.Tag{Key: "no binary", VType: jaeger.TagType_BINARY})),
		"ids":        thriftBatch("svc", idSpans()...),
		"references": thriftBatch("svc", referenceSpans()...),
		"flags":      thriftBatch("svc", flagSpans(0, 1, 2, 3, 8, -1)...),
		"times":      thriftBatch("svc", timeSpans()...),
		"logs": thriftBatch("svc", with(thriftSpan(), func(s *jaeger.Span) {
			s.Logs = []*jaeger.Log{{Timestamp: 1, Fields: []*jaeger.Tag{str("a", "1"), str("event", "e"), str("event", "f")}},
				{Timestamp: -1}, {Timestamp: math.MaxInt64, Fields: []*jaeger.Tag{long("event", 1)}},
				{Timestamp: 1_700_000_000_000_000, Fields: []*jaeger.Tag{str("event", "")}}}
		})),
		"scopes": thriftBatch("svc", thriftSpan(), thriftSpan(str("otel.scope.name", "n"), str("otel.scope.version", "1")),
			thriftSpan(str("otel.scope.version", "1"), str("otel.scope.name", "n")), thriftSpan(str("otel.scope.name", "n")),
			thriftSpan(str("otel.scope.version", "kept")), thriftSpan(str("otel.scope.name", "n"), str("otel.scope.name", "second"))),
		"process":         processed,
		"process-kept":    kept,
		"process-unnamed": thriftBatch("OTLPResourceNoServiceName", thriftSpan()),
		"empty":           thriftBatch("svc"),
		"kind-and-status": thriftBatch("svc", thriftSpan(str("span.kind", "server"), boolean("error", true),
			str("w3c.tracestate", "a=b"))),
		"many-small-spans": thriftBatch("svc", slices.Repeat([]*jaeger.Span{{}}, 20)...),
	}
}

func idSpans() []*jaeger.Span {
	return []*jaeger.Span{
		with(thriftSpan(), func(s *jaeger.Span) { s.TraceIdHigh, s.ParentSpanId = -1, 5 }),
		with(thriftSpan(), func(s *jaeger.Span) { s.TraceIdLow, s.SpanId = 0, 0 }), // kept
	}
}

func referenceSpans() []*jaeger.Span {
	const trace = 0x0102030405060708
	ref := func(typ jaeger.SpanRefType, high, low, span int64) *jaeger.SpanRef {
		return &jaeger.SpanRef{RefType: typ, TraceIdHigh: high, TraceIdLow: low, SpanId: span}
	}
	of := func(parent int64, refs ...*jaeger.SpanRef) *jaeger.Span {
		return with(thriftSpan(), func(s *jaeger.Span) { s.ParentSpanId, s.References = parent, refs })
	}
	return []*jaeger.Span{
		of(0, ref(0, 0, trace, 9)),                                                // the parent is a reference
		of(9, ref(0, 0, trace, 9)),                                                // the same twice
		of(9, ref(1, 0, trace, 9)),                                                // parent and link
		of(9, ref(1, 0, trace, 9), ref(0, 0, trace, 8)),                           // childOf wins over followsFrom
		of(9, ref(0, 0, trace, 8), ref(1, 7, trace, 9)),                           // a second parent is a link
		of(0, ref(1, 7, trace, 9), ref(0, 7, trace, 9)),                           // another trace has no parent
		of(0, ref(1, 0, trace, 6), ref(1, 0, trace, 7)),                           // the first followsFrom reference
		of(0, ref(5, 0, trace, 6)),                                                // an unknown type
		of(0, ref(0, 0, 0, 0), ref(1, 0, 0, 0), ref(0, 0, 0, 1), ref(0, 1, 1, 0)), // zero and partly zero ids
	}
}

func flagSpans(flags ...int32) (out []*jaeger.Span) {
	for _, f := range flags {
		out = append(out, with(thriftSpan(), func(s *jaeger.Span) { s.Flags = f }))
	}
	return out
}

func timeSpans() (out []*jaeger.Span) {
	for _, t := range [][2]int64{{0, 0}, {0, 1}, {-5, 10}, {-5, 3}, {10, -4}, {10, -20}, {math.MaxInt64, math.MaxInt64},
		{math.MinInt64, math.MinInt64}, {math.MaxUint64 / 1000, 0}, {math.MaxUint64/1000 + 1, 0}, {math.MaxInt64, math.MinInt64}} {
		out = append(out, with(thriftSpan(), func(s *jaeger.Span) { s.StartTime, s.Duration = t[0], t[1] }))
	}
	return out
}

func protoSpan(tags ...*api_v2.KeyValue) *api_v2.Span {
	return &api_v2.Span{TraceId: idBytes(1, 2), SpanId: idBytes(3), OperationName: "op",
		StartTime: &timestamppb.Timestamp{Seconds: 1, Nanos: 1},
		Duration:  &durationpb.Duration{Nanos: 1}, Tags: tags}
}

// protoCases returns batches that only protobuf can express.
func protoCases() map[string]*api_v2.Batch {
	own := func(service string) *api_v2.Span {
		s := protoSpan()
		s.Process = &api_v2.Process{ServiceName: service}
		return s
	}
	warned := protoSpan(&api_v2.KeyValue{Key: "k"}, &api_v2.KeyValue{Key: "unknown", VType: 77})
	warned.Warnings = []string{"one", "", "three"}
	short := protoSpan()
	short.TraceId, short.References = idBytes(2), []*api_v2.SpanRef{{TraceId: idBytes(0, 2), SpanId: idBytes(4)}}
	times := protoSpan()
	times.StartTime, times.Duration = &timestamppb.Timestamp{Seconds: -1, Nanos: 1_999_999_999},
		&durationpb.Duration{Seconds: -1, Nanos: 500}
	late := protoSpan()
	late.StartTime, late.Duration = &timestamppb.Timestamp{Seconds: math.MaxInt64}, &durationpb.Duration{Seconds: math.MaxInt64, Nanos: -1}
	late.Logs = []*api_v2.Log{{Timestamp: &timestamppb.Timestamp{Seconds: math.MinInt64, Nanos: math.MinInt32}}, {}}
	return map[string]*api_v2.Batch{
		"proto-processes": {Process: &api_v2.Process{ServiceName: "batch"},
			Spans: []*api_v2.Span{protoSpan(), own("batch"), own("a"), own("a"), protoSpan(), own("")}},
		"proto-no-process": {Spans: []*api_v2.Span{protoSpan(), own("a"), {}}},
		"proto-rest":       {Spans: []*api_v2.Span{warned, short, times, late}},
	}
}
