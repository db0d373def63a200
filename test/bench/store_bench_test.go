//go:build unix

package bench_test

import (
	"fmt"
	"iter"
	"os"
	"slices"
	"syscall"
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

// stored is the result of a measurement with a span store.
type stored struct {
	cpu     float64 // ns per span
	size    float64 // bytes per span in segments
	written float64 // bytes per span written to the disk: logs, segments and their merges
	peak    int     // peak resident memory in MiB
}

// BenchmarkStoreServer measures the CPU time per span of a server with otlp -> batch -> disk, which
// syncs before it acknowledges, until all spans are in segments and the process has stopped. It
// reports the ratio to F, see [BenchmarkServer], the size of the segments per span, the bytes
// written per span (0 if the temporary folder is in memory), and the peak resident memory.
func BenchmarkStoreServer(b *testing.B) {
	requests := slices.Collect(bench.New(1, time.Now()).Requests(benchSpans()+512*200, 512))
	all, spans := slices.Values(requests), 0
	for _, r := range requests {
		spans += r.Spans
	}
	var floor, cpu, size, written float64
	peak := 0
	for b.Loop() {
		floor += measureFloor(b, all)
		s := measureStore(b, all, spans)
		cpu, size, written, peak = cpu+s.cpu, size+s.size, written+s.written, max(peak, s.peak)
	}
	n := float64(b.N)
	b.ReportMetric(floor/n, "F-ns/span")
	b.ReportMetric(cpu/n, "disk-ns/span")
	b.ReportMetric(cpu/floor, "disk/F")
	b.ReportMetric(size/n, "B/span")
	b.ReportMetric(written/n, "written-B/span")
	b.ReportMetric(float64(peak), "peak-MiB")
	b.ReportMetric(0, "ns/op")
}

// measureStore sends requests with the given number of spans to a server with an empty store.
func measureStore(b *testing.B, requests iter.Seq[bench.Request], spans int) (s stored) {
	b.Helper()
	dir := b.TempDir()
	p := harness.RunYAML(b, fmt.Sprintf(benchStoreConfig, dir))
	p.WatchMemory()
	s.cpu = measureCPU(b, p.OTLPGRPC(), requests, p.Cmd, func() {
		s.peak = p.PeakMemory()
		p.Terminate()
		checkSent(p, benchSpans())
	})
	s.size = float64(segmentBytes(b, dir)) / float64(spans)
	s.written = float64(writtenBytes(p.Cmd.ProcessState)) / float64(spans)
	return s
}

// writtenBytes returns how many bytes an ended process has written to disks.
func writtenBytes(p *os.ProcessState) int64 {
	const unit = 512 // of Oublock
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Oublock) * unit //nolint:unconvert // 32 bits on some platforms
	}
	return 0
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
