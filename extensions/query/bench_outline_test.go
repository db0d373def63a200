package query

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/test/bench"
)

var outlineData = flag.String("outline-data", "",
	"data folder of a store, a copy, to which BenchmarkOutline adds its trace; empty for a new one")

// cpuMillis returns the CPU time of the process in milliseconds.
func cpuMillis(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// rest waits until the process is idle: a second after the store was opened, it updates the
// dependencies.
func rest(b *testing.B) {
	for pause := 2 * time.Second; ; pause = 200 * time.Millisecond {
		before := cpuMillis(b)
		time.Sleep(pause)
		if pause < time.Second && cpuMillis(b)-before < 5 {
			return
		}
	}
}

// BenchmarkOutline measures the outline of a trace of 100,000 spans in a segment of the disk store,
// without the network.
func BenchmarkOutline(b *testing.B) {
	const spans = 100_000
	dir := *outlineData
	if dir == "" {
		dir = b.TempDir()
	}
	const target, settings = "/api/ui/v1/outline/1", "reserve: 0, merge: {enabled: false}"
	show := func(o *core.Options) { o.Limits.TraceSize = defaults().MaxTraceSize }
	store, stop := diskStoreIn(b, dir, settings)
	if h, _ := api(b, store, show); querytest.Ask(b, h, http.MethodGet, target).Code == http.StatusNotFound {
		fill(b, store, bench.New(8, querytest.Noon), spans, mergeTraces)
	}
	stop() // writes the segment
	store, stop = diskStoreIn(b, dir, settings)
	defer stop()
	h, _ := api(b, store, show)
	w := querytest.Ask(b, h, http.MethodGet, target)
	if w.Code != http.StatusOK {
		b.Fatalf("%d %s", w.Code, w.Body)
	}
	size := w.Body.Len()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	rest(b)
	b.ReportAllocs()
	before := cpuMillis(b)
	for b.Loop() {
		h.ServeHTTP(querytest.NewDiscard(), r)
	}
	b.ReportMetric((cpuMillis(b)-before)/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(size), "bytes")
}
