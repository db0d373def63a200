package batch

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// queueKey is what requests must have in common to be joined.
type queueKey struct {
	tenant   string
	metadata otlpdata.Metadata // the headers in metadata_keys
}

// queue holds the waiting calls with one key. It exists while calls wait, while a batch of it is
// being sent, and until min_interval after the last batch. It is guarded by batcher.mu, which also
// guards the methods of batcher below.
type queue struct {
	queueKey
	calls []*call
	spans int
	sends int       // active sends
	next  time.Time // earliest start of the next batch, unless it is large or the timeout ends
	isDue bool      // in batcher.due
	timer *time.Timer
	wake  time.Time // when timer fires
}

// enqueue adds a call to the queue with its key.
func (p *batcher) enqueue(c *call) {
	q := p.queues[c.key]
	if q == nil {
		q = &queue{queueKey: c.key}
		p.queues[c.key] = q
	}
	q.calls = append(q.calls, c)
	q.spans += c.batch.Len()
	p.update(q)
	p.dispatch()
}

// update makes q due if its calls are to be sent now. Otherwise it sets the timer, or removes a
// queue that is no longer needed. It is called after every change of q.
func (p *batcher) update(q *queue) {
	if q.isDue {
		return
	}
	at := p.dueAt(q)
	now := time.Now()
	switch {
	case at.After(now) && !p.stopping:
		q.setTimer(at, now, func() { p.onTimer(q) })
		return
	case len(q.calls) > 0:
		q.isDue = true
		p.due = append(p.due, q)
	case q.sends == 0:
		delete(p.queues, q.queueKey)
	}
	q.stopTimer()
}

// dueAt returns when to send the calls of q if nothing changes before.
func (p *batcher) dueAt(q *queue) time.Time {
	switch {
	case len(q.calls) == 0:
		return q.next
	case q.spans >= p.config.SendBatchSize:
		return time.Time{}
	case p.config.Timeout == 0:
		return q.next
	}
	until := q.calls[0].until
	if q.sends == 0 && q.next.Before(until) {
		return q.next
	}
	return until
}

func (p *batcher) onTimer(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[q.queueKey] == q {
		p.update(q)
		p.dispatch()
	}
}

func (q *queue) setTimer(at, now time.Time, f func()) {
	if q.timer != nil && q.wake.Equal(at) {
		return
	}
	q.stopTimer()
	q.timer, q.wake = time.AfterFunc(at.Sub(now), f), at
}

func (q *queue) stopTimer() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// takeGroup removes as many calls as may be joined, at least one, and returns them as a group. It
// returns nil if the queue is empty.
func (p *batcher) takeGroup(q *queue) *group {
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
	g := newGroup(p.groupContext(q.calls[:n]), q.calls[:n:n])
	q.calls = q.calls[n:]
	q.spans -= spans
	return g
}

// remove removes a caller whose context has ended from its queue or group. It reports whether the
// spans of the caller have been sent.
func (p *batcher) remove(c *call) (sent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.group != nil {
		c.group.leave()
		return true
	}
	q := p.queues[c.key]
	for i, other := range q.calls {
		if other == c {
			q.calls = append(q.calls[:i:i], q.calls[i+1:]...)
			q.spans -= c.batch.Len()
			p.update(q)
			break
		}
	}
	return false
}
