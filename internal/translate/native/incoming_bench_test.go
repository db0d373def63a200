//go:build unix

package native

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkIncoming translates requests of 512 spans from each wire form. It alternates with
// pdata's decoding of the same spans in OTLP (D), so that all measure the same machine state, and
// compares the CPU time of the process. The relevant metrics are the ratios to D.
func BenchmarkIncoming(b *testing.B) {
	const spans, requests = 512, 20
	forms := []string{"D", "compact", "binary", "proto"}
	inputs := map[string][][]byte{}
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(10*spans*requests, spans) {
		if r.Spans < spans || len(inputs["D"]) == requests {
			continue
		}
		post := outgoing(b, r.Body)
		batch := asThrift(decodeRequest(b, post))
		inputs["D"] = append(inputs["D"], r.Body)
		inputs["proto"] = append(inputs["proto"], post)
		inputs["compact"] = append(inputs["compact"], thriftBytes(b, batch, Compact))
		inputs["binary"] = append(inputs["binary"], thriftBytes(b, batch, Binary))
	}
	translate := map[string]func([]byte) error{
		"D":       func(in []byte) error { return ptraceotlp.NewExportRequest().UnmarshalProto(in) },
		"compact": func(in []byte) error { _, err := FromThrift(in, Compact); return err },
		"binary":  func(in []byte) error { _, err := FromThrift(in, Binary); return err },
		"proto":   func(in []byte) error { _, err := FromPostSpans(in, 0); return err },
	}
	spent := map[string]time.Duration{}
	for b.Loop() {
		for _, form := range forms {
			runtime.GC()
			from := cpuTime(b)
			for _, in := range inputs[form] {
				if err := translate[form](in); err != nil {
					b.Fatal(err)
				}
			}
			spent[form] += cpuTime(b) - from
		}
	}
	for _, form := range forms {
		b.ReportMetric(float64(spent[form].Nanoseconds())/float64(b.N*spans*requests), form+"-ns/span")
		b.ReportMetric(testing.AllocsPerRun(10, func() { _ = translate[form](inputs[form][0]) })/spans, form+"-allocs/span")
		if form != "D" {
			b.ReportMetric(float64(spent[form])/float64(spent["D"]), form+"/D")
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
