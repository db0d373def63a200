package native

import (
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkSplitPostSpans translates requests of 512 spans. It alternates with pdata's decoding of
// the same spans (D), so that both measure the same machine state. The relevant metric is ratio-D.
func BenchmarkSplitPostSpans(b *testing.B) {
	const spans, requests = 512, 20
	var bodies [][]byte
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(10*spans*requests, spans) {
		if r.Spans == spans && len(bodies) < requests {
			bodies = append(bodies, r.Body)
		}
	}
	var dst []byte
	var pdata, ours time.Duration
	ways := []struct {
		spent *time.Duration
		run   func(body []byte) error
	}{
		{&pdata, func(body []byte) error { return ptraceotlp.NewExportRequest().UnmarshalProto(body) }},
		{&ours, func(body []byte) (err error) {
			dst, err = appendPostSpans(dst[:0], [][]byte{body})
			return err
		}},
	}
	for b.Loop() {
		for _, w := range ways {
			runtime.GC()
			from := time.Now()
			for _, body := range bodies {
				if err := w.run(body); err != nil {
					b.Fatal(err)
				}
			}
			*w.spent += time.Since(from)
		}
	}
	all := float64(b.N * spans * len(bodies))
	b.ReportMetric(float64(ours.Nanoseconds())/all, "ns/span")
	b.ReportMetric(float64(ours)/float64(pdata), "ratio-D")
	b.ReportMetric(testing.AllocsPerRun(10, func() { _ = ways[1].run(bodies[0]) })/spans, "allocs/span")
}
