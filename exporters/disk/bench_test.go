//go:build unix

package disk

import (
	"iter"
	"runtime"
	goruntime "runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/test/bench"
)

// Load of the benchmarks of the store.
const (
	benchSenders = 8
	usualRequest = 512 // spans
)

func benchSpans() int { return bench.Spans(200_000) }

// workload holds requests that are ready to be stored. Their bytes are outside the Go heap, so that
// only the store causes work for the garbage collector.
type workload struct {
	batches []*otlpdata.Batch
	spans   int
	bytes   int
}

func newWorkload(tb testing.TB, requests iter.Seq[bench.Request]) *workload {
	tb.Helper()
	w := new(workload)
	for r := range requests {
		body, err := syscall.Mmap(-1, 0, len(r.Body), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { syscall.Munmap(body) }) //nolint:errcheck // the process ends soon
		copy(body, r.Body)
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{Received: newClock().now()}, otlpdata.Limits{})
		if err != nil {
			tb.Fatal(err)
		}
		w.batches, w.spans, w.bytes = append(w.batches, b), w.spans+r.Spans, w.bytes+len(body)
	}
	return w
}

// cost is the cost of storing a workload, from starting an empty store to stopping it with all
// spans in segments.
type cost struct {
	cpu  time.Duration // of the process
	size int64         // of the segments, in bytes
	heap heapSize      // maximum growth
}

// heapSize is the used part of the heap, in bytes.
type heapSize struct {
	all  int64 // including garbage that is not collected yet
	live int64 // live after the last garbage collection
}

func readHeap() heapSize {
	s := []goruntime.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	goruntime.Read(s)
	return heapSize{int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())}
}

func (h heapSize) max(o heapSize) heapSize { return heapSize{max(h.all, o.all), max(h.live, o.live)} }

// store writes the workload to a store on the real disk with the default configuration, except that
// there is no reserve.
func (w *workload) store(tb testing.TB) cost {
	tb.Helper()
	s := newSetup(vfs.OS())
	s.config = defaults()
	s.config.Directory, s.config.Reserve, s.config.MaxWait = tb.TempDir(), 0, pipeline.Duration(time.Minute)
	e := s.build(tb)
	e.logStep = 0
	runtime.GC()
	heap, before := watchHeap(), cpuTime(tb)
	if err := e.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	w.send(tb, e)
	stopStore(tb, e)
	c := cost{cpu: cpuTime(tb) - before, heap: heap(), size: segmentBytes(tb, s.config.Directory)}
	if kept := int(testutil.ToFloat64(e.metrics.flushedSpans)) + int(testutil.ToFloat64(e.metrics.duplicates)); kept != w.spans {
		tb.Fatalf("segments have %d spans, want %d", kept, w.spans)
	}
	return c
}

func (w *workload) send(tb testing.TB, e *exporter) {
	tb.Helper()
	queue := make(chan *otlpdata.Batch)
	var senders sync.WaitGroup
	for range benchSenders {
		senders.Go(func() {
			for b := range queue {
				if err := e.Consume(tb.Context(), b); err != nil {
					tb.Errorf("Consume: %v", err)
				}
			}
		})
	}
	for _, b := range w.batches {
		queue <- b
	}
	close(queue)
	senders.Wait()
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

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watchHeap samples the size of the heap until the returned function is called, which returns the
// maximum growth.
func watchHeap() (growth func() heapSize) {
	first := readHeap()
	maximum := first
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				maximum = maximum.max(readHeap())
			}
		}
	})
	return func() heapSize {
		close(done)
		watcher.Wait()
		return heapSize{maximum.all - first.all, maximum.live - first.live}
	}
}

// decode decodes the workload to pdata objects and returns the CPU time, as the baseline of servers
// that use pdata.
func (w *workload) decode(tb testing.TB) time.Duration {
	tb.Helper()
	runtime.GC()
	before := cpuTime(tb)
	for _, b := range w.batches {
		encoded, err := b.Encoded()
		if err != nil {
			tb.Fatal(err)
		}
		if err := ptraceotlp.NewExportRequest().UnmarshalProto(encoded); err != nil {
			tb.Fatal(err)
		}
	}
	return cpuTime(tb) - before
}

// BenchmarkStore measures the store alone, from requests to segments, including log and syncs. It
// reports CPU time and segment bytes per span, segment bytes per byte sent, and the maximum growth
// of the heap with and without garbage. "usual" alternates with decoding the same requests to pdata
// (D). Each kind of hostile data alternates with usual data in requests of the same number of
// spans; hostile/usual is the ratio of their CPU time per span, or per byte for large values.
func BenchmarkStore(b *testing.B) {
	d := bench.New(1, newClock().now())
	b.Run("usual", func(b *testing.B) { benchmarkUsual(b, newWorkload(b, d.Requests(benchSpans(), usualRequest))) })
	for _, kind := range bench.HostileKinds() {
		b.Run(kind.String(), func(b *testing.B) {
			spans, perRequest, perUsual := benchSpans(), usualRequest, usualRequest
			switch kind {
			case bench.LargeValues:
				spans, perRequest = 200, 1
			case bench.UniqueResources:
				perRequest, perUsual = 50, 50
			}
			usual := newWorkload(b, d.Requests(benchSpans(), perUsual))
			w := newWorkload(b, d.Hostile(kind, spans, perRequest))
			share := float64(usual.spans) / float64(w.spans)
			if kind == bench.LargeValues {
				share = float64(usual.bytes) / float64(w.bytes)
			}
			benchmarkHostile(b, w, usual, share)
		})
	}
}

func benchmarkUsual(b *testing.B, w *workload) {
	var floor time.Duration
	var sum cost
	for b.Loop() {
		floor += w.decode(b)
		sum.add(w.store(b))
	}
	sum.report(b, w)
	b.ReportMetric(float64(floor.Nanoseconds())/float64(b.N*w.spans), "D-ns/span")
	b.ReportMetric(float64(sum.cpu)/float64(floor), "store/D")
}

// benchmarkHostile compares w with usual. share is the size of usual relative to w.
func benchmarkHostile(b *testing.B, w, usual *workload, share float64) {
	var base, sum cost
	for b.Loop() {
		base.add(usual.store(b))
		sum.add(w.store(b))
	}
	sum.report(b, w)
	b.ReportMetric(share*float64(sum.cpu)/float64(base.cpu), "hostile/usual")
}

func (c *cost) add(o cost) {
	c.cpu, c.size, c.heap = c.cpu+o.cpu, c.size+o.size, c.heap.max(o.heap)
}

// report reports metrics; c is the sum over b.N iterations.
func (c *cost) report(b *testing.B, w *workload) {
	b.Helper()
	spans := float64(b.N * w.spans)
	b.ReportMetric(float64(c.cpu.Nanoseconds())/spans, "cpu-ns/span")
	b.ReportMetric(float64(c.size)/spans, "B/span")
	b.ReportMetric(float64(c.size)/float64(b.N*w.bytes), "B/B-sent")
	b.ReportMetric(float64(c.heap.all)/(1<<20), "heap-MiB")
	b.ReportMetric(float64(c.heap.live)/(1<<20), "live-MiB")
	b.ReportMetric(0, "ns/op")
}
