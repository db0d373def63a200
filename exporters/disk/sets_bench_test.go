//go:build unix

package disk

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/test/bench"
)

// benchFolder is the environment variable with the folder of a store with spans of the data set. If
// it is not set, benchmarks use a new folder. benchNumber is the number of spans that are written
// to a folder without any, instead of benchSpans.
const benchFolder, benchNumber = "DISK_BENCH_FOLDER", "DISK_BENCH_SPANS"

// benchStore returns a store with spans of the data set in segments.
func benchStore(b *testing.B) *exporter {
	b.Helper()
	s := newSetup(vfs.OS())
	s.config = defaults()
	s.config.Reserve = 0
	if s.config.Directory = os.Getenv(benchFolder); s.config.Directory == "" {
		s.config.Directory = b.TempDir()
	}
	spans := benchSpans()
	if text := os.Getenv(benchNumber); text != "" {
		var err error
		if spans, err = strconv.Atoi(text); err != nil {
			b.Fatalf("%s: %v", benchNumber, err)
		}
	}
	if segmentBytes(b, s.config.Directory) == 0 {
		fillStore(b, s, spans)
	}
	s.config.Merge.Enabled = false
	return s.open(b)
}

// fillStore writes spans of the data set, which begins long enough before now to end before it.
func fillStore(b *testing.B, s *setup, spans int) {
	b.Helper()
	d := bench.New(1, newClock().now())
	past := time.Duration(d.Traces(spans)/bench.TracesPerSecond+1) * time.Second
	e := s.build(b)
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	part := workload{}
	for r := range bench.New(1, newClock().now().Add(-past)).Requests(spans, usualRequest) {
		one, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{Received: newClock().now()}, otlpdata.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if part.batches = append(part.batches, one); len(part.batches) == benchSpans()/usualRequest {
			part.send(b, e)
			part.batches = part.batches[:0]
		}
	}
	part.send(b, e)
	stopStore(b, e)
}

// BenchmarkSpanSets searches for the newest 20 traces, as the list of search results does.
func BenchmarkSpanSets(b *testing.B) {
	e := benchStore(b)
	for name, text := range map[string]string{
		"duration of trace, some":   `{ trace:duration > 500ms }`,
		"duration of trace, none":   `{ trace:duration > 1h && error }`,
		"root and service":          `{ root && service = "partner-gateway" }`,
		"root of another service":   `{ trace:rootService = "partner-gateway" && service = "ledger" }`,
		"descendants":               `{ service = "checkout" } >> { service = "ledger" }`,
		"children":                  `{ service = "checkout" } > { service = "pricing" }`,
		"both":                      `{ service = "checkout" } && { service = "inventory" && error }`,
		"both, one is absent":       `{ service = "checkout" } && { name = "none" }`,
		"descendants of none":       `{ name = "none" } >> { service = "ledger" }`,
		"mixed condition, frequent": `{ error || trace:duration > 500ms }`,
	} {
		q, err := traceql.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			results, scanned, cpu := 0, 0, cpuTime(b)
			for b.Loop() {
				res, err := storequery.Find(b.Context(), e, tracestore.Query{Limit: 20}, q.Set, tracestore.WantSummaries)
				if err != nil {
					b.Fatal(err)
				}
				results = 0
				for _, err := range res.All {
					if err != nil {
						b.Fatal(err)
					}
					results++
				}
				scanned = res.Outcome().Scanned
			}
			b.ReportMetric(float64(results), "traces/op")
			b.ReportMetric(float64(scanned), "scanned/op")
			b.ReportMetric(float64((cpuTime(b)-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
