// Package batch is the processor "batch": it joins the requests of concurrent callers into larger ones, and tells each caller what became
// of its own spans.
//
// It holds nothing back while the next part of the pipeline is idle: a request goes straight through as long as fewer than `concurrency`
// sends are under way. Only then do callers wait, and what has gathered by the time a send ends goes out as one. So batches grow with
// the load, and an idle system has no delay. With `timeout` it waits for `send_batch_size` spans, as sinks that want large requests need.
//
//	callers ──▶ queue of their tenant ──▶ group ──Concat──▶ next.Consume
//	   ▲                                                        │
//	   └──────────── the outcome of one's own spans ◀───────────┘
//
// When a joined request is refused for good, its halves are sent, and so on: what one client sent wrong is refused to that client alone.
package batch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Config configures the processor. Sizes are in spans.
type Config struct {
	Timeout           pipeline.Duration `yaml:"timeout" doc:"How long callers may be kept waiting for send_batch_size spans to gather; 0 sends at once what there is."`
	SendBatchSize     int               `yaml:"send_batch_size" doc:"With a timeout: number of spans that are sent without waiting longer."`
	SendBatchMaxSize  int               `yaml:"send_batch_max_size" doc:"Greatest number of spans that requests are joined to; a single larger request is not split."`
	SendBatchMaxBytes pipeline.ByteSize `yaml:"send_batch_max_bytes" doc:"Greatest size that requests are joined to; a single larger request is not split."`
	Concurrency       int               `yaml:"concurrency" doc:"How many sends may be under way at once; 0 is the number of processors."`
}

func defaults() Config {
	// The next hop's gRPC limit is 4 MiB by default.
	return Config{SendBatchSize: 8192, SendBatchMaxSize: 16384, SendBatchMaxBytes: 3 << 20}
}

// Validate checks the sizes.
func (c *Config) Validate() error {
	var errs []error
	if c.SendBatchSize < 1 {
		errs = append(errs, pipeline.BadKey("send_batch_size", "must be above 0, not %d", c.SendBatchSize))
	}
	if c.SendBatchMaxSize < c.SendBatchSize {
		errs = append(errs, pipeline.BadKey("send_batch_max_size", "must be at least send_batch_size (%d), not %d", c.SendBatchSize, c.SendBatchMaxSize))
	}
	if c.SendBatchMaxBytes < 1 {
		errs = append(errs, pipeline.BadKey("send_batch_max_bytes", "must be above 0"))
	}
	if c.Concurrency < 0 {
		errs = append(errs, pipeline.BadKey("concurrency", "must not be below 0"))
	}
	return errors.Join(errs...)
}

// Factory makes processors of type batch.
func Factory() pipeline.Factory {
	return pipeline.Processor("batch", defaults, newBatch).
		Doc("Joins the requests of concurrent callers into larger ones; each caller learns the outcome of its own spans.")
}

// batcher is the processor.
type batcher struct {
	next     pipeline.Consumer
	config   Config
	maxSends int
	life     context.Context    // of all groups
	giveUp   context.CancelFunc // ends it

	mu       sync.Mutex
	sends    int               // under way, those of single requests included
	queues   map[string]*queue // by tenant; only of tenants with waiting callers
	due      []*queue          // queues to be sent from, longest due first
	stopping bool
	idle     chan struct{} // closed when nothing is under way any more; nil unless Stop waits for that
}

var _ pipeline.Stopper = (*batcher)(nil)

func newBatch(_ pipeline.Settings, c Config, next pipeline.Consumer) (*batcher, error) {
	if c.Concurrency == 0 {
		c.Concurrency = runtime.GOMAXPROCS(0)
	}
	p := &batcher{next: next, config: c, maxSends: c.Concurrency, queues: map[string]*queue{}}
	p.life, p.giveUp = context.WithCancel(context.Background())
	return p, nil
}

// queue is the callers of one tenant that wait to be sent.
type queue struct {
	tenant string
	calls  []*call
	spans  int
	isDue  bool
	timer  *time.Timer
}

// call is one Consume that waits.
type call struct {
	batch   *otlpdata.Batch
	until   time.Time  // when it has waited long enough for others; only with a timeout
	outcome chan error // of capacity 1
	group   *group     // once it is being sent; guarded by batcher.mu
}

// Consume sends b on, alone or joined with others, and returns what became of it. A caller whose ctx ends while it waits returns at once;
// its spans are not sent any more, or, if they are under way, their outcome is not known to it.
func (p *batcher) Consume(ctx context.Context, b *otlpdata.Batch) error {
	p.mu.Lock()
	if p.config.Timeout == 0 && p.sends < p.maxSends {
		p.sends++
		p.mu.Unlock()
		defer p.sent()
		return p.next.Consume(ctx, b)
	}
	c := &call{batch: b, outcome: make(chan error, 1)}
	if p.config.Timeout > 0 {
		c.until = time.Now().Add(p.config.Timeout.Std())
	}
	p.enqueue(c)
	p.mu.Unlock()
	return p.await(ctx, c)
}

// await returns the outcome of c, or the end of ctx if that is all that is known.
func (p *batcher) await(ctx context.Context, c *call) error {
	select {
	case err := <-c.outcome:
		return err
	case <-ctx.Done():
		p.abandon(c)
	}
	select {
	case err := <-c.outcome: // it came at the same moment, and is the better answer
		return err
	default:
		return ctx.Err()
	}
}

// sent frees the place of a send and fills it again.
func (p *batcher) sent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends--
	p.dispatch()
	if p.sends == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

func (p *batcher) enqueue(c *call) {
	tenant := c.batch.Meta().Tenant
	q := p.queues[tenant]
	if q == nil {
		q = &queue{tenant: tenant}
		p.queues[tenant] = q
	}
	q.calls = append(q.calls, c)
	q.spans += c.batch.Len()
	switch {
	case q.isDue:
	case p.config.Timeout == 0 || p.stopping || q.spans >= p.config.SendBatchSize:
		p.makeDue(q)
	case q.timer == nil:
		p.wait(q)
	}
	p.dispatch()
}

// wait makes a queue due when its first caller has waited long enough.
func (p *batcher) wait(q *queue) {
	q.timer = time.AfterFunc(time.Until(q.calls[0].until), func() { p.expired(q) })
}

// expired ends the waiting of a queue.
func (p *batcher) expired(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[q.tenant] == q && !q.isDue {
		p.makeDue(q)
		p.dispatch()
	}
}

func (p *batcher) makeDue(q *queue) {
	q.isDue = true
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	p.due = append(p.due, q)
}

// dispatch begins as many sends as there are places for. Tenants take turns.
func (p *batcher) dispatch() {
	for p.sends < p.maxSends && len(p.due) > 0 {
		q := p.due[0]
		p.due[0] = nil // the array behind due must not keep it
		p.due = p.due[1:]
		g := p.take(q)
		if len(q.calls) > 0 {
			p.requeue(q)
		} else {
			delete(p.queues, q.tenant)
		}
		if g == nil {
			continue
		}
		p.sends++
		go func() {
			defer p.sent()
			g.send(p.next)
		}()
	}
}

// requeue puts a queue back that was not emptied: at the end when it is due again, else to wait for more.
func (p *batcher) requeue(q *queue) {
	q.isDue = false
	if p.config.Timeout == 0 || p.stopping || q.spans >= p.config.SendBatchSize {
		p.makeDue(q)
		return
	}
	p.wait(q)
}

// take removes as many calls as may be joined, at least one, and returns them as a group; nil when all callers have left.
func (p *batcher) take(q *queue) *group {
	var spans, bytes, n int
	for _, c := range q.calls {
		size := c.batch.Size()
		if n > 0 && (spans+c.batch.Len() > p.config.SendBatchMaxSize || bytes+size > int(p.config.SendBatchMaxBytes)) {
			break
		}
		n++
		spans += c.batch.Len()
		bytes += size
	}
	if n == 0 {
		return nil
	}
	g := newGroup(p.life, q.calls[:n:n])
	q.calls = q.calls[n:]
	q.spans -= spans
	return g
}

// abandon forgets a caller that has left: it is taken out of its queue, or counted off its group.
func (p *batcher) abandon(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.group != nil {
		c.group.leave()
		return
	}
	q := p.queues[c.batch.Meta().Tenant]
	for i, other := range q.calls {
		if other == c {
			q.calls = append(q.calls[:i:i], q.calls[i+1:]...)
			q.spans -= c.batch.Len()
			return
		}
	}
}

// Stop sends what is waiting, without waiting for more, and returns when all of it has its outcome. When ctx ends first, it gives up what is
// under way.
func (p *batcher) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	for _, q := range p.queues {
		if !q.isDue {
			p.makeDue(q)
		}
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
		p.giveUp()
		return ctx.Err()
	}
}
