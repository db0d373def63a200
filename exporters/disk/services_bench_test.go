//go:build unix

package disk

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkManyServices measures searches in a store with as many services as spans.
func BenchmarkManyServices(b *testing.B) {
	const spans = 400_000
	s := newSetup(vfs.OS())
	s.config = defaults()
	s.config.Directory, s.config.Reserve, s.config.MaxWait, s.config.Merge.Enabled = b.TempDir(), 0, pipeline.Duration(time.Minute), false
	e := s.build(b)
	e.logStep = 0
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer stopStore(b, e)
	w := newWorkload(b, bench.New(1, newClock().now()).Hostile(bench.UniqueServices, spans, usualRequest))
	w.send(b, e)
	flushStore(b, e)
	segments := len(e.handles())
	service, _, err := e.Services(b.Context(), "", tracestore.NameQuery{Limit: 1})
	if err != nil || len(service) == 0 {
		b.Fatalf("services: %v, %v", service, err)
	}
	search := func(place tracestore.Place, key, text string) func(*testing.B) {
		return func(b *testing.B) {
			q := everything()
			q.Where = tracestore.Cond{Field: tracestore.Field{Place: place, Key: key}, Op: tracestore.Eq, Value: tracestore.Literal{Text: text}}
			for b.Loop() {
				results, err := e.Find(b.Context(), q, tracestore.WantIDs)
				if err != nil {
					b.Fatal(err)
				}
				for _, err := range results.All {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(segments), "segments")
		}
	}
	b.Run("unknown service", search(tracestore.Service, "", "none"))
	b.Run("one service", search(tracestore.Service, "", service[0]))
	b.Run("attribute", search(tracestore.SpanAttribute, "none", "none"))
}
