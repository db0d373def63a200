package query

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// fill stores the spans of requests after editing them. edit can be nil.
func fill(b *testing.B, store pipeline.Consumer, d *bench.Dataset, spans int, edit func(ptrace.Traces) error) {
	b.Helper()
	for r := range d.Requests(spans, 512) {
		batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		if err == nil && edit != nil {
			batch, err = batch.Edit(edit)
		}
		if err == nil {
			err = store.Consume(b.Context(), batch)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// mergeTraces gives all spans the trace id 1.
func mergeTraces(td ptrace.Traces) error {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				s.SetTraceID(pcommon.TraceID{15: 1})
			}
		}
	}
	return nil
}

// BenchmarkAnswer measures requests for traces without the network, in the handler, the translation
// and the memory store: a search for 20 traces of about 19 spans, and a trace of about 10,000.
func BenchmarkAnswer(b *testing.B) {
	d := bench.New(7, querytest.Noon.Add(-time.Hour))
	store := querytest.Memory(b)
	fill(b, store, d, bench.Spans(50_000), nil)
	fill(b, store, bench.New(8, querytest.Noon.Add(-3*time.Hour)), bench.Spans(10_000), mergeTraces)
	h, _ := api(b, store, func(o *core.Options) {
		o.Limits.TraceSize, o.Limits.Scanned = defaults().MaxTraceSize, defaults().MaxScanned
	})
	for _, c := range []struct{ name, target string }{
		{"search", "/api/traces?limit=20&service=" + d.Services()[0]},
		{"large", "/api/traces/1"},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := querytest.Ask(b, h, http.MethodGet, c.target)
			spans := strings.Count(w.Body.String(), `"spanID"`) - strings.Count(w.Body.String(), `"refType"`)
			r := httptest.NewRequest(http.MethodGet, c.target, nil)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(querytest.NewDiscard(), r)
			}
			runtime.ReadMemStats(&after)
			perSpan := 1 / float64(b.N) / float64(spans)
			b.ReportMetric(float64(b.Elapsed().Microseconds())*perSpan, "us/span")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)*perSpan, "allocs/span")
			b.ReportMetric(float64(spans), "spans")
		})
	}
}

// diskStore returns a disk exporter that runs until the benchmark ends.
func diskStore(b *testing.B) querytest.WritableStore {
	b.Helper()
	store, stop := diskStoreIn(b, b.TempDir(), "reserve: 0")
	b.Cleanup(stop)
	return store
}

// diskStoreIn returns a disk exporter with settings and files in a folder. It runs until stop is
// called.
func diskStoreIn(b *testing.B, dir, settings string) (store querytest.WritableStore, stop func()) {
	b.Helper()
	type config struct {
		Storage pipeline.Ref[querytest.WritableStore] `yaml:"storage" doc:"The store."`
	}
	reader := pipeline.Extension("reader", func() config { return config{} }, func(_ pipeline.Settings, c config) (*int, error) {
		store = c.Storage.Get()
		return nil, nil
	})
	cfg, err := app.Load(app.LoadOptions{
		Factories: []pipeline.Factory{disk.Factory(), reader},
		Presets: []app.Preset{{Name: "bench", YAML: fmt.Appendf(nil, `
exporters: {disk: {%s}}
extensions: {reader: {storage: disk}}
service: {data_dir: %q, extensions: [reader]}
`, settings, dir)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	a, err := app.New(cfg, app.Options{Log: io.Discard})
	if err == nil {
		err = a.Start(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return store, func() {
		if err := a.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}
}

var summarySpans = flag.Int("summary-spans", 300_000, "number of spans that BenchmarkSummaries searches")

// BenchmarkSummaries measures the first search of the web UI, without the network: summaries of the
// newest 20 traces of a service within an hour, from the disk store.
func BenchmarkSummaries(b *testing.B) {
	begin := querytest.Noon.Add(-50 * time.Minute)
	d := bench.New(7, begin)
	store := diskStore(b)
	fill(b, store, d, bench.Spans(*summarySpans), nil)
	h, _ := api(b, store, func(o *core.Options) { o.Limits.Scanned = defaults().MaxScanned })
	const format = "2006-01-02T15:04:05Z"
	target := fmt.Sprintf("/api/v3/trace-summaries?query.serviceName=%s&query.searchDepth=20&query.startTimeMin=%s&query.startTimeMax=%s",
		d.Services()[0], begin.Format(format), begin.Add(time.Hour).Format(format))
	w := querytest.Ask(b, h, http.MethodGet, target)
	if n := strings.Count(w.Body.String(), `"traceId"`); n != 20 {
		b.Fatalf("%d traces: %s", n, w.Body)
	}
	r := httptest.NewRequest(http.MethodGet, target, nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(querytest.NewDiscard(), r)
	}
}
