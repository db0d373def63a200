// Package batch implements the `batch` processor. It joins the requests of concurrent callers into
// larger ones and returns to each caller the outcome of its own spans.
//
// A request passes through without delay as long as fewer than `concurrency` sends are active.
// Otherwise callers wait, and all waiting requests are sent as one when a send finishes. So the
// size of batches grows with the load, and an idle pipeline adds no delay.
//
// No caller waits for spans that may arrive later: `timeout` makes callers wait for the end of
// active sends of their queue, not for further callers, so that a client that sends one request
// after another gets each response as soon as its spans are sent. `min_interval` spaces out the
// batches of a queue, for destinations that need few requests.
//
//	callers ──▶ queue per tenant ──▶ group ──Concat──▶ next.Consume
//	   ▲                                                   │
//	   └──────────── outcome of the own spans ◀────────────┘
//
// With `metadata_keys`, there is a queue for each tenant and each combination of values of these
// request headers.
//
// If a joined request fails permanently, its halves are sent separately, and so on, so that only
// the caller with invalid spans gets the error.
package batch

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// Factory returns the factory of processors of type batch.
func Factory() pipeline.Factory {
	return pipeline.Processor("batch", defaults, newBatch).Logs().
		Doc("Joins concurrent requests into larger batches. Each client still gets the result for its own spans or log records.")
}

// batcher implements the processor.
type batcher struct {
	next     pipeline.Consumer
	tracer   *selftrace.Tracer
	config   Config
	metadata *metadata // nil without metadata_keys
	maxSends int
	ctx      context.Context    // parent of the contexts of all groups
	cancel   context.CancelFunc // cancels ctx

	mu       sync.Mutex
	sends    int                 // active sends, including sends of single requests
	queues   map[queueKey]*queue // see queue
	due      []*queue            // queues that are ready to be sent, in order
	stopping bool
	idle     chan struct{} // closed when sends becomes 0; nil unless Stop is waiting
}

var _ pipeline.Stopper = (*batcher)(nil)

func newBatch(set pipeline.Settings, c Config, next pipeline.Consumer) (*batcher, error) {
	if c.Concurrency == 0 {
		c.Concurrency = runtime.GOMAXPROCS(0)
	}
	p := &batcher{next: next, tracer: set.Tracer, config: c, metadata: newMetadata(&c), maxSends: c.Concurrency, queues: map[queueKey]*queue{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// call is a waiting call of Consume.
type call struct {
	key     queueKey
	batch   *otlpdata.Batch
	until   time.Time // end of the timeout; zero without a timeout
	caller  context.Context
	outcome chan error // of capacity 1
	group   *group     // nil until it is being sent; guarded by batcher.mu
}

// Consume sends b, alone or joined with other batches, and returns its outcome. If ctx ends first,
// Consume returns its cause: the spans are not sent, or they are being sent with an unknown
// outcome.
func (p *batcher) Consume(ctx context.Context, b *otlpdata.Batch) error {
	var headers otlpdata.Metadata
	if p.metadata != nil {
		var err error
		if b, headers, err = p.metadata.keep(b); err != nil {
			return err
		}
	}
	p.mu.Lock()
	if p.config.Timeout == 0 && p.config.MinInterval == 0 && p.sends < p.maxSends {
		p.sends++
		p.mu.Unlock()
		defer p.sendDone(nil)
		return p.next.Consume(ctx, b)
	}
	c := &call{key: queueKey{b.Meta().Tenant, headers}, batch: b, caller: ctx, outcome: make(chan error, 1)}
	if p.config.Timeout > 0 {
		c.until = time.Now().Add(min(p.config.Timeout.Std(), maxDelay))
	}
	p.enqueue(c)
	p.mu.Unlock()
	return p.await(ctx, c)
}

// await returns the outcome of c, or the cause of the end of ctx if the outcome is unknown.
func (p *batcher) await(ctx context.Context, c *call) error {
	select {
	case err := <-c.outcome:
		return err
	case <-ctx.Done():
	}
	sent := p.remove(c)
	select {
	case err := <-c.outcome: // prefer the outcome if both are ready
		return err
	default:
	}
	if sent {
		return fmt.Errorf("batch was sent and has no result yet: %w", context.Cause(ctx))
	}
	return fmt.Errorf("batch was not sent while others are being sent: %w", context.Cause(ctx))
}

// sendDone ends an active send and starts the next. q is nil for a request that did not wait.
func (p *batcher) sendDone(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends--
	if q != nil {
		q.sends--
		p.update(q)
	}
	p.dispatch()
	if p.sends == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// dispatch starts sends up to the maximum. It serves the queues in turn. The caller holds p.mu.
func (p *batcher) dispatch() {
	for p.sends < p.maxSends && len(p.due) > 0 {
		q := p.due[0]
		p.due[0] = nil // allow garbage collection
		p.due = p.due[1:]
		q.isDue = false
		if g := p.takeGroup(q); g != nil {
			p.sends++
			q.sends++
			q.next = time.Now().Add(p.config.MinInterval.Std())
			go func() {
				defer p.sendDone(q)
				g.send(p.next)
			}()
		}
		p.update(q)
	}
}

// groupContext returns the parent of the context of a group: spans about the group link to the
// spans of its callers.
func (p *batcher) groupContext(calls []*call) context.Context {
	if !p.tracer.On() {
		return p.ctx
	}
	callers := make([]context.Context, len(calls))
	for i, c := range calls {
		callers[i] = c.caller
	}
	return selftrace.WithLinks(p.ctx, callers...)
}

// Stop sends all waiting requests and returns when every request has its outcome. If ctx ends
// first, it cancels active sends.
func (p *batcher) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	for _, q := range p.queues {
		p.update(q)
	}
	p.dispatch()
	idle := make(chan struct{})
	if p.sends == 0 {
		close(idle)
	} else {
		p.idle = idle
	}
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		p.cancel()
		return ctx.Err()
	}
}
