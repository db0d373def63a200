package bench_test

import (
	"fmt"
	"iter"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// benchSpans returns the minimum number of spans of one measurement.
func benchSpans() int { return bench.Spans(500_000) }

// repeated returns requests four times, so that the start of a process matters little.
func repeated(requests []bench.Request) iter.Seq[bench.Request] {
	return slices.Values(slices.Repeat(requests, 4))
}

// measureCPU sends requests to target, stops the process with stop, and returns its CPU time per
// span in nanoseconds.
func measureCPU(b *testing.B, target string, requests iter.Seq[bench.Request], cmd *exec.Cmd, stop func()) float64 {
	b.Helper()
	r, err := load.Run(b.Context(), load.Options{Target: target, Connections: 4, InFlight: 2, Retry: time.Minute}, requests)
	if err != nil || r.Acked < benchSpans() {
		b.Fatalf("%+v %v", r, err)
	}
	stop()
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu.Nanoseconds()) / float64(r.Acked)
}

// BenchmarkServer measures the CPU time per span of servers that run in separate processes.
// Requests have 512 spans and are sent over gRPC. The servers are the baseline F, which decodes
// requests into pdata and discards them, and this program with otlp -> batch -> nop, with the
// Collector's processor attributes before batch, with two such processors, with otlp -> batch ->
// otlp, and with otlp -> batch -> kafka. They are measured alternately in one run. The benchmark
// reports the ratios to F.
func BenchmarkServer(b *testing.B) {
	requests := slices.Collect(bench.New(1, time.Now()).Requests(benchSpans()+512*200, 512))
	all := repeated(requests)
	var floor, nop, attributes, two, hop, kafka float64
	n := 0
	for b.Loop() {
		floor += measureFloor(b, all)
		nop += measureNop(b, all, "batch")
		attributes += measureNop(b, all, "attributes, batch")
		two += measureNop(b, all, "attributes, resource, batch")
		hop += measureHop(b, all)
		cpu, _ := measureKafka(b, all, "")
		kafka += cpu
		n++
	}
	b.ReportMetric(floor/float64(n), "F-ns/span")
	b.ReportMetric(nop/floor, "nop/F")
	b.ReportMetric(attributes/floor, "attributes/F")
	b.ReportMetric(two/floor, "two/F")
	b.ReportMetric(hop/floor, "otlp/F")
	b.ReportMetric(kafka/floor, "kafka/F")
	b.ReportMetric(0, "ns/op")
}

// measureFloor measures F, the lower bound for servers that use pdata.
func measureFloor(b *testing.B, requests iter.Seq[bench.Request]) float64 {
	cmd, addr, stop := startSelf(b, decodeServer)
	return measureCPU(b, addr, requests, cmd, stop)
}

const benchConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors:
  batch:
  attributes: {actions: [{key: cluster, value: c1, action: insert}]}
  resource: {attributes: [{key: region, value: eu, action: insert}]}
exporters:
  nop:
  otlp: {endpoint: %q, tls: {insecure: true}, compression: none}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], processors: [%s], exporters: [%s]}}
`

// startBench runs the program with benchConfig, and returns the process and the address of its
// receiver.
func startBench(b *testing.B, processors, exporter, nextHop string) (*harness.Process, string) {
	p := harness.RunYAML(b, fmt.Sprintf(benchConfig, nextHop, processors, exporter))
	return p, p.OTLPGRPC()
}

func measureNop(b *testing.B, requests iter.Seq[bench.Request], processors string) float64 {
	p, addr := startBench(b, processors, "nop", "localhost:1")
	return measureCPU(b, addr, requests, p.Cmd, func() {
		p.Terminate()
		checkSent(p, benchSpans())
	})
}

func measureHop(b *testing.B, requests iter.Seq[bench.Request]) float64 {
	sink, next := startBench(b, "batch", "nop", "localhost:1")
	p, addr := startBench(b, "batch", "otlp", next)
	cpu := measureCPU(b, addr, requests, p.Cmd, func() { p.Terminate() })
	sink.Terminate()
	checkSent(sink, benchSpans())
	return cpu
}

// checkSent checks that a stopped process has passed at least the given number of spans to its
// exporters.
func checkSent(p *harness.Process, spans int) {
	p.T.Helper()
	if n := spansSent(p); n < float64(spans) {
		p.T.Fatalf("%v spans were sent, want at least %v", n, spans)
	}
}

// spansSent returns the number of spans that a stopped process has passed to its exporters.
func spansSent(p *harness.Process) (spans float64) {
	p.T.Helper()
	for _, account := range p.ExporterAccounts() {
		sent, _ := account["sent"].(float64)
		spans += sent
	}
	return spans
}
