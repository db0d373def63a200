package doctor

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/zipkincore"
)

// Methods of an agent.
const (
	emitBatch       = "emitBatch"
	emitZipkinBatch = "emitZipkinBatch"
)

// newProtocol returns one of the protocols of Thrift.
type newProtocol func(thrift.TTransport) thrift.TProtocol

func newBinary(to thrift.TTransport) thrift.TProtocol { return thrift.NewTBinaryProtocolConf(to, nil) }

func newCompact(to thrift.TTransport) thrift.TProtocol {
	return thrift.NewTCompactProtocolConf(to, nil)
}

// encodeThrift returns what write writes.
func encodeThrift(ctx context.Context, format newProtocol, write func(thrift.TProtocol) error) ([]byte, error) {
	buffer := thrift.NewTMemoryBuffer()
	to := format(buffer)
	if err := write(to); err != nil {
		return nil, err
	}
	if err := to.Flush(ctx); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// message returns the message of a method with which clients send the span to an agent.
func (s *testSpan) message(ctx context.Context, method string, format newProtocol) ([]byte, error) {
	var args thrift.TStruct = &agent.AgentEmitBatchArgs{Batch: s.thriftBatch()}
	if method == emitZipkinBatch {
		args = &agent.AgentEmitZipkinBatchArgs{Spans: []*zipkincore.Span{s.zipkinSpan()}}
	}
	return encodeThrift(ctx, format, func(to thrift.TProtocol) error {
		if err := to.WriteMessageBegin(ctx, method, thrift.ONEWAY, 0); err != nil {
			return err
		}
		if err := args.Write(ctx, to); err != nil {
			return err
		}
		return to.WriteMessageEnd(ctx)
	})
}

// numbers returns the ids as Thrift has them.
func (s *testSpan) numbers() (high, low, id int64) {
	high, low = int64(binary.BigEndian.Uint64(s.trace[:8])), int64(binary.BigEndian.Uint64(s.trace[8:]))
	return high, low, int64(binary.BigEndian.Uint64(s.id[:]))
}

func (s *testSpan) thriftBatch() *jaeger.Batch {
	high, low, id := s.numbers()
	return &jaeger.Batch{Process: &jaeger.Process{ServiceName: serviceName}, Spans: []*jaeger.Span{{
		TraceIdHigh: high, TraceIdLow: low, SpanId: id, OperationName: s.name, Flags: 1,
		StartTime: s.start.UnixMicro(), Duration: int64(s.duration / time.Microsecond),
		Tags: []*jaeger.Tag{{Key: subjectKey, VType: jaeger.TagType_STRING, VStr: &s.subject}},
	}}}
}

func (s *testSpan) zipkinSpan() *zipkincore.Span {
	high, low, id := s.numbers()
	start, duration := s.start.UnixMicro(), int64(s.duration/time.Microsecond)
	host := &zipkincore.Endpoint{ServiceName: serviceName}
	return &zipkincore.Span{
		TraceIDHigh: &high, TraceID: low, ID: id, Name: s.name, Timestamp: &start, Duration: &duration,
		BinaryAnnotations: []*zipkincore.BinaryAnnotation{
			{Key: subjectKey, Value: []byte(s.subject), AnnotationType: zipkincore.AnnotationType_STRING, Host: host},
		},
	}
}

// zipkinList returns the span as a list of Zipkin v1 in Thrift.
func (s *testSpan) zipkinList(ctx context.Context) ([]byte, error) {
	return encodeThrift(ctx, newBinary, func(to thrift.TProtocol) error {
		if err := to.WriteListBegin(ctx, thrift.STRUCT, 1); err != nil {
			return err
		}
		if err := s.zipkinSpan().Write(ctx, to); err != nil {
			return err
		}
		return to.WriteListEnd(ctx)
	})
}
