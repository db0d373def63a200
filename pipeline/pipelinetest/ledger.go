package pipelinetest

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ledger is what stands behind the component under test. It decides the answers, and writes down what became of each span, by name.
type ledger struct {
	mu       sync.Mutex
	answer   func() error  // of the next call; nil: yes
	gate     chan struct{} // calls wait until it is closed; nil: they do not
	entered  int           // calls that have begun
	left     int           // calls that have ended
	changed  chan struct{} // closed and replaced whenever a call begins or ends
	taken    map[string]int
	refusals map[string]error // the last one
	metas    map[string]otlpdata.Meta
	kept     []kept
	broken   error // a batch could not be read
}

var _ pipeline.Consumer = (*ledger)(nil)

func newLedger() *ledger {
	return &ledger{changed: make(chan struct{}), taken: map[string]int{}, refusals: map[string]error{}, metas: map[string]otlpdata.Meta{}}
}

// Consume takes or refuses all spans of b as was decided. Of a Partial it refuses the first ones.
func (l *ledger) Consume(ctx context.Context, b *otlpdata.Batch) error {
	names, err := namesIn(b)
	if err != nil {
		return l.cannotRead(err)
	}
	before, err := imageOf(b)
	if err != nil {
		return l.cannotRead(err)
	}
	if gate := l.enter(kept{b, before}); gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return l.settle(b.Meta(), names, func() error { return ctx.Err() })
		}
	}
	return l.settle(b.Meta(), names, nil)
}

func (l *ledger) cannotRead(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = err
	return pipeline.Permanent(err)
}

func (l *ledger) enter(k kept) (gate <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, k)
	l.entered++
	l.tell()
	return l.gate
}

// tell wakes who waits for a change. The caller holds mu.
func (l *ledger) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// settle writes down the outcome. outcome nil is the answer that was decided.
func (l *ledger) settle(meta otlpdata.Meta, names []string, outcome func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left++
	defer l.tell()
	if outcome == nil {
		outcome = l.answer
	}
	var err error
	if outcome != nil {
		err = outcome()
	}
	refused := 0
	if err != nil {
		refused = len(names)
		if p := partialOf(err); p != nil {
			refused = min(p.Rejected, len(names))
		}
	}
	for i, n := range names {
		if i < refused {
			l.refusals[n] = err
			continue
		}
		l.taken[n]++
		l.metas[n] = meta
	}
	return err
}

// always makes err the answer from now on.
func (l *ledger) always(err error) { l.decide(func() error { return err }) }

// decide makes what answer returns the answer from now on. It is called under the ledger's lock.
func (l *ledger) decide(answer func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
}

// block makes calls wait until release, or until their context ends.
func (l *ledger) block() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate = make(chan struct{})
}

func (l *ledger) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate != nil {
		close(l.gate)
		l.gate = nil
	}
}

// await waits until n calls have begun, and reports whether they did in time.
func (l *ledger) await(n int, patience time.Duration) bool {
	return l.awaitCount(&l.entered, n, patience)
}

// awaitEnd is await for calls that have ended.
func (l *ledger) awaitEnd(n int, patience time.Duration) bool {
	return l.awaitCount(&l.left, n, patience)
}

// awaitCount waits until a count that mu guards has come to n.
func (l *ledger) awaitCount(count *int, n int, patience time.Duration) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		l.mu.Lock()
		reached, changed := *count >= n, l.changed
		l.mu.Unlock()
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

// arrivals returns how often each span was taken, and the first batch that could not be read.
func (l *ledger) arrivals() (map[string]int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.taken), l.broken
}

// metaOf returns where a span that was taken came from.
func (l *ledger) metaOf(name string) otlpdata.Meta {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.metas[name]
}

// refusal returns why a span was refused the last time; nil when it never was.
func (l *ledger) refusal(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals[name]
}

// passed returns the batches that arrived.
func (l *ledger) passed() []kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]kept(nil), l.kept...)
}
