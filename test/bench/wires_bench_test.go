package bench_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

// wire is one way in, from the same spans in its format to the program that forgets them.
type wire struct {
	name       string
	perRequest int
	encode     func(b *testing.B, r bench.Request) []byte
	listener   [2]string // component and listener
	exporter   string    // nop, or native: the next hop is another process
	send       func(b *testing.B, addr string, payloads [][]byte)
}

const wiresConfig = `
receivers:
  native: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}
  thriftudp: {compact: {endpoint: "localhost:0"}}
  zipkin: {endpoint: "localhost:0"}
processors: {batch: }
exporters:
  nop:
  native: {endpoint: %q, tls: {insecure: true}, compression: none}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [native, thriftudp, zipkin], processors: [batch], exporters: [%s]}}
`

// BenchmarkWires measures what a span costs the whole process on its way from a client's wire format into nothing, and from one process to
// the next, as CPU time; and relates it to D, the CPU time of decoding the same spans from OTLP into pdata, measured in turns: x/D.
func BenchmarkWires(b *testing.B) {
	dataset := bench.New(1, time.Now())
	for _, w := range []wire{
		{"compact UDP", 130, compactMessage, [2]string{"thriftudp", "compact"}, "nop", sendDatagrams},
		{"compact UDP, a span each", 1, compactMessage, [2]string{"thriftudp", "compact"}, "nop", sendDatagrams},
		{"native gRPC", 512, postSpans, [2]string{"native", "protocols.grpc"}, "nop", callPostSpans},
		{"native HTTP", 512, binaryBatch, [2]string{"native", "protocols.http"}, "nop", postTo("/api/traces", "application/x-thrift")},
		{"Zipkin v2 JSON", 512, zipkinJSON, [2]string{"zipkin", "http"}, "nop", postTo("/api/v2/spans", "application/json")},
		{"native gRPC to native gRPC", 512, postSpans, [2]string{"native", "protocols.grpc"}, "native", callPostSpans},
	} {
		b.Run(w.name, func(b *testing.B) { w.measure(b, dataset) })
	}
}

func (w *wire) measure(b *testing.B, dataset *bench.Dataset) {
	var requests [][]byte
	var payloads [][]byte
	spans := 0
	for r := range dataset.Requests(benchSpans/5, w.perRequest) {
		requests, payloads, spans = append(requests, r.Body), append(payloads, w.encode(b, r)), spans+r.Spans
	}
	const rounds = 5 // the same spans again: their encodings take memory
	var decoding, process time.Duration
	n, lost := 0, 0.0
	for b.Loop() {
		decoding += decodeAll(b, requests)
		cpu, got := w.run(b, slices.Repeat(payloads, rounds))
		process += time.Duration(float64(cpu) * float64(rounds*spans) / got / rounds)
		lost += 1 - got/float64(rounds*spans)
		n++
	}
	b.ReportMetric(float64(decoding.Nanoseconds())/float64(n*spans), "D-ns/span")
	b.ReportMetric(float64(process.Nanoseconds())/float64(n*spans), "ns/span")
	b.ReportMetric(float64(process)/float64(decoding), "x/D")
	b.ReportMetric(lost/float64(n), "lost") // datagrams may be
	b.ReportMetric(0, "ns/op")
}

// run sends all payloads to a process, and returns its CPU time and how many spans it passed on.
func (w *wire) run(b *testing.B, payloads [][]byte) (cpu time.Duration, spans float64) {
	b.Helper()
	start := func(exporter, next string) *harness.Process {
		file := filepath.Join(b.TempDir(), "wires.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, wiresConfig, next, exporter), 0o600); err != nil {
			b.Fatal(err)
		}
		return harness.Run(b, "--config", file)
	}
	sink, next := (*harness.Process)(nil), "localhost:1"
	if w.exporter != "nop" {
		sink = start("nop", next)
		next = sink.Address("native", "protocols.grpc")
	}
	p := start(w.exporter, next)
	w.send(b, p.Address(w.listener[0], w.listener[1]), payloads)
	p.Terminate()
	if sink != nil {
		sink.Terminate()
	}
	return p.Cmd.ProcessState.UserTime() + p.Cmd.ProcessState.SystemTime(), spansSent(b, p)
}

// spansSent returns how many spans a process, by its last log line, gave to its exporters.
func spansSent(b *testing.B, p *harness.Process) (n float64) {
	b.Helper()
	line := p.Await("msg", "final accounting of spans")
	for _, c := range line["components"].([]any) {
		if m := c.(map[string]any); m["kind"] == "exporter" {
			sent, _ := m["sent"].(float64)
			n += sent
		}
	}
	if line["balanced"] != true || n == 0 {
		b.Fatalf("spans were lost: %v", line)
	}
	return n
}

// decodeAll decodes requests into pdata and returns the CPU time that it took.
func decodeAll(b *testing.B, requests [][]byte) time.Duration {
	b.Helper()
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC()
	from := cpu()
	for _, r := range requests {
		if err := ptraceotlp.NewExportRequest().UnmarshalProto(r); err != nil {
			b.Fatal(err)
		}
	}
	return cpu() - from
}

// What sends.

func sendDatagrams(b *testing.B, addr string, payloads [][]byte) {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	// Slower than the process is, so that next to nothing is lost: what counts is the time that it takes, not how long it lasts.
	const perSecond = 150e6 // bytes
	const most = 40_000     // datagrams
	started, bytesSent := time.Now(), 0
	for i, p := range payloads {
		due := max(float64(bytesSent)/perSecond, float64(i)/most)
		if early := time.Duration(due*float64(time.Second)) - time.Since(started); early > time.Millisecond {
			time.Sleep(early)
		}
		if _, err := conn.Write(p); err != nil {
			b.Fatal(err)
		}
		bytesSent += len(p)
	}
	time.Sleep(time.Second) // what is queued
}

// inParallel calls send for every payload, 8 at a time.
func inParallel(b *testing.B, payloads [][]byte, send func(payload []byte) error) {
	b.Helper()
	next := make(chan []byte)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for p := range next {
				if err := send(p); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, p := range payloads {
		next <- p
	}
	close(next)
	wg.Wait()
}

func postTo(path, contentType string) func(b *testing.B, addr string, payloads [][]byte) {
	return func(b *testing.B, addr string, payloads [][]byte) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
		defer client.CloseIdleConnections()
		inParallel(b, payloads, func(p []byte) error {
			resp, err := client.Post("http://"+addr+path, contentType, bytes.NewReader(p))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted {
				return fmt.Errorf("status %s", resp.Status)
			}
			return nil
		})
	}
}

func callPostSpans(b *testing.B, addr string, payloads [][]byte) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(harness.RawCodec{})))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	inParallel(b, payloads, func(p []byte) error {
		return conn.Invoke(b.Context(), "/jaeger.api_v2.CollectorService/PostSpans", p, nil)
	})
}
