package tracestore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Follower is implemented by stores that stream spans as they are stored.
type Follower interface {
	// Follow returns a feed of the batches that Consume stores for a tenant from now on. A batch in
	// the feed can already be read from the store. The feed buffers at most capacity bytes
	// (otlpdata.Batch.Size plus a small overhead for each batch). A feed never delays Consume: a
	// slow reader misses batches, and the feed counts their spans. The caller must close the feed.
	//
	// ctx limits how long Follow may take to reach a store in another process. The feed stays open
	// after ctx has ended.
	Follow(ctx context.Context, tenant string, capacity int) (*Feed, error)
}

// Hub distributes the batches that a store accepts to its followers. A store that holds a Hub
// publishes each stored batch to it, and implements [Follower] with its Follow method. The zero
// value is ready to use. A Hub is safe for concurrent use.
type Hub struct {
	mu    sync.Mutex              // held while the list changes
	feeds atomic.Pointer[[]*Feed] // nil: no feed is open; a list is replaced and never modified
}

var _ Follower = (*Hub)(nil)

// Follow implements [Follower].
func (h *Hub) Follow(_ context.Context, tenant string, capacity int) (*Feed, error) {
	var f *Feed
	f = NewFeed(tenant, capacity, func() {
		h.change(func(feeds []*Feed) []*Feed { return slices.DeleteFunc(feeds, func(o *Feed) bool { return o == f }) })
	})
	h.change(func(feeds []*Feed) []*Feed { return append(feeds, f) })
	return f, nil
}

// Publish adds a batch, which must be readable from the store, to the feeds of its tenant. It never
// blocks on a reader. Without feeds it costs one atomic load.
func (h *Hub) Publish(b *otlpdata.Batch) {
	feeds := h.feeds.Load()
	if feeds == nil {
		return
	}
	for _, f := range *feeds {
		if f.tenant == b.Meta().Tenant {
			f.Offer(b)
		}
	}
}

// Miss counts spans that the feeds of a tenant missed before they could be published.
func (h *Hub) Miss(tenant string, spans int) {
	feeds := h.feeds.Load()
	if feeds == nil {
		return
	}
	for _, f := range *feeds {
		if f.tenant == tenant {
			f.Miss(spans)
		}
	}
}

// Tenants returns the tenants with open feeds, without duplicates, in any order.
func (h *Hub) Tenants() (tenants []string) {
	feeds := h.feeds.Load()
	if feeds == nil {
		return nil
	}
	for _, f := range *feeds {
		if !slices.Contains(tenants, f.tenant) {
			tenants = append(tenants, f.tenant)
		}
	}
	return tenants
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

// Feed buffers batches until they are taken. Safe for concurrent use.
type Feed struct {
	tenant   string
	capacity int           // bytes
	ready    chan struct{} // holds a token while Take or Err has news
	onClose  func()

	mu       sync.Mutex
	buffered []*otlpdata.Batch // oldest first
	size     int               // bytes of the buffered batches
	missed   int               // spans missed since the last Take
	closed   bool
	ended    error // why the feed gets no more batches; nil while it may
}

// NewFeed returns an open feed for the batches of a tenant; see [Follower]. Close calls onClose.
func NewFeed(tenant string, capacity int, onClose func()) *Feed {
	return &Feed{tenant: tenant, capacity: capacity, onClose: onClose, ready: make(chan struct{}, 1)}
}

// Ready returns a channel that receives a value when there is something to take and when the feed
// ends. After each value, the receiver must call Take and then Err. If there is more to take, the
// channel receives another value.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Take returns the oldest buffered batch, or nil if there is none, and the number of spans missed
// since the last call because the buffer was full. It does not block.
func (f *Feed) Take() (b *otlpdata.Batch, missed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, f.missed = f.missed, 0
	if len(f.buffered) == 0 {
		return nil, missed
	}
	b, f.buffered[0] = f.buffered[0], nil
	f.buffered = f.buffered[1:]
	if f.size -= b.Size() + batchCost; len(f.buffered) > 0 || f.ended != nil {
		f.wake()
	}
	return b, missed
}

// Err returns why the feed gets no more batches, for example because the connection to a store in
// another process failed. It returns nil while there may be more batches or something to take.
func (f *Feed) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.buffered) > 0 || f.missed > 0 {
		return nil
	}
	return f.ended
}

// Close ends the feed and drops its buffered batches. It may be called more than once.
func (f *Feed) Close() {
	f.onClose()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.buffered, f.size = true, nil, 0
}

// batchCost is the overhead of a buffered batch in bytes.
const batchCost = 512

// End ends the feed, which keeps its buffered batches. Err then returns err, which must not be nil.
func (f *Feed) End(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = err
	f.wake()
}

// Miss counts spans that were missed before they could be offered.
func (f *Feed) Miss(spans int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || spans <= 0 {
		return
	}
	f.missed += spans
	f.wake()
}

// Offer buffers a batch, or counts its spans as missed if it exceeds the capacity.
func (f *Feed) Offer(b *otlpdata.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || b.Len() == 0 {
		return
	}
	cost := b.Size() + batchCost
	var kept *otlpdata.Batch
	if f.size+cost <= f.capacity {
		kept, _ = b.WithoutObjects() // which Size does not count
	}
	if kept == nil { // too large, or cannot be encoded
		f.missed += b.Len()
	} else {
		f.buffered = append(f.buffered, kept)
		f.size += cost
	}
	f.wake()
}

// wake puts a token into the ready channel. The caller holds mu.
func (f *Feed) wake() {
	select {
	case f.ready <- struct{}{}:
	default: // it has one already
	}
}
