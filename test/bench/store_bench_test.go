package bench_test

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

const benchStoreConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters: {disk: {reserve: 0}}
service:
  data_dir: %q
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [disk]}}
`

// stored is what a server with a span store made of the load.
type stored struct {
	cpu  float64 // ns for a span, until the process ended
	size float64 // bytes for a span, in segments
	peak int     // resident memory in MiB, until the load ended
}

// BenchmarkStoreServer measures the whole server with its span store, as a process of its own, by its CPU time for a span of requests of
// 512 spans over gRPC: otlp -> batch -> disk, every acknowledgement synced, until everything is in segments and the process has ended. It
// takes turns with the floor of BenchmarkServer, decoding into pdata (F): the ratio disk/F is of one run. Besides, the size of the segments
// for a span, and the greatest resident memory.
func BenchmarkStoreServer(b *testing.B) {
	requests := slices.Collect(bench.New(1, time.Now()).Requests(benchSpans+512*200, 512))
	all, spans := slices.Values(requests), 0
	for _, r := range requests {
		spans += r.Spans
	}
	var floor, cpu, size float64
	peak := 0
	for b.Loop() {
		floor += measureFloor(b, all)
		s := measureStore(b, all, spans)
		cpu, size, peak = cpu+s.cpu, size+s.size, max(peak, s.peak)
	}
	n := float64(b.N)
	b.ReportMetric(floor/n, "F-ns/span")
	b.ReportMetric(cpu/n, "disk-ns/span")
	b.ReportMetric(cpu/floor, "disk/F")
	b.ReportMetric(size/n, "B/span")
	b.ReportMetric(float64(peak), "peak-MiB")
	b.ReportMetric(0, "ns/op")
}

// measureStore sends that many spans to a new server with an empty store.
func measureStore(b *testing.B, requests iter.Seq[bench.Request], spans int) (s stored) {
	b.Helper()
	dir := b.TempDir()
	file := filepath.Join(b.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, benchStoreConfig, dir), 0o600); err != nil {
		b.Fatal(err)
	}
	p := harness.Run(b, "--config", file)
	s.cpu = measured(b, p.Address("otlp", "protocols.grpc"), requests, p.Cmd, func() {
		s.peak = p.PeakMemory()
		p.Terminate()
		checkSent(b, p, benchSpans)
	})
	s.size = float64(segmentBytes(b, dir)) / float64(spans)
	return s
}

// segmentBytes returns the size of all segments in a folder.
func segmentBytes(tb testing.TB, dir string) int64 {
	tb.Helper()
	size, err := bench.FileBytes(dir, ".seg")
	if err != nil {
		tb.Fatal(err)
	}
	return size
}
