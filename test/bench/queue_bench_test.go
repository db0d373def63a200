package bench_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

const benchQueueConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters:
  otlp: {endpoint: %q, tls: {insecure: true}, compression: none, sending_queue: {%s queue_size: 0, max_bytes: 256MiB, overflow: block}}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [otlp]}}
`

// BenchmarkQueue measures the CPU time per span of a process that forwards spans through a sending
// queue, in memory and on disk. It reports the ratios to F, see [BenchmarkServer], and the
// difference between disk and memory.
func BenchmarkQueue(b *testing.B) {
	requests := slices.Values(slices.Collect(bench.New(1, time.Now()).Requests(benchSpans()+512*200, 512)))
	var floor, memory, disk float64
	n := 0
	through := func(storage string) float64 {
		sink, next := startBench(b, "batch", "nop", "localhost:1")
		p := harness.RunYAML(b, fmt.Sprintf(benchQueueConfig, next, storage, b.TempDir()))
		cpu := measureCPU(b, p.OTLPGRPC(), requests, p.Cmd, func() {
			harness.AwaitQueue(b, p, 0)
			p.Terminate()
		})
		sink.Terminate()
		checkSent(sink, benchSpans())
		return cpu
	}
	for b.Loop() {
		floor += measureFloor(b, requests)
		memory += through("")
		disk += through("storage: disk,")
		n++
	}
	b.ReportMetric(floor/float64(n), "F-ns/span")
	b.ReportMetric(memory/floor, "memory/F")
	b.ReportMetric(disk/floor, "disk/F")
	b.ReportMetric((disk-memory)/floor, "more/F")
	b.ReportMetric(0, "ns/op")
}
