package tracestore

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Follower is implemented by stores that tell of spans as they are stored.
type Follower interface {
	// Follow returns a feed of all that Consume takes of a tenant from now on. What a feed holds can be read back from the store already.
	// In it may wait batches of together at most room bytes (of otlpdata.Batch.Size, and a little for each): who reads too slowly misses spans, and is told how many,
	// but never holds up Consume. The caller closes the feed.
	Follow(tenant string, room int) *Feed
}

// Hub gives what a store takes to those who follow it. A store embeds one, which makes it a [Follower], and publishes each batch that it
// took. The zero value is ready to use. Safe for concurrent use.
type Hub struct {
	mu    sync.Mutex              // held while the list changes
	feeds atomic.Pointer[[]*Feed] // nil: nobody follows; a list is never changed, but replaced
}

var _ Follower = (*Hub)(nil)

// Follow implements [Follower].
func (h *Hub) Follow(tenant string, room int) *Feed {
	f := &Feed{hub: h, tenant: tenant, room: room, ready: make(chan struct{}, 1)}
	h.change(func(feeds []*Feed) []*Feed { return append(feeds, f) })
	return f
}

// Publish tells those who follow of a batch that can be read back from now on. It waits for none of them, and costs a look at one word of
// memory where there are none.
func (h *Hub) Publish(b *otlpdata.Batch) {
	feeds := h.feeds.Load()
	if feeds == nil {
		return
	}
	for _, f := range *feeds {
		if f.tenant == b.Meta().Tenant {
			f.offer(b)
		}
	}
}

func (h *Hub) change(edit func([]*Feed) []*Feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var feeds []*Feed
	if old := h.feeds.Load(); old != nil {
		feeds = slices.Clone(*old)
	}
	if feeds = edit(feeds); len(feeds) == 0 {
		h.feeds.Store(nil)
		return
	}
	h.feeds.Store(&feeds)
}

// Feed holds batches until they are taken. Safe for concurrent use.
type Feed struct {
	hub    *Hub
	tenant string
	room   int
	ready  chan struct{} // holds a token while there is something to take

	mu      sync.Mutex
	waiting []*otlpdata.Batch // oldest first
	size    int               // bytes of those that wait
	missed  int               // spans, since Take told of some
	closed  bool
}

// Ready receives when there is something to take. Take must be called then, and makes it receive again while there is more.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Take returns the oldest batch that waits, nil if none does, and how many spans found no room since the last call. It does not wait.
func (f *Feed) Take() (b *otlpdata.Batch, missed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, f.missed = f.missed, 0
	if len(f.waiting) == 0 {
		return nil, missed
	}
	b, f.waiting[0] = f.waiting[0], nil
	f.waiting = f.waiting[1:]
	if f.size -= b.Size() + batchCost; len(f.waiting) > 0 {
		f.wake()
	}
	return b, missed
}

// Close ends the feed, and drops what waits in it. It may be called more than once.
func (f *Feed) Close() {
	f.hub.change(func(feeds []*Feed) []*Feed { return slices.DeleteFunc(feeds, func(o *Feed) bool { return o == f }) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.waiting, f.size = true, nil, 0
}

// batchCost is what a batch that waits takes besides its bytes.
const batchCost = 512

// offer lets a batch wait, if there is room.
func (f *Feed) offer(b *otlpdata.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || b.Len() == 0 {
		return
	}
	cost := b.Size() + batchCost
	var kept *otlpdata.Batch
	if f.size+cost <= f.room {
		kept = encodedOnly(b)
	}
	if kept == nil {
		f.missed += b.Len()
	} else {
		f.waiting = append(f.waiting, kept)
		f.size += cost
	}
	f.wake()
}

// encodedOnly returns the batch without the objects that it may hold as well, which Size does not count; nil where it cannot be encoded.
func encodedOnly(b *otlpdata.Batch) *otlpdata.Batch {
	segments, err := b.Segments()
	if err != nil || len(segments) == 0 {
		return nil
	}
	parts := make([]*otlpdata.Batch, len(segments))
	for i, s := range segments {
		parts[i] = otlpdata.FromStored(s, b.Meta())
	}
	parts[0] = otlpdata.FromStored(segments[0], b.Meta(), b.Services()...)
	kept, err := otlpdata.Concat(parts...)
	if err != nil { // of one tenant
		return nil
	}
	return kept
}

// wake makes Ready receive. The caller holds mu.
func (f *Feed) wake() {
	select {
	case f.ready <- struct{}{}:
	default: // it will
	}
}
