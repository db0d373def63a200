//go:build unix

package disk

import (
	"os"
	"testing"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/test/bench"
)

// benchFolder is the environment variable with the folder of an existing store with spans of the
// data set. If it is not set, the benchmark writes benchSpans spans to a new store.
const benchFolder = "DISK_BENCH_FOLDER"

// benchStore returns a store with spans of the data set in segments.
func benchStore(b *testing.B) *exporter {
	b.Helper()
	s := newSetup(vfs.OS())
	s.config = defaults()
	s.config.Reserve, s.config.Merge.Enabled = 0, false
	if s.config.Directory = os.Getenv(benchFolder); s.config.Directory != "" {
		return s.open(b)
	}
	s.config.Directory = b.TempDir()
	e := s.open(b)
	newWorkload(b, bench.New(1, newClock().now()).Requests(benchSpans, usualRequest)).send(b, e)
	flushStore(b, e)
	return e
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
