package doctor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/zipkincore"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
)

// sender has the protocols of a listener, by the type of the receiver and the path of its block.
type sender struct {
	typ, path string
	protocols []protocol
}

// protocol sends a test span in one of the protocols of a listener.
type protocol struct {
	name string // "" if the listener has only one
	send func(ctx context.Context, x *examination, l *listener, s *testSpan) error
}

// senders returns all protocols that the command supports.
func senders() []sender {
	return []sender{
		{"otlp", "protocols::grpc", []protocol{{"", sendOTLP}}},
		{"otlp", "protocols::http", []protocol{{"protobuf", sendOTLPProto}, {"JSON", sendOTLPJSON}}},
		{"native", "protocols::grpc", []protocol{{"", sendPostSpans}}},
		{"native", "protocols::http", []protocol{{"", sendThrift}}},
		{"thriftudp", "compact", []protocol{{"", sendDatagram(emitBatch, newCompact)}}},
		{"thriftudp", "binary", []protocol{{"", sendDatagram(emitBatch, newBinary)}}},
		{"thriftudp", "zipkin", []protocol{{"", sendDatagram(emitZipkinBatch, newCompact)}}},
		{"zipkin", "", []protocol{{"v2 JSON", sendZipkinJSON}, {"v2 protobuf", sendZipkinProto}, {"v1 Thrift", sendZipkinThrift}}},
	}
}

func sendOTLP(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	conn, err := x.dial(l)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the response was read
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(s.encode()); err != nil {
		return err
	}
	answer, err := ptraceotlp.NewGRPCClient(conn).Export(x.outgoing(ctx, l), request, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if p := answer.PartialSuccess(); p.RejectedSpans() > 0 {
		return fmt.Errorf("rejected: %s", p.ErrorMessage())
	}
	return nil
}

func tracesURL(l *listener) string {
	if path := text(l.component, "protocols::http::traces_url_path"); path != "" {
		return l.url() + path
	}
	return l.url() + "/v1/traces"
}

func sendOTLPProto(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	return x.post(ctx, l, tracesURL(l), "application/x-protobuf", s.encode())
}

func sendOTLPJSON(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(s.encode())
	if err != nil {
		return err
	}
	body, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	if err != nil {
		return err
	}
	return x.post(ctx, l, tracesURL(l), "application/json", body)
}

func sendPostSpans(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	b, err := s.batch()
	if err != nil {
		return err
	}
	conn, err := x.dial(l)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the response was read
	const maxRequest = 1 << 20
	return native.SplitPostSpans(b, maxRequest, func() []byte { return nil }, func(request []byte, _ int) error {
		var message api_v2.PostSpansRequest
		if err := proto.Unmarshal(request, &message); err != nil {
			return err
		}
		_, err := api_v2.NewCollectorServiceClient(conn).PostSpans(x.outgoing(ctx, l), &message, grpc.WaitForReady(true))
		return err
	})
}

func sendThrift(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	body, err := encodeThrift(ctx, newBinary, func(to thrift.TProtocol) error { return s.thriftBatch().Write(ctx, to) })
	if err != nil {
		return err
	}
	return x.post(ctx, l, l.url()+"/api/traces?format=jaeger.thrift", "application/x-thrift", body)
}

// sendDatagram returns a function that sends a Thrift message to an agent. There is no response.
func sendDatagram(method string, format newProtocol) func(context.Context, *examination, *listener, *testSpan) error {
	return func(ctx context.Context, x *examination, l *listener, s *testSpan) error {
		body, err := s.message(ctx, method, format)
		if err != nil {
			return err
		}
		conn, err := x.env.Dial(ctx, "udp", l.hostPort())
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // there is no response
		_, err = conn.Write(body)
		return err
	}
}

func sendZipkinJSON(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	b, err := s.batch()
	if err != nil {
		return err
	}
	body, _, err := zipkin.ToV2JSON(b, "")
	if err != nil {
		return err
	}
	return x.post(ctx, l, l.url()+"/api/v2/spans", "application/json", body)
}

func sendZipkinProto(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	b, err := s.batch()
	if err != nil {
		return err
	}
	body, _, err := zipkin.ToV2Proto(b, "")
	if err != nil {
		return err
	}
	return x.post(ctx, l, l.url()+"/api/v2/spans", "application/x-protobuf", body)
}

func sendZipkinThrift(ctx context.Context, x *examination, l *listener, s *testSpan) error {
	body, err := s.zipkinList(ctx)
	if err != nil {
		return err
	}
	return x.post(ctx, l, l.url()+"/api/v1/spans", "application/x-thrift", body)
}

// post sends a request with spans to a listener. A success response means that it has accepted
// them.
func (x *examination) post(ctx context.Context, l *listener, url, contentType string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range x.headerFor(l) {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := x.local.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // the body was read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxQuoted))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return &statusError{resp.StatusCode, strings.TrimSpace(string(answer))}
	}
	return nil
}

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
