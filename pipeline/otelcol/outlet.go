package otelcol

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Limits for joining releases into one request.
const (
	maxJoinedTraces = 1024
	maxJoinedSpans  = 8192
)

// outlet passes on spans that components release, so that components do not wait for the next
// consumer. Waiting spans stay reserved, so it needs no limit of its own.
type outlet struct {
	next    pipeline.Consumer
	settled func(spans, bytes int64)
	senders sync.WaitGroup
	ctx     context.Context // of all sends
	cancel  context.CancelFunc

	mu      sync.Mutex
	more    *sync.Cond
	waiting []release
	closed  bool // senders end when nothing waits
	dead    bool // nothing more is sent
}

// release is a set of spans that a component passes on together, with their reserved memory.
type release struct {
	batch *otlpdata.Batch
	bytes int64
}

func newOutlet(next pipeline.Consumer, settled func(spans, bytes int64)) *outlet {
	o := &outlet{next: next, settled: settled}
	o.more = sync.NewCond(&o.mu)
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

func (o *outlet) start() {
	for range runtime.GOMAXPROCS(0) {
		o.senders.Go(func() {
			for batch := o.takeReleases(); batch != nil; batch = o.takeReleases() {
				o.send(batch)
			}
		})
	}
}

// put adds spans. It returns false after stop.
func (o *outlet) put(r release) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return false
	}
	o.waiting = append(o.waiting, r)
	o.more.Signal()
	return true
}

// takeReleases waits for spans and returns as many of one tenant as may be joined, or nil after
// stop.
func (o *outlet) takeReleases() []release {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) == 0 && !o.closed {
		o.more.Wait()
	}
	if len(o.waiting) == 0 || o.dead {
		return nil
	}
	n, spans := 0, 0
	for _, r := range o.waiting[:min(len(o.waiting), maxJoinedTraces)] {
		if n > 0 && (r.batch.Meta().Tenant != o.waiting[0].batch.Meta().Tenant || spans+r.batch.Len() > maxJoinedSpans) {
			break
		}
		n, spans = n+1, spans+r.batch.Len()
	}
	taken := append([]release(nil), o.waiting[:n]...)
	clear(o.waiting[:n]) // allow garbage collection
	o.waiting = o.waiting[n:]
	return taken
}

func (o *outlet) send(releases []release) {
	batches := make([]*otlpdata.Batch, len(releases))
	bytes := make(map[*otlpdata.Batch]int64, len(releases))
	for i, r := range releases {
		batches[i] = r.batch
		bytes[r.batch] = r.bytes
	}
	pipeline.ConsumeJoined(o.ctx, o.next, batches, func(of []*otlpdata.Batch, _ error) {
		for _, b := range of {
			o.settled(int64(b.Len()), bytes[b])
		}
	})
}

// canceledSendWait is how long stop waits for canceled sends to return: an exporter that ignores
// its context must not delay the end of the process.
const canceledSendWait = 5 * time.Second

// stop returns when everything is sent, or soon after ctx ends. It returns the releases whose
// sending has not begun.
func (o *outlet) stop(ctx context.Context) (spans, bytes int64) {
	o.mu.Lock()
	o.closed = true
	o.more.Broadcast()
	o.mu.Unlock()
	stopSending := context.AfterFunc(ctx, func() {
		o.mu.Lock()
		o.dead = true
		o.mu.Unlock()
		o.cancel()
	})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		o.senders.Wait()
	}()
	select {
	case <-sent:
	case <-ctx.Done():
		select {
		case <-sent:
		case <-time.After(canceledSendWait):
		}
	}
	stopSending()
	o.cancel()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
	for _, r := range o.waiting {
		spans, bytes = spans+int64(r.batch.Len()), bytes+r.bytes
	}
	o.waiting = nil
	return spans, bytes
}
