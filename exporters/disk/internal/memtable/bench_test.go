package memtable

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// benchSpans is the number of spans that a benchmark writes before it starts a new table.
func benchSpans() int { return bench.Spans(300_000) }

func benchBatches(tb testing.TB, spans, perRequest int) []*otlpdata.Batch {
	tb.Helper()
	var out []*otlpdata.Batch
	for r := range bench.New(7, time.Unix(1_800_000_000, 0)).Requests(spans, perRequest) {
		out = append(out, batchOf(tb, r.Body, ""))
	}
	return out
}

func batchOf(tb testing.TB, body []byte, tenant string) *otlpdata.Batch {
	tb.Helper()
	b, err := otlpdata.FromOTLP(body, otlpdata.Meta{Tenant: tenant, Received: time.Unix(1_800_000_000, 0)}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name       string
		perRequest int
	}{{"512", 512}, {"100", 100}} {
		b.Run(c.name, func(b *testing.B) { benchmarkAppend(b, benchBatches(b, benchSpans(), c.perRequest)) })
	}
}

func benchmarkAppend(b *testing.B, batches []*otlpdata.Batch) {
	pool := NewPool(0, 0)
	t := New(Options{Pool: pool})
	spans, bytes, i := 0, 0, 0
	b.ReportAllocs()
	cpu := cpuTime(b)
	for b.Loop() {
		if i == len(batches) {
			t.Release()
			t, i = New(Options{Pool: pool}), 0
		}
		r, err := t.Append(batches[i], 0)
		if err != nil {
			b.Fatal(err)
		}
		spans, bytes, i = spans+r.Spans, bytes+sizeOf(r), i+1
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(spans), "ns/span")
	b.ReportMetric(float64(bytes)/float64(spans), "B/span")
}

type nopVisitor struct{}

func (nopVisitor) Resource(*otlpdata.Resource) error { return nil }
func (nopVisitor) Scope(*otlpdata.Scope) error       { return nil }
func (nopVisitor) Span(*otlpdata.Span) error         { return nil }

func BenchmarkWalk(b *testing.B) {
	batches := benchBatches(b, benchSpans(), 512)
	spans, i, cpu := 0, 0, cpuTime(b)
	for b.Loop() {
		batch := batches[i%len(batches)]
		if err := batch.Walk(nopVisitor{}); err != nil {
			b.Fatal(err)
		}
		spans, i = spans+batch.Len(), i+1
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(spans), "ns/span")
}

// BenchmarkHostile reports the CPU time of hostile spans as a multiple of the time of ordinary
// spans, which are written alternately in the same run. "none" are the spans of the bench data set.
func BenchmarkHostile(b *testing.B) {
	const perRequest = 500
	spans := bench.Spans(50_000)
	usual := hostile(b, spans/perRequest, perRequest, attacks()["none"])
	for _, name := range slices.Sorted(maps.Keys(attacks())) {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			batches := hostile(b, spans/perRequest, perRequest, attacks()[name])
			if name == "none" {
				batches = benchBatches(b, spans, perRequest)
			}
			var base, cost time.Duration
			for b.Loop() {
				base += appendAll(b, usual)
				cost += appendAll(b, batches)
			}
			b.ReportMetric(float64(base)/float64(b.N*spans), "usual-ns/span")
			b.ReportMetric(float64(cost)/float64(b.N*spans), "ns/span")
			b.ReportMetric(float64(cost)/float64(base), "ratio")
		})
	}
}

// appendAll writes batches, starting a new table when one is full, and returns the CPU time used.
func appendAll(b *testing.B, batches []*otlpdata.Batch) time.Duration {
	b.Helper()
	runtime.GC()
	before := cpuTime(b)
	t := New(Options{})
	for _, batch := range batches {
		if _, err := t.Append(batch, 0); err != nil {
			b.Fatal(err)
		}
		if t.Full() {
			t.Release()
			t = New(Options{Pool: t.options.Pool})
		}
	}
	return cpuTime(b) - before
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
