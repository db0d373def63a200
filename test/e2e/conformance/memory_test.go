package conformance_test

import (
	"bytes"
	encoding "encoding/binary"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/test/harness"
)

// memoryConfig has all receivers that decode formats other than OTLP.
const memoryConfig = `
receivers:
  native: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}
  thriftudp: {compact: &udp {endpoint: "localhost:0", queue_size: 1MiB, workers: 1}, zipkin: *udp}
  zipkin: {endpoint: "localhost:0"}
processors: {batch: }
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0", linger: 2s}}
service:
  limits: {inflight: 128MiB, connections: 3750}
  extensions: [admin]
  pipelines: {traces: {receivers: [native, thriftudp, zipkin], processors: [batch], exporters: [nop]}}
`

// softMemory returns the soft memory limit that the process has logged, in MiB: limits.inflight,
// the queues for datagrams, the connections, and 40 MiB.
func softMemory(p *harness.Process) int {
	p.T.Helper()
	text, _ := p.Await("msg", "set soft memory limit")["limit"].(string)
	var limit pipeline.ByteSize
	if err := limit.UnmarshalText([]byte(text)); err != nil {
		p.T.Fatal(err)
	}
	return int(limit >> 20)
}

// checkPeak checks that requests never held more than service.limits.inflight, by the last metrics
// of a process, and its peak memory in MiB against the soft memory limit. The Go runtime exceeds
// the soft limit by a part if other programs leave it little time to collect garbage.
func checkPeak(p *harness.Process, peak int, metrics map[string]float64) {
	p.T.Helper()
	if held, most := metrics["tracing_inflight_peak_bytes"], metrics["tracing_inflight_limit_bytes"]; held <= 0 || held > most {
		p.T.Errorf("requests held %v bytes at their peak, want at most %v", held, most)
	}
	limit := softMemory(p)
	if most := limit + limit/4; peak > most {
		p.T.Errorf("peak memory %d MiB, want at most %d", peak, most)
	}
	p.T.Logf("peak memory %d MiB, soft limit %d", peak, limit)
}

// hostileRequest is an HTTP request.
type hostileRequest struct {
	url, contentType, encoding string
	body                       []byte
}

// hostileRequests returns requests that are small but claim to be large, or that expand when they
// are decoded.
func hostileRequests(native, zipkin string) []hostileRequest {
	const million = 1_000_000
	tags := millionTags()
	return []hostileRequest{
		{native + "/api/traces", "application/x-thrift", "", hugeString()},
		{native + "/api/traces", "application/x-thrift", "", tags},
		{native + "/api/traces", "application/x-thrift", "gzip", gzipped(tags)},
		{native + "/api/traces", "application/x-thrift", "gzip", gzipped(make([]byte, 256<<20))},
		{zipkin + "/api/v2/spans", "application/json", "", []byte("[" + strings.Repeat(`{"id":"1"},`, million) + `{"id":"1"}]`)},
		{zipkin + "/api/v2/spans", "application/json", "", []byte(`[{"id":"1","tags":{` + strings.Repeat(`"a":"",`, million) + `"a":""}}]`)},
		{zipkin + "/api/v1/spans", "application/json", "",
			[]byte(`[{"traceId":"0000000000000001","id":"0000000000000001","annotations":[` + strings.Repeat(`{},`, million) + `{}]}]`)},
		{zipkin + "/api/v1/spans", "application/x-thrift", "",
			append(encoding.BigEndian.AppendUint32([]byte{12}, 10*million), make([]byte, 10*million)...)},
		{zipkin + "/api/v2/spans", "application/x-protobuf", "", bytes.Repeat([]byte{0x0a, 0}, 5*million)},
	}
}

// TestMemoryUnderHostileRequests checks the peak memory while many clients send requests that are
// small but claim to be large, or that expand when they are decoded.
func TestMemoryUnderHostileRequests(t *testing.T) {
	harness.SkipIfShort(t)
	p := harness.RunYAML(t, memoryConfig)
	native, zipkin, admin := "http://"+p.Address("native", "protocols.http"), "http://"+p.Address("zipkin", "http"), p.AdminURL()
	p.AwaitReady()
	p.WatchMemory()
	var wg sync.WaitGroup
	for _, r := range hostileRequests(native, zipkin) {
		for range 2 {
			wg.Go(func() {
				for range 3 {
					sendHostile(t, r.url, r.contentType, r.encoding, r.body)
				}
			})
		}
	}
	for _, span := range [][]byte{
		// Spans that decode to ten times their size.
		bytes.Repeat([]byte{0x0a, 4, 0x28, 3, 0x62, 0}, 600_000),
		pbField(nil, 1, bytes.Repeat([]byte{0x42, 3, 0x0a, 1, 'k'}, 200_000)),                    // tags
		pbField(nil, 1, bytes.Repeat([]byte("\x22\x0c\x12\x08abcdefgh\x18\x01"), 200_000)),       // links
		pbField(nil, 1, bytes.Repeat(append([]byte{0x4a, 5, 0x12, 3}, "\x0a\x01k"...), 400_000)), // logs
	} {
		for range 2 {
			wg.Go(func() { sendHostileGRPC(t, p.Address("native", "protocols.grpc"), pbField(nil, 1, span)) })
		}
	}
	for _, listener := range []string{"compact", "zipkin"} {
		wg.Go(func() {
			for range 2000 {
				message := compactMessageOf("emitZipkinBatch", 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07)
				sendDatagram(t, p.Address("thriftudp", listener), append(message, make([]byte, 60_000)...))
			}
		})
	}
	wg.Wait()
	peak := p.PeakMemory()
	p.Signal(syscall.SIGTERM)
	p.Accounting()
	metrics := harness.CheckAccounting(t, admin)
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkPeak(p, peak, metrics)
}

// sendHostileGRPC sends a message several times, which must be refused, or accepted if it contains
// spans.
func sendHostileGRPC(t *testing.T, address string, message []byte) {
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

// sendHostile sends a request that must be refused, or accepted if it contains spans.
func sendHostile(t *testing.T, url, contentType, contentEncoding string, body []byte) {
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
