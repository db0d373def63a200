//go:build unix

package bench

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRatio measures pdata and the walk alternately, so that both run under the same
// conditions, and reports the ratio of their CPU times. Garbage collections during a round count.
// The collection of the remaining garbage before the next round does not.
func BenchmarkRatio(b *testing.B) {
	for _, w := range workloads() {
		requests := w.requests(b)
		b.Run(w.name, func(b *testing.B) {
			var pdata, walk time.Duration
			rounds := 0
			for b.Loop() {
				pdata += measureRound(b, requests, decodePdata)
				walk += measureRound(b, requests, decodeWalk)
				rounds++
			}
			spans := float64(rounds * len(requests) * w.perRequest)
			b.ReportMetric(float64(pdata.Nanoseconds())/spans, "pdata-cpu-ns/span")
			b.ReportMetric(float64(walk.Nanoseconds())/spans, "walk-cpu-ns/span")
			b.ReportMetric(float64(walk)/float64(pdata), "walk/D")
		})
	}
}

// measureRound decodes all requests, and returns the CPU time that the process used for it.
func measureRound(b *testing.B, requests []Request, decode func([]byte) error) time.Duration {
	runtime.GC()
	from := cpuTime(b)
	for _, r := range requests {
		if err := decode(r.Body); err != nil {
			b.Fatal(err)
		}
	}
	return cpuTime(b) - from
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
