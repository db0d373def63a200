package conformance_test

import (
	"bytes"
	"compress/gzip"
	encoding "encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// hugeString returns a batch in the binary Thrift protocol whose service name claims to have 2 GiB.
func hugeString() []byte {
	return append([]byte{12, 0, 1, 11, 0, 1}, encoding.BigEndian.AppendUint32(nil, math.MaxInt32)...)
}

// hugeList returns a batch in the binary Thrift protocol that claims to have 2^31 spans.
func hugeList() []byte {
	return append([]byte{15, 0, 2, 12}, encoding.BigEndian.AppendUint32(nil, math.MaxInt32)...)
}

// nested returns structs nested 10,000 deep, in an unknown field.
func nested() []byte { return bytes.Repeat([]byte{12, 0, 99}, 10_000) }

// compactMessageOf returns a message of the compact Thrift protocol with encoded arguments.
func compactMessageOf(method string, args ...byte) []byte {
	head := append([]byte{0x82, 0x81, 0, byte(len(method))}, method...)
	return append(head, args...)
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b) //nolint:errcheck // into memory
	w.Close()  //nolint:errcheck // into memory
	return out.Bytes()
}

// millionTags returns a batch in the binary Thrift protocol with one span that has a million tags.
func millionTags() []byte {
	tags := make([]*jaeger.Tag, 1_000_000)
	for i := range tags {
		tags[i] = &jaeger.Tag{Key: "k"}
	}
	return thriftStruct(thrift.NewTBinaryProtocolFactoryConf(nil),
		&jaeger.Batch{Process: &jaeger.Process{ServiceName: "s"}, Spans: []*jaeger.Span{{SpanId: 1, TraceIdLow: 1, Tags: tags}}})
}

// TestMalformedRequests sends malformed requests to every receiver except OTLP. Each is answered
// with the right status and counted, and the receivers accept spans afterwards.
func TestMalformedRequests(t *testing.T) {
	soak.SkipIfRaced(t)
	p := startAllReceivers(t)
	t.Run("native HTTP", func(t *testing.T) { malformedNativeHTTP(t, p) })
	t.Run("native gRPC", func(t *testing.T) { malformedNativeGRPC(t, p) })
	t.Run("Zipkin", func(t *testing.T) { malformedZipkin(t, p) })
	t.Run("UDP", func(t *testing.T) { malformedUDP(t, p) })
	for i, in := range protocols() {
		t.Run("afterwards "+in.name, func(t *testing.T) {
			high, low := uint64(0x99), uint64(i+1)
			in.send(t, p, high, low, "fine")
			if s, service := awaitSpan(t, p, fmt.Sprintf("%016x%016x", high, low)); s.OperationName != "fine" || service != "fine" {
				t.Errorf("%+v of %s", s, service)
			}
		})
	}
	harness.CheckAccounting(t, p.AdminURL())
}

// httpCase is a malformed HTTP request and its response.
type httpCase struct {
	name, method, path, contentType, encoding string
	body                                      []byte
	status                                    int
	answer                                    string // prefix
}

func (c httpCase) check(t *testing.T, p *inprocess.Program, component string) {
	t.Helper()
	code, answer := harness.Request(t, c.method, "http://"+p.Addr(component, "http")+c.path, string(c.body), "Content-Type", c.contentType, "Content-Encoding", c.encoding)
	if code != c.status || !strings.HasPrefix(answer, c.answer) {
		t.Errorf("%s: %d %.200q, want %d %q", c.name, code, answer, c.status, c.answer)
	}
}

func malformedNativeHTTP(t *testing.T, p *inprocess.Program) {
	const path, thriftType = "/api/traces", "application/x-thrift"
	before := refusedRequests(t, p, "native")
	cases := []httpCase{
		{"garbage", http.MethodPost, path, thriftType, "", []byte("hello, is this on?"), 400, "Unable to process request body: "},
		{"empty", http.MethodPost, path, thriftType, "", nil, 400, "Unable to process request body: "},
		{"huge string", http.MethodPost, path, thriftType, "", hugeString(), 400, "Unable to process request body: "},
		{"huge list", http.MethodPost, path, thriftType, "", hugeList(), 400, "Unable to process request body: "},
		{"nested", http.MethodPost, path, thriftType, "", nested(), 400, "Unable to process request body: "},
		{"a million tags", http.MethodPost, path, thriftType, "", millionTags(), 400, "Unable to process request body: "},
		{"gzip bomb", http.MethodPost, path, thriftType, "gzip", gzipped(make([]byte, 256<<20)), 413, ""},
		{"no gzip", http.MethodPost, path, thriftType, "gzip", []byte("plain"), 400, ""},
		{"JSON", http.MethodPost, path, "application/json", "", []byte("{}"), 400, "Unsupported content type: application/json"},
		{"no type", http.MethodPost, path, ";", "", []byte("{}"), 400, "Cannot parse content type: "},
		{"GET", http.MethodGet, path, thriftType, "", nil, 405, ""},
		{"unknown path", http.MethodPost, "/api/trace", thriftType, "", nil, 404, "404 page not found"},
	}
	for _, c := range cases {
		c.check(t, p, "native")
	}
	if n := refusedRequests(t, p, "native") - before; n != float64(len(cases)) {
		t.Errorf("%v requests counted as refused, want %d", n, len(cases))
	}
}

func malformedZipkin(t *testing.T, p *inprocess.Program) {
	const v1, v2, asJSON, asThrift, asProto = "/api/v1/spans", "/api/v2/spans", "application/json",
		"application/x-thrift", "application/x-protobuf"
	before := refusedRequests(t, p, "zipkin")
	cases := []httpCase{
		{"v2 garbage", http.MethodPost, v2, asJSON, "", []byte("xyz"), 400, "invalid character 'x' looking for beginning of value"},
		{"v2 empty", http.MethodPost, v2, asJSON, "", nil, 400, "unexpected end of JSON input"},
		{"v2 no id", http.MethodPost, v2, asJSON, "", []byte(`[{"traceId":"1"}]`), 400, "valid span id required"},
		{"v2 nested", http.MethodPost, v2, asJSON, "", bytes.Repeat([]byte(`[{"x":`), 10_000), 400, ""},
		{"v2 gzip bomb", http.MethodPost, v2, asJSON, "gzip", gzipped(bytes.Repeat([]byte(" "), 256<<20)), 413, ""},
		{"v2 unknown encoding", http.MethodPost, v2, asJSON, "br", []byte("[]"), 400, "unsupported Content-Encoding: br"},
		{"v2 protobuf garbage", http.MethodPost, v2, asProto, "", []byte("\xff\xff\xff"), 400, ""},
		{"v1 garbage", http.MethodPost, v1, asJSON, "", []byte(`{"a`), 400, ""},
		{"v1 short id", http.MethodPost, v1, asJSON, "", []byte(`[{"traceId":"1","id":"1"}]`), 400, "zipkinV1 span traceId: hex traceId span has wrong length (expected 16 or 32)"},
		{"v1 Thrift garbage", http.MethodPost, v1, asThrift, "", []byte("hello"), 400, ""},
		{"v1 Thrift huge list", http.MethodPost, v1, asThrift, "", encoding.BigEndian.AppendUint32([]byte{12}, math.MaxInt32), 400, ""},
		{"v1 Thrift nested", http.MethodPost, v1, asThrift, "", append([]byte{12, 0, 0, 0, 1}, nested()...), 400, ""},
		{"GET", http.MethodGet, v2, asJSON, "", nil, 405, ""},
		{"unknown path", http.MethodPost, "/spans", asJSON, "", nil, 404, ""},
	}
	for _, c := range cases {
		c.check(t, p, "zipkin")
	}
	if n := refusedRequests(t, p, "zipkin") - before; n != float64(len(cases)) {
		t.Errorf("%v requests counted as refused, want %d", n, len(cases))
	}
}

func malformedNativeGRPC(t *testing.T, p *inprocess.Program) {
	conn, err := grpc.NewClient(p.Addr("native", "grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(harness.RawCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := refusedRequests(t, p, "native")
	cases := []struct {
		name string
		body []byte
		want codes.Code
	}{
		{"garbage", []byte("hello"), codes.Internal},
		{"huge message", []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07}, codes.Internal},
		{"short trace id", pbField(nil, 1, pbField(nil, 1, pbField(nil, 1, "abc"))), codes.Internal},
		{"short span id", pbField(nil, 1, pbField(nil, 1, pbField(nil, 2, "abc"))), codes.Internal},
		{"groups", bytes.Repeat([]byte{0x7b}, 10_000), codes.Internal},
		{"a million tags", pbField(nil, 1, pbField(nil, 1, bytes.Repeat([]byte{0x42, 0}, 1_000_000))), codes.Internal},
		{"too large", make([]byte, 5<<20), codes.ResourceExhausted},
	}
	for _, c := range cases {
		if err := conn.Invoke(t.Context(), "/jaeger.api_v2.CollectorService/PostSpans", c.body, nil); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	// A call that gRPC refuses is counted when it ends, just after its response.
	harness.Poll(t, "counted requests", func() bool { return refusedRequests(t, p, "native")-before >= float64(len(cases)) })
	if n := refusedRequests(t, p, "native") - before; n != float64(len(cases)) {
		t.Errorf("%v requests counted as refused, want %d", n, len(cases))
	}
}

func malformedUDP(t *testing.T, p *inprocess.Program) {
	whole := thriftMessage(t, thrift.NewTCompactProtocolFactoryConf(nil), "emitBatch", firstOf(emitBatch(1, 2, "cut")))
	sum := func(listener, name string) (n float64) {
		protocol, model := map[string]string{"binary": "binary"}[listener], map[string]string{"zipkin": "zipkin"}[listener]
		for k, v := range harness.Metrics(t, p.AdminURL()) {
			if strings.HasPrefix(k, name+"{") && strings.Contains(k, `protocol="`+orElse(protocol, "compact")+`"`) && strings.Contains(k, `model="`+orElse(model, "tracing")+`"`) {
				n += v
			}
		}
		return n
	}
	const handled, errors = "tracing_agent_thrift_udp_server_packets_processed", "tracing_agent_thrift_udp_t_processor_handler_errors"
	for _, listener := range []string{"compact", "binary", "zipkin"} {
		bad := [][]byte{
			{}, {0}, []byte("hello, is this on?"), whole[:len(whole)/2], compactMessageOf("nosuch", 0), compactMessageOf("emitBatch", 0),
			compactMessageOf("emitBatch", 0x1c, 0x1c, 0x18, 0xff, 0xff, 0xff, 0xff, 0x07),         // a service name of 2 GiB
			compactMessageOf("emitBatch", 0x1c, 0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07),         // 2^31 spans
			compactMessageOf("emitBatch", bytes.Repeat([]byte{0x1c}, 10_000)...),                  // nested
			compactMessageOf("emitZipkinBatch", 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07),         // 2^31 spans
			append([]byte{0x80, 1, 0, 4}, encoding.BigEndian.AppendUint32(nil, math.MaxInt32)...), // a method's name of 2 GiB
			append([]byte{0x80, 1, 0, 4, 0, 0, 0, 9}, "emitBatch\x00\x00\x00\x01\x0c\x00\x01"...), // ends in the batch
			bytes.Repeat([]byte{0xff}, 65_507),                                                    // longer than any message
		}
		before := sum(listener, errors)
		for _, b := range bad {
			sendDatagram(t, p.Addr("thriftudp", listener), b)
		}
		harness.Poll(t, listener+": malformed datagrams counted", func() bool { return sum(listener, errors)-before >= float64(len(bad)) })
		if n := sum(listener, errors) - before; n != float64(len(bad)) {
			t.Errorf("%s: %v datagrams counted as malformed, want %d (processed: %v)", listener, n, len(bad), sum(listener, handled))
		}
	}
}

func firstOf(_ string, args thrift.TStruct) thrift.TStruct { return args }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// refusedRequests returns the number of requests that the listeners of a component have refused.
func refusedRequests(t *testing.T, p *inprocess.Program, component string) (n float64) {
	t.Helper()
	for k, v := range harness.Metrics(t, p.AdminURL()) {
		if strings.HasPrefix(k, "tracing_server_refused_requests_total{") && strings.Contains(k, `component="`+component+`"`) {
			n += v
		}
	}
	return n
}

// TestRareBatches sends a span without a process, and binary tags in a datagram of the maximum size
// that clients send.
func TestRareBatches(t *testing.T) {
	p := startAllReceivers(t)
	traceID, spanID := wireIDs(5, 5)
	callRaw(t, p.Addr("native", "grpc"), "/jaeger.api_v2.CollectorService/PostSpans",
		pbField(nil, 1, pbField(nil, 1, pbField(pbField(pbField(nil, 1, traceID), 2, spanID), 3, "alone"))))
	if s, service := awaitSpan(t, p, fmt.Sprintf("%016x%016x", 5, 5)); s.OperationName != "alone" || service != "missing-service-name" {
		t.Errorf("without a process: %+v of %q", s, service)
	}

	const clientLimit = 65_000
	batch := nativeBatch(6, 6, "large")
	binaryTag := &jaeger.Tag{Key: "raw", VType: jaeger.TagType_BINARY, VBinary: []byte{0, 1, 0xff}}
	span := batch.Spans[0]
	span.Tags = []*jaeger.Tag{binaryTag, {Key: "fill", VStr: new(string)}}
	message := func() []byte {
		return thriftMessage(t, thrift.NewTCompactProtocolFactoryConf(nil), "emitBatch", firstOf("", emitArgs(batch)))
	}
	fill := strings.Repeat("x", clientLimit-len(message())-2) // the longer length prefix takes two bytes
	span.Tags[1].VStr = &fill
	if n := len(message()); n != clientLimit {
		t.Fatalf("the datagram has %d bytes", n)
	}
	sendDatagram(t, p.Addr("thriftudp", "compact"), message())
	s, _ := awaitSpan(t, p, fmt.Sprintf("%016x%016x", 6, 6))
	if got := harness.TagStrings(s.Tags); len(got) != 2 || got[0] != `fill:string="`+fill+`"` || got[1] != `raw:binary="AAH/"` {
		t.Errorf("got %.200s", got)
	}
}
