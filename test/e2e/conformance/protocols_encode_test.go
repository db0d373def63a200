package conformance_test

import (
	"bytes"
	"context"
	encoding "encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/zipkincore"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

func thriftMessage(t *testing.T, factory thrift.TProtocolFactory, method string, args thrift.TStruct) []byte {
	t.Helper()
	buf := thrift.NewTMemoryBuffer()
	out := factory.GetProtocol(buf)
	ctx := context.Background()
	for _, step := range []func() error{
		func() error { return out.WriteMessageBegin(ctx, method, thrift.ONEWAY, 1) },
		func() error { return args.Write(ctx, out) },
		func() error { return out.WriteMessageEnd(ctx) },
		func() error { return out.Flush(ctx) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

// thriftStruct encodes a struct. Encoding into memory does not fail.
func thriftStruct(factory thrift.TProtocolFactory, s thrift.TStruct) []byte {
	buf := thrift.NewTMemoryBuffer()
	out := factory.GetProtocol(buf)
	if err := s.Write(context.Background(), out); err != nil {
		panic(err)
	}
	if err := out.Flush(context.Background()); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func emitBatch(high, low uint64, text string) (string, thrift.TStruct) {
	return "emitBatch", &agent.AgentEmitBatchArgs{Batch: nativeBatch(high, low, text)}
}

func emitZipkinBatch(high, low uint64, text string) (string, thrift.TStruct) {
	return "emitZipkinBatch", &agent.AgentEmitZipkinBatchArgs{Spans: []*zipkincore.Span{thriftZipkinSpan(high, low, text)}}
}

func nativeBatch(high, low uint64, text string) *jaeger.Batch {
	tag := []*jaeger.Tag{{Key: text, VStr: &text}}
	now := time.Now().UnixMicro()
	return &jaeger.Batch{Process: &jaeger.Process{ServiceName: text, Tags: tag}, Spans: []*jaeger.Span{{
		TraceIdHigh: int64(high), TraceIdLow: int64(low), SpanId: wireSpanID, OperationName: text, Flags: 1,
		StartTime: now, Duration: 1000, Tags: tag,
		Logs: []*jaeger.Log{{Timestamp: now, Fields: tag}},
	}}}
}

func thriftZipkinSpan(high, low uint64, text string) *zipkincore.Span {
	wide, now, duration := int64(high), time.Now().UnixMicro(), int64(1000)
	host := &zipkincore.Endpoint{ServiceName: text, Ipv4: 0x0a010203, Port: 80}
	return &zipkincore.Span{TraceID: int64(low), TraceIDHigh: &wide, ID: wireSpanID, Name: text, Timestamp: &now, Duration: &duration,
		Annotations: []*zipkincore.Annotation{{Timestamp: now, Value: "sr", Host: host}, {Timestamp: now, Value: text, Host: host}},
		BinaryAnnotations: []*zipkincore.BinaryAnnotation{{Key: text, Value: []byte(text),
			AnnotationType: zipkincore.AnnotationType_STRING, Host: host}},
	}
}

// pbField appends a protobuf field with bytes.
func pbField[T string | []byte](dst []byte, num protowire.Number, content T) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), []byte(content))
}

func wireIDs(high, low uint64) (trace, span []byte) {
	return encoding.BigEndian.AppendUint64(encoding.BigEndian.AppendUint64(nil, high), low), encoding.BigEndian.AppendUint64(nil, wireSpanID)
}

func nativeProto(high, low uint64, text string) []byte {
	traceID, spanID := wireIDs(high, low)
	varint := func(dst []byte, num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
	}
	tag := pbField(pbField(nil, 1, text), 3, text)
	at := varint(nil, 1, uint64(time.Now().Unix()))
	span := pbField(pbField(pbField(nil, 1, traceID), 2, spanID), 3, text)
	span = pbField(pbField(varint(span, 5, 1), 6, at), 7, varint(nil, 2, 1e6))
	span = pbField(pbField(span, 8, tag), 9, pbField(pbField(nil, 1, at), 2, tag))
	process := pbField(pbField(nil, 1, text), 2, tag)
	return pbField(nil, 1, pbField(pbField(nil, 1, span), 2, process))
}

func zipkinProto(high, low uint64, text string) []byte {
	traceID, spanID := wireIDs(high, low)
	now := uint64(time.Now().UnixMicro())
	fixed := func(dst []byte, num protowire.Number, v uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(dst, num, protowire.Fixed64Type), v)
	}
	span := pbField(pbField(pbField(nil, 1, traceID), 3, spanID), 5, text)
	span = protowire.AppendVarint(protowire.AppendTag(fixed(span, 6, now), 7, protowire.VarintType), 1000)
	span = pbField(span, 8, pbField(nil, 1, text))
	span = pbField(span, 10, pbField(fixed(nil, 1, now), 2, text))
	span = pbField(span, 11, pbField(pbField(nil, 1, text), 2, text))
	return pbField(nil, 1, span)
}

// jsonText returns a JSON string that keeps invalid UTF-8.
func jsonText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func zipkinV1JSON(high, low uint64, text string) []byte {
	q, now := jsonText(text), time.Now().UnixMicro()
	return fmt.Appendf(nil, `[{"traceId":"%016x%016x","id":"%016x","name":%s,"timestamp":%d,"duration":1000,"annotations":[{"timestamp":%d,"value":"sr",
		"endpoint":{"serviceName":%s}},{"timestamp":%d,"value":%s}],"binaryAnnotations":[{"key":%s,"value":%s}]}]`,
		high, low, uint64(wireSpanID), q, now, now, q, now, q, q, q)
}

func zipkinV2JSON(high, low uint64, text string) []byte {
	q, now := jsonText(text), time.Now().UnixMicro()
	return fmt.Appendf(nil, `[{"traceId":"%016x%016x","id":"%016x","name":%s,"timestamp":%d,"duration":1000,"localEndpoint":{"serviceName":%s},
		"annotations":[{"timestamp":%d,"value":%s}],"tags":{%s:%s}}]`, high, low, uint64(wireSpanID), q, now, q, now, q, q, q)
}

func otlpTrace(high, low uint64, text string) ptraceotlp.ExportRequest {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", text)
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	traceID, spanID := wireIDs(high, low)
	s.SetTraceID(pcommon.TraceID(traceID))
	s.SetSpanID(pcommon.SpanID(spanID))
	s.SetName(text)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	s.SetEndTimestamp(s.StartTimestamp() + 1e6)
	s.Attributes().PutStr(text, text)
	s.Events().AppendEmpty().SetName(text)
	return ptraceotlp.NewExportRequestFromTraces(td)
}

func otlpProto(high, low uint64, text string) []byte {
	b, err := otlpTrace(high, low, text).MarshalProto()
	if err != nil {
		panic(err)
	}
	return b
}

func otlpJSON(high, low uint64, text string) []byte {
	const placeholder = "TEXT"
	b, err := otlpTrace(high, low, placeholder).MarshalJSON()
	if err != nil {
		panic(err)
	}
	return bytes.ReplaceAll(b, []byte(`"`+placeholder+`"`), []byte(jsonText(text)))
}

func emitArgs(b *jaeger.Batch) thrift.TStruct { return &agent.AgentEmitBatchArgs{Batch: b} }
