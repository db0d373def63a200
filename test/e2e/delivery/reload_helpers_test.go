package delivery_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// sockets is a configuration whose listeners have fixed ports, and whose receivers, processors and
// extensions change with each generation.
type sockets struct {
	otlp, grpc, zipkin, udp, query string // addresses
	dir                            string
}

func newSockets(t *testing.T) *sockets {
	s := &sockets{dir: t.TempDir()}
	for _, addr := range []*string{&s.otlp, &s.grpc, &s.zipkin, &s.udp, &s.query} {
		*addr = pipelinetest.FixedAddress(t)
	}
	return s
}

// yaml returns the configuration of a generation. Responses over HTTP have its number. processors
// is the list of processors.
func (s *sockets) yaml(generation int, processors string) string {
	return fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      http: {endpoint: %q, response_headers: {X-Generation: "%d"}}
      grpc: {endpoint: %q, max_concurrent_streams: %d}
  zipkin: {endpoint: %q}
  thriftudp: {compact: {endpoint: %q, workers: %d}}
processors: {resource_tags: {tags: {generation: "%d"}}, batch: }
exporters: {disk: {reserve: 0}}
extensions: {query: {storage: disk, http: {endpoint: %q, response_headers: {X-Generation: "%d"}}}}
service:
  data_dir: %q
  extensions: [query]
  pipelines: {traces: {receivers: [otlp, zipkin, thriftudp], processors: [%s], exporters: [disk]}}
`, s.otlp, generation, s.grpc, 100+generation, s.zipkin, s.udp, 1+generation%5, generation, s.query, generation, s.dir, processors)
}

// become reloads a configuration in the background.
func become(t *testing.T, p *inprocess.Program, yaml string) (done <-chan error) {
	c := make(chan error, 1)
	go func() {
		c <- p.App.Reload(t.Context(), func() (*app.Config, error) { return inprocess.Options{YAML: yaml}.Load() })
	}()
	return c
}

// slowPost sends the headers of a request and the first half of its body.
type slowPost struct {
	t    *testing.T
	conn net.Conn
	rest string
}

func startSlowPost(t *testing.T, addr, path, body string) *slowPost {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	half := len(body) / 2
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, addr, len(body), body[:half])
	if err != nil {
		t.Fatal(err)
	}
	return &slowPost{t, conn, body[half:]}
}

// finish sends the rest and checks that the request is accepted.
func (s *slowPost) finish() {
	s.t.Helper()
	if _, err := io.WriteString(s.conn, s.rest); err != nil {
		s.t.Error(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(s.conn), nil)
	if err != nil {
		s.t.Errorf("slow request: %v", err)
		return
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); resp.StatusCode/100 != 2 || err != nil {
		s.t.Errorf("slow request: %s %s %v", resp.Status, body, err)
	}
}

// untilGeneration sends requests, each on a new connection, until the response is of a generation.
// Every request must be answered.
func untilGeneration(t *testing.T, generation int, send func(*http.Client) (*http.Response, error)) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	for {
		resp, err := send(client)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %v", resp.Status, err)
		}
		if resp.Header.Get("X-Generation") == fmt.Sprint(generation) {
			return
		}
	}
}

func (s *sockets) post(trace string) func(*http.Client) (*http.Response, error) {
	return func(c *http.Client) (*http.Response, error) {
		return c.Post("http://"+s.otlp+"/v1/traces", "application/json", strings.NewReader(jsonSpan(trace)))
	}
}

func jsonSpan(trace string) string {
	return harness.JSONSpan(trace, "service", "name", time.Now().Add(-time.Second), time.Millisecond)
}

func checkStored(t *testing.T, s *sockets, trace string, spans int) {
	t.Helper()
	total := 0
	for _, n := range harness.SpanCounts(t, "http://"+s.query, trace) {
		total += n
	}
	if total != spans {
		t.Errorf("trace %s has %d spans, want %d", trace, total, spans)
	}
}

const (
	slowTrace = "000000000000000000000000000000aa"
	fastTrace = "000000000000000000000000000000bb"
)

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// oneSpan returns an OTLP request with one span.
func oneSpan(t *testing.T, trace string) []byte {
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(jsonSpan(trace)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// startSlowCall begins a call over gRPC and sends the first half of its message. finish sends the
// rest and checks that the call succeeds.
func startSlowCall(t *testing.T, addr string, message []byte) (finish func()) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var headers bytes.Buffer
	enc := hpack.NewEncoder(&headers)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", addr}, {":path", exportMethod},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) //nolint:errcheck // a buffer has no errors
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	data := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
	_, err = io.WriteString(conn, http2.ClientPreface)
	first := http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true}
	err = errors.Join(err, f.WriteSettings(), f.WriteHeaders(first), f.WriteData(1, false, data[:len(data)/2]))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.WriteData(1, true, data[len(data)/2:]); err != nil {
			t.Error(err)
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Error(err)
				return
			}
			switch frame := frame.(type) {
			case *http2.PingFrame:
				f.WritePing(true, frame.Data) //nolint:errcheck // reading fails
			case *http2.MetaHeadersFrame:
				for _, h := range frame.Fields {
					if h.Name == "grpc-status" {
						if h.Value != "0" {
							t.Errorf("slow call: %v", frame.Fields)
						}
						return
					}
				}
			}
		}
	}
}

// manySpans returns an OTLP request in JSON.
func manySpans(trace string, n int) string {
	one := jsonSpan(trace)
	start := strings.Index(one, `"spans":[`) + len(`"spans":[`)
	end := strings.LastIndex(one, "]}]}]}")
	span := one[start:end]
	id := strings.Index(span, `"spanId":"`) + len(`"spanId":"`)
	var b strings.Builder
	b.WriteString(one[:start])
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s%016x%s", span[:id], time.Now().UnixNano()+int64(i), span[id+16:])
	}
	b.WriteString(one[end:])
	return b.String()
}
