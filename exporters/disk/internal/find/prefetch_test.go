package find

import (
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestPrefetch checks that traces that are read together equal those that are read one by one,
// whether they fit into memory or not.
func TestPrefetch(t *testing.T) {
	for _, pieceBytes := range []int{1, 2 << 10, 64 << 10} {
		w := &scantest.Generator{Rand: rand.New(rand.NewPCG(8, 8))}
		s := openStore(3, 8, scan.Options{PieceBytes: pieceBytes})
		w.Send(t, s, 80)
		results, outcome := s.ask(t, tracestore.Query{}, tracestore.WantFull)
		if !outcome.Complete() || len(results) < maxPrefetch {
			t.Fatalf("%d results with outcome %+v; want more than fit into one prefetch", len(results), outcome)
		}
		for _, r := range results {
			if n := countSpans(w, r.ID); r.Spans.Len() != n {
				t.Errorf("pieces of %d bytes: trace %s has %d spans, want %d", pieceBytes, r.ID, r.Spans.Len(), n)
			}
			scantest.Must(tracestore.WalkSpans(r.Spans, func(sp tracestore.Span) error {
				if sp.TraceID != r.ID {
					t.Errorf("result for trace %s has a span of trace %s", r.ID, sp.TraceID)
				}
				return nil
			}))
		}
	}
}

// TestPrefetchedTakenOnce checks that a trace is returned once.
func TestPrefetchedTakenOnce(t *testing.T) {
	var a prefetched
	first, second := otlpdata.TraceID{1}, otlpdata.TraceID{2}
	if a.take(first) != nil {
		t.Error("take returned a trace that was not read")
	}
	a.reset([]otlpdata.TraceID{first, second})
	if a.take(second) == nil || a.take(second) != nil || a.empty() {
		t.Error("take did not return the second trace exactly once")
	}
	if a.take(first) == nil || !a.empty() {
		t.Error("take did not return the first trace")
	}
}
