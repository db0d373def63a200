package native

import (
	"encoding/binary"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
)

var encodings = map[string]Encoding{"compact": Compact, "binary": Binary}

// thriftProtocol returns the Thrift library's protocol for an encoding.
func thriftProtocol(enc Encoding, over thrift.TTransport) thrift.TProtocol {
	if enc == Compact {
		return thrift.NewTCompactProtocolConf(over, nil)
	}
	return thrift.NewTBinaryProtocolConf(over, nil)
}

// thriftBytes encodes a struct as clients do.
func thriftBytes(t testing.TB, x thrift.TStruct, enc Encoding) []byte {
	t.Helper()
	buf := thrift.NewTMemoryBuffer()
	if err := x.Write(t.Context(), thriftProtocol(enc, buf)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// protoBytes encodes a request as clients do.
func protoBytes(t testing.TB, b *api_v2.Batch) []byte {
	t.Helper()
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(&api_v2.PostSpansRequest{Batch: b})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// asProto converts a Thrift batch to protobuf by the rules of the original collector.
func asProto(b *jaeger.Batch) *api_v2.Batch {
	out := &api_v2.Batch{Process: &api_v2.Process{ServiceName: b.Process.ServiceName, Tags: tagsAsProto(b.Process.Tags)}}
	for _, s := range b.Spans {
		out.Spans = append(out.Spans, spanAsProto(s))
	}
	return out
}

func spanAsProto(s *jaeger.Span) *api_v2.Span {
	out := &api_v2.Span{
		TraceId: idBytes(s.TraceIdHigh, s.TraceIdLow), SpanId: idBytes(s.SpanId), OperationName: s.OperationName, Flags: uint32(s.Flags),
		StartTime: timestampOf(s.StartTime), Duration: &durationpb.Duration{Seconds: s.Duration / 1e6, Nanos: int32(s.Duration%1e6) * 1000},
		Tags: tagsAsProto(s.Tags),
	}
	known := false
	for _, r := range s.References {
		out.References = append(out.References, &api_v2.SpanRef{TraceId: idBytes(r.TraceIdHigh, r.TraceIdLow), SpanId: idBytes(r.SpanId),
			RefType: api_v2.SpanRefType(r.RefType)})
		known = known || r.TraceIdHigh == s.TraceIdHigh && r.TraceIdLow == s.TraceIdLow && r.SpanId == s.ParentSpanId
	}
	if s.ParentSpanId != 0 && !known {
		parent := &api_v2.SpanRef{TraceId: out.TraceId, SpanId: idBytes(s.ParentSpanId)}
		out.References = append([]*api_v2.SpanRef{parent}, out.References...)
	}
	for _, l := range s.Logs {
		out.Logs = append(out.Logs, &api_v2.Log{Timestamp: timestampOf(l.Timestamp), Fields: tagsAsProto(l.Fields)})
	}
	return out
}

func idBytes(words ...int64) (out []byte) {
	for _, w := range words {
		out = binary.BigEndian.AppendUint64(out, uint64(w))
	}
	return out
}

func timestampOf(us int64) *timestamppb.Timestamp {
	return &timestamppb.Timestamp{Seconds: us / 1e6, Nanos: int32(us%1e6) * 1000}
}

func tagsAsProto(tags []*jaeger.Tag) (out []*api_v2.KeyValue) {
	types := map[jaeger.TagType]api_v2.ValueType{
		jaeger.TagType_STRING: 0, jaeger.TagType_DOUBLE: 3, jaeger.TagType_BOOL: 1, jaeger.TagType_LONG: 2,
		jaeger.TagType_BINARY: 4,
	}
	for _, tag := range tags {
		typ, known := types[tag.VType]
		if !known {
			typ = api_v2.ValueType(tag.VType)
		}
		out = append(out, &api_v2.KeyValue{Key: tag.Key, VType: typ, VStr: value(tag.VStr), VBool: value(tag.VBool), VInt64: value(tag.VLong),
			VFloat64: value(tag.VDouble), VBinary: tag.VBinary})
	}
	return out
}

// value returns *p, or zero if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// asThrift is the inverse of asProto, for batches whose spans have no process of their own.
func asThrift(b *api_v2.Batch) *jaeger.Batch {
	out := &jaeger.Batch{Process: &jaeger.Process{ServiceName: b.GetProcess().GetServiceName(),
		Tags: tagsAsThrift(b.GetProcess().GetTags())}}
	for _, s := range b.GetSpans() {
		span := &jaeger.Span{
			TraceIdHigh: word(s.GetTraceId()), TraceIdLow: word(s.GetTraceId()[8:]), SpanId: word(s.GetSpanId()),
			OperationName: s.GetOperationName(), Flags: int32(s.GetFlags()),
			StartTime: s.GetStartTime().AsTime().UnixMicro(), Duration: s.GetDuration().AsDuration().Microseconds(), Tags: tagsAsThrift(s.GetTags()),
		}
		for i, r := range s.GetReferences() {
			if i == 0 && r.GetRefType() == api_v2.SpanRefType(childOf) {
				span.ParentSpanId = word(r.GetSpanId())
				continue
			}
			span.References = append(span.References, &jaeger.SpanRef{RefType: jaeger.SpanRefType(r.GetRefType()),
				TraceIdHigh: word(r.GetTraceId()), TraceIdLow: word(r.GetTraceId()[8:]), SpanId: word(r.GetSpanId())})
		}
		for _, l := range s.GetLogs() {
			log := &jaeger.Log{Timestamp: l.GetTimestamp().AsTime().UnixMicro(), Fields: tagsAsThrift(l.GetFields())}
			span.Logs = append(span.Logs, log)
		}
		out.Spans = append(out.Spans, span)
	}
	return out
}

func word(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func tagsAsThrift(tags []*api_v2.KeyValue) (out []*jaeger.Tag) {
	for _, kv := range tags {
		tag := &jaeger.Tag{Key: kv.GetKey()}
		switch kv.GetVType() {
		case 0:
			tag.VStr = new(kv.GetVStr())
		case 1:
			tag.VType, tag.VBool = jaeger.TagType_BOOL, new(kv.GetVBool())
		case 2:
			tag.VType, tag.VLong = jaeger.TagType_LONG, new(kv.GetVInt64())
		case 3:
			tag.VType, tag.VDouble = jaeger.TagType_DOUBLE, new(kv.GetVFloat64())
		case 4:
			tag.VType, tag.VBinary = jaeger.TagType_BINARY, kv.GetVBinary()
		}
		out = append(out, tag)
	}
	return out
}
