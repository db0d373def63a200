package bench_test

import (
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// benchSpans is the load of one measurement.
const benchSpans = 500_000

// measured sends the load to target, ends the process with stop, and returns the CPU time that it used for a span, in nanoseconds.
func measured(b *testing.B, target string, requests iter.Seq[bench.Request], cmd *exec.Cmd, stop func()) float64 {
	b.Helper()
	r, err := load.Run(b.Context(), load.Options{Target: target, Connections: 4, InFlight: 2, Retry: time.Minute}, requests)
	if err != nil || r.Acked < benchSpans {
		b.Fatalf("%+v %v", r, err)
	}
	stop()
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu.Nanoseconds()) / float64(r.Acked)
}

// BenchmarkServer measures whole servers, as processes of their own, by their CPU time for a span of requests of 512 spans over gRPC: the
// floor (decoding into pdata, F), this program with otlp -> batch -> nop, and with otlp -> batch -> otlp. They take turns, so that the
// ratios are of one run: x/F.
func BenchmarkServer(b *testing.B) {
	requests := slices.Collect(bench.New(1, time.Now()).Requests(benchSpans+512*200, 512))
	all := slices.Values(requests)
	var floor, nop, hop float64
	n := 0
	for b.Loop() {
		floor += measureFloor(b, all)
		nop += measureNop(b, all)
		hop += measureHop(b, all)
		n++
	}
	b.ReportMetric(floor/float64(n), "F-ns/span")
	b.ReportMetric(nop/floor, "nop/F")
	b.ReportMetric(hop/floor, "otlp/F")
	b.ReportMetric(0, "ns/op")
}

func measureFloor(b *testing.B, requests iter.Seq[bench.Request]) float64 {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), decodeServer+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var addr string
	if _, err := fmt.Fscanln(stdout, &addr); err != nil {
		b.Fatal(err)
	}
	return measured(b, addr, requests, cmd, func() {
		stdin.Close()
		cmd.Wait() //nolint:errcheck // its CPU time counts
	})
}

const benchConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters:
  nop:
  otlp: {endpoint: %q, tls: {insecure: true}, compression: none}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [%s]}}
`

// startBench runs the program with benchConfig.
func startBench(b *testing.B, exporter, nextHop string) (*harness.Process, string) {
	file := filepath.Join(b.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, benchConfig, nextHop, exporter), 0o600); err != nil {
		b.Fatal(err)
	}
	p := harness.Run(b, "--config", file)
	return p, p.Address("otlp", "protocols.grpc")
}

func measureNop(b *testing.B, requests iter.Seq[bench.Request]) float64 {
	p, addr := startBench(b, "nop", "localhost:1")
	return measured(b, addr, requests, p.Cmd, func() {
		p.Terminate()
		checkSent(b, p, benchSpans)
	})
}

func measureHop(b *testing.B, requests iter.Seq[bench.Request]) float64 {
	sink, next := startBench(b, "nop", "localhost:1")
	p, addr := startBench(b, "otlp", next)
	cpu := measured(b, addr, requests, p.Cmd, p.Terminate)
	sink.Terminate()
	checkSent(b, sink, benchSpans)
	return cpu
}

// checkSent checks that a process, by its last log line, gave its exporters at least that many spans.
func checkSent(b *testing.B, p *harness.Process, least float64) {
	b.Helper()
	line := p.Await("msg", "final accounting of spans")
	if line["balanced"] != true || !slices.ContainsFunc(line["components"].([]any), func(c any) bool {
		m := c.(map[string]any)
		sent, _ := m["sent"].(float64)
		return m["kind"] == "exporter" && sent >= least
	}) {
		b.Fatalf("spans were lost: %v", line)
	}
}
