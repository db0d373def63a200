//go:build unix

package bench

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRatio measures pdata and the walk in turns, so that both see the same machine, and reports the quotient of their CPU time.
// Collections during a turn count; what it leaves behind is collected before the next one starts, and does not.
func BenchmarkRatio(b *testing.B) {
	for _, w := range workloads() {
		requests := w.requests(b)
		b.Run(w.name, func(b *testing.B) {
			var pdata, walk time.Duration
			turns := 0
			for b.Loop() {
				pdata += turn(b, requests, decodePdata)
				walk += turn(b, requests, decodeWalk)
				turns++
			}
			spans := float64(turns * len(requests) * w.perRequest)
			b.ReportMetric(float64(pdata.Nanoseconds())/spans, "pdata-cpu-ns/span")
			b.ReportMetric(float64(walk.Nanoseconds())/spans, "walk-cpu-ns/span")
			b.ReportMetric(float64(walk)/float64(pdata), "walk/D")
		})
	}
}

// turn decodes all requests, and returns the CPU time that it took the process.
func turn(b *testing.B, requests []Request, decode func([]byte) error) time.Duration {
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
