package disk

import (
	"testing"

	"github.com/tracing-backend/tracing/internal/soak"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestRandomSearches asks random searches of a store with spans in memory and in segments, and of
// the memory store, and compares the answers with the definition. Those that the language has words
// for are written down and read again before.
func TestRandomSearches(t *testing.T) {
	const searches = 500 // of the same spans
	rounds, seed := soak.Rounds(t, 4, 1), soak.Seed(t)
	written := 0
	as := func(set storequery.SpanSet) (meant, asked storequery.SpanSet) {
		q, err := traceql.Parse(traceql.Format(set))
		if err != nil {
			return set, set
		}
		written++
		return q.Set, writtenDown(t, q.Set)
	}
	for i := range rounds {
		s := small(vfstest.NewMem())
		s.config.Memtable.MaxSpans = 40
		e := s.start(t)
		storetest.CheckSpanSets(t, seed+uint64(i), searches, as, e, openMemory(t))
		stopStore(t, e)
	}
	if written < rounds*searches/3 {
		t.Errorf("%d of %d searches can be written down", written, rounds*searches)
	}
}

// writtenDown returns what is read of a set when it is written down.
func writtenDown(t *testing.T, set storequery.SpanSet) storequery.SpanSet {
	t.Helper()
	text := traceql.Format(set)
	q, err := traceql.Parse(text)
	if err != nil || traceql.Format(q.Set) != text {
		t.Errorf("%s is read as %s, %v", text, traceql.Format(q.Set), err)
	}
	return q.Set
}
