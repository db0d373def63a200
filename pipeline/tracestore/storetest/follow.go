package storetest

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkFollow follows a store that can be followed, and sends it spans of two tenants.
func checkFollow(s *suite) {
	store, ok := s.store.(tracestore.Follower)
	if !ok {
		return
	}
	const room, requests = 1 << 20, 5
	before := s.sendNumbered("", 1)
	feed, twin, other, narrow := store.Follow("", room), store.Follow("", room), store.Follow("other", room), store.Follow("", 1)
	for _, f := range []*tracestore.Feed{feed, twin, other, narrow} {
		defer f.Close()
	}
	if got, missed := s.taken(feed); len(got) > 0 || missed > 0 {
		s.Errorf("a feed has %d spans and misses %d that were stored before it was asked for, of %d", len(got), missed, len(before))
	}
	var own, others []string
	for i := range uint64(requests) {
		own = append(own, s.sendNumbered("", 2+i)...)
		others = append(others, s.sendNumbered("other", 2+i)...)
	}
	for _, f := range []struct {
		feed   *tracestore.Feed
		want   []string
		missed int
	}{{feed, own, 0}, {twin, own, 0}, {other, others, 0}, {narrow, nil, len(own)}} {
		if got, missed := s.taken(f.feed); !slices.Equal(got, f.want) || missed != f.missed {
			s.Errorf("a feed has %d spans and misses %d, want %d and %d", len(got), missed, len(f.want), f.missed)
		}
	}
	twin.Close()
	again := s.sendNumbered("", 2+requests)
	if got, missed := s.taken(twin); len(got) > 0 || missed > 0 {
		s.Errorf("a closed feed has %d spans and misses %d", len(got), missed)
	}
	if got, _ := s.taken(feed); !slices.Equal(got, again) {
		s.Errorf("a feed has %d spans after another one was closed, want %d", len(got), len(again))
	}
}

// sendNumbered sends a request of two traces with this number, and returns its spans in canonical form.
func (s *suite) sendNumbered(tenant string, n uint64) []string {
	s.Helper()
	r := newRequest("followed")
	r.span(n, 1, "first of "+tenant, base+n)
	r.span(n, 2, "second", base+n+1)
	r.span(1000+n, 3, "third", base+n+2)
	b := s.encode(tenant, r.traces)
	s.consume(b)
	return s.spansOf(b)
}

// taken empties a feed, and checks that the store has the traces that it tells of.
func (s *suite) taken(f *tracestore.Feed) (spans []string, missed int) {
	s.Helper()
	for {
		select {
		case <-f.Ready():
		default:
			return spans, missed
		}
		b, n := f.Take()
		if missed += n; b != nil {
			spans = append(spans, s.spansOf(b)...)
			s.checkTold(b)
		}
	}
}

func (s *suite) spansOf(b *otlpdata.Batch) (spans []string) {
	s.Helper()
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		spans = append(spans, canonical(sp))
		return nil
	})
	if err != nil || len(spans) != b.Len() {
		s.Errorf("a batch of %d spans has %d: %v", b.Len(), len(spans), err)
	}
	return spans
}

func (s *suite) checkTold(b *otlpdata.Batch) {
	s.Helper()
	ids := make(map[otlpdata.TraceID]bool)
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		ids[sp.TraceID] = true
		return nil
	})
	if err != nil {
		s.Errorf("a batch that was told of: %v", err)
	}
	for id := range ids {
		s.checkTraces(b.Meta().Tenant, id)
	}
}
