package find

import (
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Traces that are read together come as those that are read one by one, whether they fit into what is read ahead or not.
func TestReadAhead(t *testing.T) {
	for _, pieceBytes := range []int{1, 2 << 10, 64 << 10} {
		w := &scantest.Generator{Rand: rand.New(rand.NewPCG(8, 8))}
		s := openStore(3, 8, scan.Options{PieceBytes: pieceBytes})
		w.Send(t, s, 80)
		results, outcome := s.ask(t, tracestore.Query{}, tracestore.WantFull)
		if !outcome.Complete || len(results) < maxPrefetch {
			t.Fatalf("%d results, %+v", len(results), outcome)
		}
		for _, r := range results {
			if n := countSpans(w, r.ID); r.Spans.Len() != n {
				t.Errorf("pieces of %d bytes: trace %s has %d spans, not %d", pieceBytes, r.ID, r.Spans.Len(), n)
			}
			scantest.Must(tracestore.WalkSpans(r.Spans, func(sp tracestore.Span) error {
				if sp.TraceID != r.ID {
					t.Errorf("trace %s has a span of %s", r.ID, sp.TraceID)
				}
				return nil
			}))
		}
	}
}

// What was read ahead is given out once.
func TestAheadGivesOnce(t *testing.T) {
	var a prefetched
	first, second := otlpdata.TraceID{1}, otlpdata.TraceID{2}
	if a.take(first) != nil {
		t.Error("a trace that was not read")
	}
	a.reset([]otlpdata.TraceID{first, second})
	if a.take(second) == nil || a.take(second) != nil || a.empty() {
		t.Error("the second trace is not given out once")
	}
	if a.take(first) == nil || !a.empty() {
		t.Error("the first trace is not given out")
	}
}
