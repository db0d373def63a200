package clickhouse

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestCursor checks when inserts are published: once, when their number of spans has not changed
// between two reads.
func TestCursor(t *testing.T) {
	c := &cursor{since: 0, seen: map[uint64]insert{1: {stored: 5, spans: 2, done: true}}}
	own := func(batch uint64) bool { return batch == 9 }
	step := func(found map[uint64]insert, want []uint64, wantMissed int) {
		t.Helper()
		ready, missed := c.update(found, own)
		if !slices.Equal(ready, want) || missed != wantMissed {
			t.Errorf("ready %v, %d missed; want %v and %d", ready, missed, want, wantMissed)
		}
		for _, b := range ready {
			in := c.seen[b]
			in.done = true
			c.seen[b] = in
		}
	}
	found := map[uint64]insert{1: {stored: 5, spans: 2}, 2: {stored: 7, spans: 3}, 3: {stored: 6, spans: 1}, 9: {stored: 8, spans: 1}}
	step(found, nil, 0)
	found[2] = insert{stored: 7, spans: 4} // became visible in two parts
	step(found, []uint64{3}, 0)
	step(found, []uint64{2}, 0)
	step(found, nil, 0)
	found[2] = insert{stored: 7, spans: 6} // too late
	step(found, nil, 2)
	step(found, nil, 0)
	large := map[uint64]insert{20: {stored: 100, spans: maxPolledSpans}, 21: {stored: 101, spans: 1}}
	step(large, nil, 0)
	step(large, []uint64{20}, 1)
	step(large, nil, 0)
}

// TestCursorForgets checks that inserts are forgotten when they cannot be found again.
func TestCursorForgets(t *testing.T) {
	c := &cursor{seen: map[uint64]insert{1: {stored: 5, spans: 2, done: true}}}
	at := 10 * pollOverlap.Milliseconds()
	c.update(map[uint64]insert{2: {stored: at, spans: 1}}, func(uint64) bool { return false })
	if _, ok := c.seen[1]; ok || c.since != at-pollOverlap.Milliseconds() || len(c.seen) != 1 {
		t.Errorf("%+v", c)
	}
}

// TestCursorMisses checks that feeds miss the inserts that are too old to be read when they could
// be published.
func TestCursorMisses(t *testing.T) {
	c := &cursor{seen: map[uint64]insert{}}
	own := func(uint64) bool { return false }
	c.update(map[uint64]insert{1: {stored: 5, spans: 2}, 2: {stored: 6, spans: 3}}, own)
	at := 10 * pollOverlap.Milliseconds()
	ready, missed := c.update(map[uint64]insert{1: {stored: 5, spans: 2}, 3: {stored: at, spans: 1}}, own)
	if len(ready) != 0 || missed != 5 || len(c.seen) != 1 {
		t.Errorf("ready %v, %d missed, %+v", ready, missed, c)
	}
}

// TestPublishedUntilError checks that an insert is not republished after an error in the
// middle, that feeds miss the rest of it, and that the next inserts are still to be published.
func TestPublishedUntilError(t *testing.T) {
	for _, c := range []struct {
		err        error
		wantMissed int
	}{{errors.New("timeout"), 2}, {nil, 0}} {
		var hub tracestore.Hub
		feed, err := hub.Follow(t.Context(), "acme", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		cur := &cursor{seen: map[uint64]insert{1: {spans: 2}, 2: {spans: 3}, 3: {spans: 1}}}
		p := published{feeds: &hub, tenant: "acme", cursor: cur}
		for _, insert := range []uint64{1, 1, 2} {
			p.begin(insert)
			p.add(&tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: &otlpdata.Span{}})
		}
		p.end(c.err)
		spans, missed := 0, 0
		for b, n := feed.Take(); b != nil || n > 0; b, n = feed.Take() {
			missed += n
			if b != nil {
				spans += b.Len()
			}
		}
		if spans != 3 || missed != c.wantMissed {
			t.Errorf("error %v: %d spans, %d missed", c.err, spans, missed)
		}
		if !cur.seen[1].done || !cur.seen[2].done || cur.seen[3].done {
			t.Errorf("error %v: %+v", c.err, cur.seen)
		}
		feed.Close()
	}
}

// TestPrefixEnd checks the range of strings with a prefix.
func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "a\xff": "b", "\xff\xff": "", "a\x00": "a\x01", "é": "\xc3\xaa"} {
		got := prefixEnd(prefix)
		if got != want {
			t.Errorf("prefix %q: end %q, want %q", prefix, got, want)
		}
		if got != "" && (prefix >= got || prefix+strings.Repeat("\xff", 3) >= got) {
			t.Errorf("prefix %q: end %q is too early", prefix, got)
		}
	}
	if got := prefixCondition("service", "it's\xff"); got != ` AND service >= 'it\'s\xff' AND service < 'it\'t'` {
		t.Errorf("condition %s", got)
	}
}
