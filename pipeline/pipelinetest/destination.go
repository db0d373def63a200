package pipelinetest

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// destination is the Consumer after the component under test. It decides the outcome of calls, and
// records the outcome of each span by name.
type destination struct {
	read     func(*otlpdata.Batch) ([]named, error)
	mu       sync.Mutex
	answer   func() error  // returns the outcome of the next call; nil accepts
	blocked  chan struct{} // calls wait until it is closed; nil does not block
	entered  int           // number of calls that have begun
	left     int           // number of calls that have ended
	changed  chan struct{} // closed and replaced when a call begins or ends
	accepted map[string][]content
	refusals map[string]error // the last one of each span
	batches  []snapshot
	broken   error // what is wrong with a batch that has arrived
}

var _ pipeline.Consumer = (*destination)(nil)

func newDestination(read func(*otlpdata.Batch) ([]named, error)) *destination {
	return &destination{read: read, changed: make(chan struct{}), accepted: map[string][]content{}, refusals: map[string]error{}}
}

// Consume accepts or refuses the spans of b as decided. With a Partial it rejects the first spans.
func (d *destination) Consume(ctx context.Context, b *otlpdata.Batch) error {
	spans, err := d.read(b)
	if err != nil {
		return d.cannotRead(err)
	}
	before, err := imageOf(b)
	if err != nil {
		return d.cannotRead(err)
	}
	if blocked := d.enter(snapshot{b, before}); blocked != nil {
		select {
		case <-blocked:
		case <-ctx.Done():
			return d.settle(spans, func() error { return ctx.Err() })
		}
	}
	return d.settle(spans, nil)
}

func (d *destination) cannotRead(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = err
	return pipeline.Permanent(err)
}

func (d *destination) enter(s snapshot) (blocked <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.batches = append(d.batches, s)
	d.entered++
	d.notify()
	return d.blocked
}

// notify wakes the goroutines that wait for a change. The caller holds mu.
func (d *destination) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// settle records the outcome of a call. A nil outcome means the decided one.
func (d *destination) settle(spans []named, outcome func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left++
	defer d.notify()
	if outcome == nil {
		outcome = d.answer
	}
	var err error
	if outcome != nil {
		err = outcome()
	}
	refused := 0
	if err != nil {
		refused = len(spans)
		if p := partialOf(err); p != nil {
			refused = min(p.Rejected, len(spans))
		}
	}
	for i, s := range spans {
		if i < refused {
			d.refusals[s.name] = err
			continue
		}
		d.accepted[s.name] = append(d.accepted[s.name], s.content)
	}
	return err
}

// always makes err the outcome of all later calls.
func (d *destination) always(err error) { d.decide(func() error { return err }) }

// decide makes answer determine the outcome of later calls. answer is called with mu held.
func (d *destination) decide(answer func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
}

// block makes calls wait until release is called or their context ends.
func (d *destination) block() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocked = make(chan struct{})
}

func (d *destination) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blocked != nil {
		close(d.blocked)
		d.blocked = nil
	}
}

// await waits until n calls have begun, and returns false after the timeout.
func (d *destination) await(n int, timeout time.Duration) bool {
	return d.awaitCount(&d.entered, n, timeout)
}

// awaitEnd is like await, for calls that have ended.
func (d *destination) awaitEnd(n int, timeout time.Duration) bool {
	return d.awaitCount(&d.left, n, timeout)
}

// awaitCount waits until a count that mu guards has reached n.
func (d *destination) awaitCount(count *int, n int, timeout time.Duration) bool {
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		d.mu.Lock()
		reached, changed := *count >= n, d.changed
		d.mu.Unlock()
		if reached {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}

// arrivals returns the accepted spans by name, and what is wrong with a batch that has arrived.
func (d *destination) arrivals() (map[string][]content, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.accepted), d.broken
}

// refusal returns the last refusal of a span, or nil.
func (d *destination) refusal(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusals[name]
}

// passed returns the batches that have arrived.
func (d *destination) passed() []snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]snapshot(nil), d.batches...)
}
