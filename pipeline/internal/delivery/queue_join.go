package delivery

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// joiner joins batches between a queue and its senders (sending_queue.batch):
//
//	queue.take -> taken -> join: groups by tenant -> ready -> sendJoined
//
// No batch is taken while a complete group waits for a sender, so that a slow next hop fills the
// queue and not the memory. A batch leaves the queue when the outcome of all its spans is known.
type joiner struct {
	edge   *ExporterEdge
	config pipeline.QueueBatchConfig // with defaults
	taken  chan queued
	ready  chan *joinedGroup

	groups map[string]*joinedGroup // incomplete groups by tenant
	order  []*joinedGroup          // the same groups, oldest first
	bytes  int64                   // of all these groups
	tight  bool                    // send these groups when the queue has nothing to add to them
}

// joinedGroup is a list of batches that are sent as one.
type joinedGroup struct {
	tenant string
	parts  []queuedPart
	size   int64 // in units of sizer
	bytes  int64
	due    time.Time
}

// queuedPart is a batch of the queue, or a part of one that is larger than max_size.
type queuedPart struct {
	batch *otlpdata.Batch
	whole *splitItem
}

// splitItem is a batch of the queue whose parts are sent separately. Its outcomes are counted when
// all are known, so that a batch that stays in the queue is not counted as sent.
type splitItem struct {
	item queued

	mu       sync.Mutex
	missing  int // number of outcomes
	outcomes []partOutcome
}

type partOutcome struct {
	batch *otlpdata.Batch
	err   error
}

// maxJoining is the maximum total size of incomplete groups in bytes. Above it, the oldest group is
// sent, so that many tenants cannot fill the memory with small groups.
const maxJoining = 16 << 20

func (e *ExporterEdge) startJoining(ctx context.Context, c pipeline.QueueBatchConfig) {
	j := &joiner{edge: e, config: c, taken: make(chan queued), ready: make(chan *joinedGroup), groups: map[string]*joinedGroup{}}
	e.consumers.Go(j.take)
	e.consumers.Go(j.join)
	for range e.senders {
		e.consumers.Go(func() { j.send(ctx) })
	}
}

// take passes on batches from the queue until it is closed.
func (j *joiner) take() {
	defer close(j.taken)
	for {
		item, ok := j.edge.queue.take()
		if !ok {
			return
		}
		select {
		case j.taken <- item:
		case <-j.edge.stopping:
			return // the batch stays in the queue
		}
	}
}

// join joins batches until there are no more. If the queue is almost full and has nothing to add,
// join sends what it has: callers must not wait, or be refused, until flush_timeout. When the queue
// is stopped, join sends what is left of a queue in memory; the rest of a queue on disk stays
// there.
func (j *joiner) join() {
	defer close(j.ready)
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		if len(j.order) > 0 {
			timer.Reset(time.Until(j.order[0].due))
		}
		select {
		case item, ok := <-j.taken:
			if !ok {
				j.flushAll()
				return
			}
			if !j.add(item) {
				return
			}
		case <-timer.C:
			if len(j.order) > 0 && !j.flush(j.order[0]) {
				return
			}
		case <-j.edge.queue.tight():
			j.tight = true
		case <-j.edge.stopping:
			return
		}
		if j.tight && j.edge.queue.state().requests == 0 {
			j.tight = false
			j.flushAll()
		}
	}
}

func (j *joiner) flushAll() {
	for len(j.order) > 0 && j.flush(j.order[0]) {
	}
}

// add adds a batch to the group of its tenant and sends groups that are complete. It returns false
// if the edge is being stopped.
func (j *joiner) add(item queued) bool {
	parts := []*otlpdata.Batch{item.batch}
	if j.config.MaxSize > 0 && j.sizeOf(item.batch) > j.config.MaxSize {
		parts = j.split(item.batch)
	}
	whole := &splitItem{item: item, missing: len(parts)}
	for _, b := range parts {
		if !j.addPart(queuedPart{b, whole}) {
			return false
		}
	}
	return true
}

// split returns the parts of a batch that is larger than max_size, or the batch itself if parts
// would need too much memory.
func (j *joiner) split(b *otlpdata.Batch) []*otlpdata.Batch {
	limit := int(min(j.config.MaxSize, math.MaxInt))
	spans, bytes := limit, 0
	if j.config.Sizer == queueopt.SizerBytes {
		spans, bytes = 0, limit
	}
	parts, err := b.Split(spans, bytes)
	if err != nil || len(parts) == 0 { // send it as one: that succeeds, or the sender finds the same error
		return []*otlpdata.Batch{b}
	}
	return parts
}

func (j *joiner) addPart(p queuedPart) bool {
	size, tenant := j.sizeOf(p.batch), p.batch.Meta().Tenant
	g := j.groups[tenant]
	if g != nil && j.config.MaxSize > 0 && g.size+size > j.config.MaxSize {
		if !j.flush(g) {
			return false
		}
		g = nil
	}
	if g == nil {
		g = &joinedGroup{tenant: tenant, due: time.Now().Add(j.config.FlushTimeout.Std())}
		j.groups[tenant], j.order = g, append(j.order, g)
	}
	g.parts, g.size, g.bytes = append(g.parts, p), g.size+size, g.bytes+int64(p.batch.Size())
	j.bytes += int64(p.batch.Size())
	if g.size >= j.config.MinSize {
		return j.flush(g)
	}
	for j.bytes > maxJoining && len(j.order) > 0 {
		if !j.flush(j.order[0]) {
			return false
		}
	}
	return true
}

func (j *joiner) sizeOf(b *otlpdata.Batch) int64 {
	if j.config.Sizer == queueopt.SizerBytes {
		return int64(b.Size())
	}
	return int64(b.Len())
}

// flush passes a group to a sender. It returns false if the edge is being stopped.
func (j *joiner) flush(g *joinedGroup) bool {
	delete(j.groups, g.tenant)
	for i := range j.order {
		if j.order[i] == g {
			j.order = append(j.order[:i], j.order[i+1:]...)
			break
		}
	}
	j.bytes -= g.bytes
	select {
	case j.ready <- g:
		return true
	case <-j.edge.stopping:
		return false
	}
}

// send sends groups until there are no more, or until one stays in the queue.
func (j *joiner) send(ctx context.Context) {
	for g := range j.ready {
		if !j.sendGroup(ctx, g) {
			return
		}
	}
}

// sendGroup sends a group as one request, or as smaller requests if it is refused, and settles its
// batches. It returns false if a batch stays in the queue.
func (j *joiner) sendGroup(ctx context.Context, g *joinedGroup) bool {
	batches := make([]*otlpdata.Batch, len(g.parts))
	for i, p := range g.parts {
		batches[i] = p.batch
	}
	rest, kept := g.parts, false
	pipeline.ConsumeJoined(ctx, sendFunc(j.edge.send), batches, func(of []*otlpdata.Batch, err error) {
		parts := rest[:len(of)]
		rest = rest[len(of):]
		err, stays := j.edge.outcomeOf(ctx, err)
		if stays {
			kept = true
			return
		}
		attribute(parts, err, j.edge.settlePart)
	})
	return !kept
}

// sendFunc is a Consumer that sends.
type sendFunc func(context.Context, *otlpdata.Batch) error

// Consume sends b.
func (f sendFunc) Consume(ctx context.Context, b *otlpdata.Batch) error { return f(ctx, b) }

// attribute calls settle with the outcome of each part of a request. If the next hop has accepted
// some spans before the request was given up, it is unknown which, so they are attributed to the
// parts in order.
func attribute(parts []queuedPart, err error, settle func(queuedPart, error)) {
	var u *unfinished
	if !errors.As(err, &u) {
		for _, p := range parts {
			settle(p, err)
		}
		return
	}
	left := u.accepted
	for _, p := range parts {
		accepted := min(left, p.batch.Len())
		left -= accepted
		if accepted == p.batch.Len() {
			settle(p, nil)
		} else {
			settle(p, &unfinished{accepted, err})
		}
	}
}

// settlePart records the outcome of a part. When all parts of a batch have one, they are counted
// and the batch leaves the queue.
func (e *ExporterEdge) settlePart(p queuedPart, err error) {
	w := p.whole
	w.mu.Lock()
	w.outcomes = append(w.outcomes, partOutcome{p.batch, err})
	w.missing--
	complete := w.missing == 0
	w.mu.Unlock()
	if !complete {
		return
	}
	for _, o := range w.outcomes {
		e.settle(o.batch, o.err)
	}
	e.queue.done(w.item)
}
