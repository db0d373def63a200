package disk

import (
	"context"
	"testing"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestRandomSearches executes random searches on this store, with spans in memory, in segments and
// in merged segments, and on the memory store, and compares the answers with the definition.
// Searches that TraceQL can express are formatted and parsed first.
func TestRandomSearches(t *testing.T) {
	soak.SkipIfRaced(t)
	const searches = 500 // per set of spans
	rounds, seed := soak.Rounds(t, 4, 1), soak.Seed(t)
	expressible := 0
	as := func(set storequery.SpanSet) (meant, executed storequery.SpanSet) {
		q, err := traceql.Parse(traceql.Format(set))
		if err != nil {
			return set, set
		}
		expressible++
		return q.Set, parsedAgain(t, q.Set)
	}
	for i := range rounds {
		s := newSetup(vfstest.NewMem())
		s.config.Memtable.MaxSpans = 40
		e := s.start(t)
		merging := &mergingStore{exporter: mergeSetup(vfstest.NewMem()).start(t), tb: t}
		storetest.CheckSpanSets(t, seed+uint64(i), searches, as, e, merging, openMemory(t))
		stopStore(t, e)
		stopStore(t, merging.exporter)
		if merging.merges == 0 {
			t.Error("no segments were merged")
		}
	}
	if expressible < rounds*searches/5 {
		t.Errorf("TraceQL can express %d of %d searches, want at least a fifth", expressible, rounds*searches)
	}
}

// mergingStore flushes after each request, and merges when some segments can still be merged later.
type mergingStore struct {
	*exporter
	tb       testing.TB
	requests int
	merges   int
}

func (s *mergingStore) Consume(ctx context.Context, b *otlpdata.Batch) error {
	err := s.exporter.Consume(ctx, b)
	if s.requests++; s.requests < 14 {
		flushStore(s.tb, s.exporter)
	}
	if s.requests == 9 {
		s.merges += mergeAll(s.tb, s.exporter)
	}
	return err
}

// parsedAgain formats and parses set, and checks that the text stays the same.
func parsedAgain(t *testing.T, set storequery.SpanSet) storequery.SpanSet {
	t.Helper()
	text := traceql.Format(set)
	q, err := traceql.Parse(text)
	if err != nil || traceql.Format(q.Set) != text {
		t.Errorf("%s is parsed as %s, %v", text, traceql.Format(q.Set), err)
	}
	return q.Set
}
