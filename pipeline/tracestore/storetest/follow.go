package storetest

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkFollow checks feeds of two tenants.
func checkFollow(s *suite) {
	if _, ok := optional[tracestore.Follower](s, s.store); !ok {
		return
	}
	const capacity, requests = 1 << 20, 5
	before := s.sendTracePair("", 1)
	feed, second := s.follow("", capacity), s.follow("", capacity)
	other, tiny := s.follow("other", capacity), s.follow("", 1)
	for _, f := range []*tracestore.Feed{feed, second, other, tiny} {
		defer f.Close()
	}
	if got, missed := s.drainFeed(feed, 0); len(got) > 0 || missed > 0 {
		s.Errorf("new feed: %d spans, %d missed, although the %d spans were stored before", len(got), missed, len(before))
	}
	var own, others []string
	for i := range uint64(requests) {
		own = append(own, s.sendTracePair("", 2+i)...)
		others = append(others, s.sendTracePair("other", 2+i)...)
	}
	for _, f := range []struct {
		feed   *tracestore.Feed
		want   []string
		missed int
	}{{feed, own, 0}, {second, own, 0}, {other, others, 0}, {tiny, nil, len(own)}} {
		if got, missed := s.drainFeed(f.feed, len(f.want)+f.missed); !sameElements(got, f.want) || missed != f.missed {
			s.Errorf("feed: %d spans, %d missed, want %d and %d", len(got), missed, len(f.want), f.missed)
		}
	}
	second.Close()
	again := s.sendTracePair("", 2+requests)
	if got, missed := s.drainFeed(second, 0); len(got) > 0 || missed > 0 {
		s.Errorf("closed feed: %d spans, %d missed, want none", len(got), missed)
	}
	if got, _ := s.drainFeed(feed, len(again)); !sameElements(got, again) {
		s.Errorf("feed: %d spans after another feed was closed, want %d", len(got), len(again))
	}
}

// sameElements reports whether two lists differ at most in their order: traces that were sent
// together may be stored in several places.
func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (s *suite) follow(tenant string, capacity int) *tracestore.Feed {
	s.Helper()
	store, _ := optional[tracestore.Follower](s, s.store)
	f, err := store.Follow(s.ctx, tenant, capacity)
	if err != nil {
		s.Fatalf("Follow: %v", err)
	}
	return f
}

// sendTracePair sends a request with two traces numbered n and 1000+n, and returns its spans in
// canonical form.
func (s *suite) sendTracePair(tenant string, n uint64) []string {
	s.Helper()
	r := newRequest("followed")
	r.span(n, 1, "first of "+tenant, base+n)
	r.span(n, 2, "second", base+n+1)
	r.span(1000+n, 3, "third", base+n+2)
	b := s.encode(tenant, r.traces)
	s.consume(b)
	return s.spansOf(b)
}

// drainFeed takes everything from a feed and checks that the store returns these traces. It waits
// until the feed has delivered or missed a number of spans.
func (s *suite) drainFeed(f *tracestore.Feed, want int) (spans []string, missed int) {
	s.Helper()
	late := time.After(s.patience)
	for {
		select {
		case <-f.Ready():
		default:
			if len(spans)+missed >= want {
				return spans, missed
			}
			select {
			case <-f.Ready():
			case <-late:
				return spans, missed
			}
		}
		b, n := f.Take()
		if missed += n; b != nil {
			spans = append(spans, s.spansOf(b)...)
			s.checkStoredBatch(b)
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
		s.Errorf("batch with Len %d has %d spans: %v", b.Len(), len(spans), err)
	}
	return spans
}

func (s *suite) checkStoredBatch(b *otlpdata.Batch) {
	s.Helper()
	ids := make(map[otlpdata.TraceID]bool)
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		ids[sp.TraceID] = true
		return nil
	})
	if err != nil {
		s.Errorf("batch from a feed: %v", err)
	}
	for id := range ids {
		s.checkTraces(b.Meta().Tenant, id)
	}
}
