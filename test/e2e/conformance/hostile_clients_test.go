package conformance_test

import (
	"bytes"
	"compress/gzip"
	"context"
	encoding "encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

const hostileConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0", linger: 2s}}
service:
  limits: {inflight: 128MiB, connections: 3750}
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [nop]}}
`

// TestHostileClients runs attackers of every kind while a well-behaved client sends its spans. The
// attackers are refused with the right status, the client is served, memory stays within its limit,
// and every span is accounted for.
func TestHostileClients(t *testing.T) {
	p := harness.RunYAML(t, hostileConfig)
	a := &attack{t: t, grpc: p.OTLPGRPC(), http: p.OTLPHTTP()}
	admin := p.AdminURL()
	p.AwaitReady()
	p.WatchMemory()

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	attackers, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for name, run := range a.attacks() {
		wg.Go(func() {
			for round := 0; attackers.Err() == nil; round++ {
				if err := run(attackers); err != nil && attackers.Err() == nil {
					t.Errorf("%s, round %d: %v", name, round, err)
					return
				}
			}
		})
	}
	requests := bench.New(1, time.Now()).Requests(15_000, 100)
	r, err := load.Run(ctx, load.Options{Target: a.grpc, Connections: 2, InFlight: 1, Retry: time.Minute}, requests)
	stop()
	wg.Wait()
	if err != nil || r.Acked != r.Spans {
		t.Errorf("well-behaved client: %+v %v", r, err)
	}
	peak := p.PeakMemory()
	p.Signal(syscall.SIGTERM)
	p.Accounting()
	metrics := harness.CheckAccounting(t, admin)
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkPeak(p, peak, metrics)
	t.Logf("client: %d spans, %d retries", r.Acked, r.Retries)
}

// attack holds the addresses of the receivers.
type attack struct {
	t          *testing.T
	grpc, http string
}

// attacks returns the attacks by name. Each returns an error if the response is not the expected
// refusal.
func (a *attack) attacks() map[string]func(context.Context) error {
	zeros := make([]byte, 1<<28)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write(zeros) //nolint:errcheck // a buffer
	w.Close()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		a.t.Fatal(err)
	}
	zst := enc.EncodeAll(zeros, nil)
	enc.Close()
	deepJSON := `{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":` + strings.Repeat(`{"arrayValue":{"values":[`, 100_000)
	deepProto := []byte{}
	for range 10_000 {
		deepProto = field(5, field(1, deepProto))
	}
	deepProto = field(1, field(1, field(1, field(2, deepProto))))
	const proto, json = "application/x-protobuf", "application/json"
	return map[string]func(context.Context) error{
		"gzip bomb":       a.post(proto, "gzip", gz.Bytes(), 413),
		"zstd bomb":       a.post(proto, "zstd", zst, 413),
		"deep JSON":       a.post(json, "", []byte(deepJSON), 400),
		"deep protobuf":   a.post(proto, "", deepProto, 400),
		"64 MiB body":     a.post(proto, "", zeros[:64<<20], 413),
		"many JSON nulls": a.post(json, "", []byte(`{"resourceSpans":[`+strings.Repeat("null,", 1<<20)+`null]}`), 400, 413, 200),
		"length prefix":   a.lyingPrefix,
		"half-open":       a.halfOpen,
		"one byte a time": a.trickle,
	}
}

// field returns a protobuf field with a payload.
func field(num byte, payload []byte) []byte {
	return append(encoding.AppendUvarint([]byte{num<<3 | 2}, uint64(len(payload))), payload...)
}

// post returns an attack that sends a body and expects one of the statuses, or a refusal because of
// overload.
func (a *attack) post(contentType, compression string, body []byte, want ...int) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.http+"/v1/traces", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("Content-Encoding", compression)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			return nil // a refusal before the body was sent can reset the connection
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body) //nolint:errcheck // the status counts
		if !slices.Contains(append(want, 429, 503), resp.StatusCode) {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	}
}

// lyingPrefix opens an HTTP/2 stream and announces a gRPC message of 2 GiB.
func (a *attack) lyingPrefix(ctx context.Context) error {
	conn, err := net.Dial("tcp", a.grpc)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // a test
	io.WriteString(conn, http2.ClientPreface)          //nolint:errcheck // ReadFrame fails
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings() //nolint:errcheck // ReadFrame fails
	var head bytes.Buffer
	h := hpack.NewEncoder(&head)
	for _, kv := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "x"},
		{":path", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		h.WriteField(hpack.HeaderField{Name: kv[0], Value: kv[1]}) //nolint:errcheck // a buffer
	}
	headers := http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true}
	f.WriteHeaders(headers)                                           //nolint:errcheck // ReadFrame fails
	f.WriteData(1, false, []byte{0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3}) //nolint:errcheck // ReadFrame fails
	for ctx.Err() == nil {
		frame, err := f.ReadFrame()
		if err != nil {
			return nil // the connection was closed
		}
		if m, ok := frame.(*http2.MetaHeadersFrame); ok {
			for _, kv := range m.Fields {
				if kv.Name == "grpc-status" && kv.Value != "8" { // ResourceExhausted
					return fmt.Errorf("grpc-status %s", kv.Value)
				}
			}
			if m.StreamEnded() {
				return nil
			}
		}
	}
	return nil
}

// halfOpen opens min(1000, RLIMIT_NOFILE/8) connections to each port and never sends a complete
// request.
func (a *attack) halfOpen(ctx context.Context) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	n := int(min(1000, limit.Cur/8))
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range 2 * n {
		c, err := net.Dial("tcp", []string{a.grpc, a.http}[i%2])
		if err != nil {
			return err
		}
		conns = append(conns, c)
		if i%4 == 1 {
			io.WriteString(c, "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n") //nolint:errcheck // half a request
		}
	}
	<-ctx.Done()
	return nil
}

// trickle sends a request one byte at a time.
func (a *attack) trickle(ctx context.Context) error {
	c, err := net.Dial("tcp", a.http)
	if err != nil {
		return err
	}
	defer c.Close()
	const header = "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000000\r\n\r\n"
	io.WriteString(c, header) //nolint:errcheck // a later write fails
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := c.Write([]byte{0}); err != nil {
				return nil // the server closed the connection
			}
		}
	}
}
