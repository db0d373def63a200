package query

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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
// dependencies. With -short, the results do not matter.
func rest(b *testing.B) {
	for pause := 2 * time.Second; !testing.Short(); pause = 200 * time.Millisecond {
		before := cpuMillis(b)
		time.Sleep(pause)
		if pause < time.Second && cpuMillis(b)-before < 5 {
			return
		}
	}
}

// BenchmarkOutline measures what a page asks about a trace of 100,000 spans in a segment of the
// disk store, without the network: the outline, also if the page has it already, one span in full,
// and searches in the trace.
func BenchmarkOutline(b *testing.B) {
	spans := bench.Spans(100_000)
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
	var answer struct {
		Data struct{ Columns struct{ ID []byte } }
	}
	w := querytest.Ask(b, h, http.MethodGet, target)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Data.Columns.ID) < 8*spans {
		b.Fatalf("%d %.300s: %v", w.Code, w.Body, err)
	}
	for _, c := range []struct{ name, target string }{
		{"whole", target},
		{"unchanged", target + "?since=" + strings.Trim(w.Header().Get("ETag"), `W/"`)},
		{"span", target + "/spans?ids=" + hex.EncodeToString(answer.Data.Columns.ID[4*spans:4*spans+8])},
		{"text", target + "/find?q=timeout"},
		{"search", target + "/find?q=" + url.QueryEscape(`{ status = error && duration > 1ms }`)},
		{"structure", target + "/find?q=" + url.QueryEscape(`{ kind = server } >> { status = error }`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := querytest.Ask(b, h, http.MethodGet, c.target)
			if w.Code != http.StatusOK && w.Code != http.StatusNotModified {
				b.Fatalf("%d %s", w.Code, w.Body)
			}
			var zipped bytes.Buffer
			z := gzip.NewWriter(&zipped)
			if _, err := z.Write(w.Body.Bytes()); err != nil || z.Close() != nil {
				b.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, c.target, nil)
			rest(b)
			b.ReportAllocs()
			before := cpuMillis(b)
			for b.Loop() {
				h.ServeHTTP(querytest.NewDiscard(), r)
			}
			b.ReportMetric((cpuMillis(b)-before)/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(w.Body.Len()), "bytes")
			b.ReportMetric(float64(zipped.Len()), "gzip-bytes")
		})
	}
}
