package bench_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
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

// protocol is a protocol of a receiver. It is measured with the same spans as the others.
type protocol struct {
	name       string
	perRequest int
	encode     func(b *testing.B, r bench.Request) []byte
	listener   [2]string // component and listener
	exporter   string    // nop, or native, which forwards to another process
	send       func(b *testing.B, addr string, payloads [][]byte)
}

const protocolsConfig = `
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

// BenchmarkProtocols measures the CPU time per span of a process that receives spans in the format
// of a client and discards or forwards them. It reports the ratio to D, the CPU time of decoding
// the same spans from OTLP into pdata. Both are measured alternately.
func BenchmarkProtocols(b *testing.B) {
	dataset := bench.New(1, time.Now())
	for _, w := range []protocol{
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

func (w *protocol) measure(b *testing.B, dataset *bench.Dataset) {
	var requests [][]byte
	var payloads [][]byte
	spans := 0
	for r := range dataset.Requests(benchSpans()/5, w.perRequest) {
		requests, payloads, spans = append(requests, r.Body), append(payloads, w.encode(b, r)), spans+r.Spans
	}
	const rounds = 5 // the same payloads are resent to save memory
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
	b.ReportMetric(lost/float64(n), "lost") // datagrams
	b.ReportMetric(0, "ns/op")
}

// run sends all payloads to a process, and returns its CPU time and the number of spans that it
// passed to its exporter.
func (w *protocol) run(b *testing.B, payloads [][]byte) (cpu time.Duration, spans float64) {
	b.Helper()
	start := func(exporter, next string) *harness.Process {
		return harness.RunYAML(b, fmt.Sprintf(protocolsConfig, next, exporter))
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
	return p.Cmd.ProcessState.UserTime() + p.Cmd.ProcessState.SystemTime(), spansSent(p)
}

// decodeAll decodes requests into pdata and returns the CPU time.
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

// sendDatagrams sends payloads over UDP.
func sendDatagrams(b *testing.B, addr string, payloads [][]byte) {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	// The rate is lower than that of the process, so that almost nothing is lost. The benchmark
	// measures CPU time.
	const bytesPerSecond, datagramsPerSecond = 150e6, 40_000
	started, bytesSent := time.Now(), 0
	for i, p := range payloads {
		due := max(float64(bytesSent)/bytesPerSecond, float64(i)/datagramsPerSecond)
		if early := time.Duration(due*float64(time.Second)) - time.Since(started); early > time.Millisecond {
			time.Sleep(early)
		}
		if _, err := conn.Write(p); err != nil {
			b.Fatal(err)
		}
		bytesSent += len(p)
	}
	time.Sleep(time.Second) // until the queue is empty
}

// inParallel calls send for every payload, with 8 goroutines.
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

// postTo returns a function that sends payloads over HTTP.
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

// callPostSpans sends payloads over gRPC.
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
