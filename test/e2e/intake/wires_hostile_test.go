package intake_test

import (
	"bytes"
	"compress/gzip"
	encoding "encoding/binary"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/test/harness"
)

// Bodies that are small, and would be large to who believes them.

// boundless says that a string of 2 GiB follows: the service name of a batch in the binary protocol.
func boundless() []byte {
	return append([]byte{12, 0, 1, 11, 0, 1}, encoding.BigEndian.AppendUint32(nil, math.MaxInt32)...)
}

// manySpans says that a list of 2^31 spans follows.
func manySpans() []byte {
	return append([]byte{15, 0, 2, 12}, encoding.BigEndian.AppendUint32(nil, math.MaxInt32)...)
}

// nested is a struct in a struct, 10,000 deep, in a field that nobody knows.
func nested() []byte { return bytes.Repeat([]byte{12, 0, 99}, 10_000) }

// compactMessageOf is a message of the compact protocol with these arguments.
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

// tagsOf1M is a batch of one span with a million tags.
func tagsOf1M() []byte {
	tags := make([]*jaeger.Tag, 1_000_000)
	for i := range tags {
		tags[i] = &jaeger.Tag{Key: "k"}
	}
	return thriftStruct(thrift.NewTBinaryProtocolFactoryConf(nil),
		&jaeger.Batch{Process: &jaeger.Process{ServiceName: "s"}, Spans: []*jaeger.Span{{SpanId: 1, TraceIdLow: 1, Tags: tags}}})
}

// Whatever a port is sent, it answers with the right status or counts, and goes on.
func TestMalformedOnEveryWire(t *testing.T) {
	p := everyWire(t)
	t.Run("native HTTP", func(t *testing.T) { malformedNativeHTTP(t, p) })
	t.Run("native gRPC", func(t *testing.T) { malformedNativeGRPC(t, p) })
	t.Run("Zipkin", func(t *testing.T) { malformedZipkin(t, p) })
	t.Run("UDP", func(t *testing.T) { malformedUDP(t, p) })
	for i, in := range intakes() {
		t.Run("afterwards "+in.name, func(t *testing.T) {
			high, low := uint64(0x99), uint64(i+1)
			in.send(t, p, high, low, "fine")
			if s, service := awaitSpan(t, p, fmt.Sprintf("%016x%016x", high, low)); s.OperationName != "fine" || service != "fine" {
				t.Errorf("%+v of %s", s, service)
			}
		})
	}
	harness.CheckAccounting(t, harness.Metrics(t, p.AdminURL()))
}

// httpCase is a request that is refused.
type httpCase struct {
	name, method, path, contentType, encoding string
	body                                      []byte
	status                                    int
	answer                                    string // begins with
}

func (c httpCase) check(t *testing.T, p *harness.Program, component string) {
	t.Helper()
	code, answer := p.Request(c.method, "http://"+p.Addr(component, "http")+c.path, string(c.body), "Content-Type", c.contentType, "Content-Encoding", c.encoding)
	if code != c.status || !strings.HasPrefix(answer, c.answer) {
		t.Errorf("%s: %d %.200q, want %d %q", c.name, code, answer, c.status, c.answer)
	}
}

func malformedNativeHTTP(t *testing.T, p *harness.Program) {
	const path, thriftType = "/api/traces", "application/x-thrift"
	before := refusedRequests(t, p, "native")
	cases := []httpCase{
		{"garbage", http.MethodPost, path, thriftType, "", []byte("hello, is this on?"), 400, "Unable to process request body: "},
		{"empty", http.MethodPost, path, thriftType, "", nil, 400, "Unable to process request body: "},
		{"boundless string", http.MethodPost, path, thriftType, "", boundless(), 400, "Unable to process request body: "},
		{"boundless list", http.MethodPost, path, thriftType, "", manySpans(), 400, "Unable to process request body: "},
		{"nested", http.MethodPost, path, thriftType, "", nested(), 400, "Unable to process request body: "},
		{"a million tags", http.MethodPost, path, thriftType, "", tagsOf1M(), 400, "Unable to process request body: "},
		{"gzip bomb", http.MethodPost, path, thriftType, "gzip", gzipped(make([]byte, 256<<20)), 413, ""},
		{"no gzip", http.MethodPost, path, thriftType, "gzip", []byte("plain"), 400, ""},
		{"JSON", http.MethodPost, path, "application/json", "", []byte("{}"), 400, "Unsupported content type: application/json"},
		{"no type", http.MethodPost, path, ";", "", []byte("{}"), 400, "Cannot parse content type: "},
		{"GET", http.MethodGet, path, thriftType, "", nil, 405, ""},
		{"elsewhere", http.MethodPost, "/api/trace", thriftType, "", nil, 404, "404 page not found"},
	}
	for _, c := range cases {
		c.check(t, p, "native")
	}
	if n := refusedRequests(t, p, "native") - before; n != float64(len(cases)) {
		t.Errorf("%v requests were counted as refused, want %d", n, len(cases))
	}
}

func malformedZipkin(t *testing.T, p *harness.Program) {
	const v1, v2, asJSON, asThrift, asProto = "/api/v1/spans", "/api/v2/spans", "application/json", "application/x-thrift", "application/x-protobuf"
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
		{"v1 Thrift boundless", http.MethodPost, v1, asThrift, "", encoding.BigEndian.AppendUint32([]byte{12}, math.MaxInt32), 400, ""},
		{"v1 Thrift nested", http.MethodPost, v1, asThrift, "", append([]byte{12, 0, 0, 0, 1}, nested()...), 400, ""},
		{"GET", http.MethodGet, v2, asJSON, "", nil, 405, ""},
		{"elsewhere", http.MethodPost, "/spans", asJSON, "", nil, 404, ""},
	}
	for _, c := range cases {
		c.check(t, p, "zipkin")
	}
	if n := refusedRequests(t, p, "zipkin") - before; n != float64(len(cases)) {
		t.Errorf("%v requests were counted as refused, want %d", n, len(cases))
	}
}

func malformedNativeGRPC(t *testing.T, p *harness.Program) {
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
		{"boundless", []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07}, codes.Internal},
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
	if n := refusedRequests(t, p, "native") - before; n != float64(len(cases)) {
		t.Errorf("%v requests were counted as refused, want %d", n, len(cases))
	}
}

func malformedUDP(t *testing.T, p *harness.Program) {
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
		for deadline := time.Now().Add(10 * time.Second); sum(listener, errors)-before < float64(len(bad)) && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		if n := sum(listener, errors) - before; n != float64(len(bad)) {
			t.Errorf("%s: %v datagrams were counted as bad, want %d (processed: %v)", listener, n, len(bad), sum(listener, handled))
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

// refusedRequests is how many requests a component's listeners have refused.
func refusedRequests(t *testing.T, p *harness.Program, component string) (n float64) {
	t.Helper()
	for k, v := range harness.Metrics(t, p.AdminURL()) {
		if strings.HasPrefix(k, "tracing_server_refused_requests_total{") && strings.Contains(k, `component="`+component+`"`) {
			n += v
		}
	}
	return n
}

// A span without a process, binary tags, and a datagram as large as clients send.
func TestRareBatches(t *testing.T) {
	p := everyWire(t)
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
	fill := strings.Repeat("x", clientLimit-len(message())-2) // its length takes two more bytes
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

const hostileWires = `
receivers:
  native: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}
  thriftudp: {compact: &udp {endpoint: "localhost:0", queue_size: 1MiB, workers: 1}, zipkin: *udp}
  zipkin: {endpoint: "localhost:0"}
processors: {batch: }
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0", linger: 2s}}
service:
  limits: {inflight: 128MiB}
  extensions: [admin]
  pipelines: {traces: {receivers: [native, thriftudp, zipkin], processors: [batch], exporters: [nop]}}
`

// besideTheHeap is what a process may use beyond its soft memory limit, in MiB: most of it is code.
const besideTheHeap = 48

// softMemory is the memory in MiB that the process says it needs at most: limits.inflight, the queues for datagrams, and 80 MiB.
func softMemory(p *harness.Process) int {
	p.T.Helper()
	text, _ := p.Await("msg", "set soft memory limit")["limit"].(string)
	var limit pipeline.ByteSize
	if err := limit.UnmarshalText([]byte(text)); err != nil {
		p.T.Fatal(err)
	}
	return int(limit >> 20)
}

// Memory is bounded while clients send, many at once and again and again, what would be large to who believes it.
func TestMemoryOnEveryWire(t *testing.T) {
	harness.SkipShort(t)
	file := filepath.Join(t.TempDir(), "wires.yaml")
	if err := os.WriteFile(file, []byte(hostileWires), 0o600); err != nil {
		t.Fatal(err)
	}
	p := harness.Run(t, "--config", file)
	native, zipkin, admin := "http://"+p.Address("native", "protocols.http"), "http://"+p.Address("zipkin", "http"), "http://"+p.Address("admin", "http")
	p.Await("msg", "Health Check state change", "status", "ready")
	const million = 1_000_000
	tags := tagsOf1M()
	var wg sync.WaitGroup
	for _, r := range []struct {
		url, contentType, encoding string
		body                       []byte
	}{
		{native + "/api/traces", "application/x-thrift", "", boundless()},
		{native + "/api/traces", "application/x-thrift", "", tags},
		{native + "/api/traces", "application/x-thrift", "gzip", gzipped(tags)},
		{native + "/api/traces", "application/x-thrift", "gzip", gzipped(make([]byte, 256<<20))},
		{zipkin + "/api/v2/spans", "application/json", "", []byte("[" + strings.Repeat(`{"id":"1"},`, million) + `{"id":"1"}]`)},
		{zipkin + "/api/v2/spans", "application/json", "", []byte(`[{"id":"1","tags":{` + strings.Repeat(`"a":"",`, million) + `"a":""}}]`)},
		{zipkin + "/api/v1/spans", "application/json", "",
			[]byte(`[{"traceId":"0000000000000001","id":"0000000000000001","annotations":[` + strings.Repeat(`{},`, million) + `{}]}]`)},
		{zipkin + "/api/v1/spans", "application/x-thrift", "", append(encoding.BigEndian.AppendUint32([]byte{12}, 10*million), make([]byte, 10*million)...)},
		{zipkin + "/api/v2/spans", "application/x-protobuf", "", bytes.Repeat([]byte{0x0a, 0}, 5*million)},
	} {
		for range 2 {
			wg.Go(func() {
				for range 3 {
					strike(t, r.url, r.contentType, r.encoding, r.body)
				}
			})
		}
	}
	for _, span := range [][]byte{
		bytes.Repeat([]byte{0x0a, 4, 0x28, 3, 0x62, 0}, 600_000),                                 // spans that become ten times as large
		pbField(nil, 1, bytes.Repeat([]byte{0x42, 3, 0x0a, 1, 'k'}, 200_000)),                    // tags
		pbField(nil, 1, bytes.Repeat([]byte("\x22\x0c\x12\x08abcdefgh\x18\x01"), 200_000)),       // links
		pbField(nil, 1, bytes.Repeat(append([]byte{0x4a, 5, 0x12, 3}, "\x0a\x01k"...), 400_000)), // logs
	} {
		for range 2 {
			wg.Go(func() { strikeGRPC(t, p.Address("native", "protocols.grpc"), pbField(nil, 1, span)) })
		}
	}
	for _, listener := range []string{"compact", "zipkin"} {
		wg.Go(func() {
			for range 2000 {
				sendDatagram(t, p.Address("thriftudp", listener), append(compactMessageOf("emitZipkinBatch", 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07), make([]byte, 60_000)...))
			}
		})
	}
	wg.Wait()
	peak := 0
	if runtime.GOOS == "linux" { // the others do not have /proc
		peak = p.PeakMemory()
	}
	p.Signal(syscall.SIGTERM) //nolint:errcheck // wait tells
	line := p.Await("msg", "final accounting of spans")
	harness.CheckAccounting(t, harness.Metrics(t, admin))
	if code := p.Wait(); code != 0 || line["balanced"] != true {
		t.Errorf("exit code %d, %v", code, line)
	}
	most := softMemory(p) + besideTheHeap
	if peak > most {
		t.Errorf("peak memory %d MiB, more than %d", peak, most)
	}
	t.Logf("peak memory %d MiB of at most %d", peak, most)
}

// strikeGRPC sends a message a few times, which must be refused, or accepted where it holds spans after all.
func strikeGRPC(t *testing.T, address string, message []byte) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(harness.RawCodec{})))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for range 5 {
		err := conn.Invoke(t.Context(), "/jaeger.api_v2.CollectorService/PostSpans", message, nil)
		if !slices.Contains([]codes.Code{codes.OK, codes.Internal, codes.InvalidArgument, codes.ResourceExhausted}, status.Code(err)) {
			t.Error(err)
		}
	}
}

// strike sends a request that must be refused, or accepted where it holds spans after all.
func strike(t *testing.T, url, contentType, contentEncoding string, body []byte) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", contentType)
	if contentEncoding != "" {
		req.Header.Set("Content-Encoding", contentEncoding)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return // a refusal before the body was sent can reset the connection
	}
	defer resp.Body.Close()
	if !slices.Contains([]int{202, 400, 413, 429, 503}, resp.StatusCode) {
		t.Errorf("%s: %s", url, resp.Status)
	}
}
