package adjust

import (
	"fmt"
	"math"
	"time"
)

// warning is the result of the clock correction for a span.
type warning uint8

const (
	noWarning warning = iota
	movedTimes
	movingDisabled
	movingTooFar
	duplicateID
	missingParent
	missingStart
)

// text returns the text of the warning, or "".
func (n *node) text(limit time.Duration) string {
	d := time.Duration(n.delta)
	switch n.warning {
	case movedTimes:
		return fmt.Sprintf("This span's timestamps were adjusted by %s", d)
	case movingDisabled:
		return fmt.Sprintf("clock skew adjustment disabled; not applying calculated delta of %s", d)
	case movingTooFar:
		return fmt.Sprintf("max clock skew adjustment delta of %s exceeded; not applying calculated delta of %s", limit, d)
	case duplicateID:
		return "duplicate span IDs; skipping clock skew adjustment"
	case missingParent:
		return fmt.Sprintf("parent span ID=%s is not in the trace; skipping clock skew adjustment", n.parent)
	case missingStart:
		return "span has no start time; skipping clock skew adjustment"
	}
	return ""
}

// alignClocks corrects clock differences between hosts, as Jaeger does; compare AlignClocks. A span
// outside of its parent on another host is moved into the middle of the parent, as if the latency
// were equal in both directions. A span that is longer than its parent is only moved if it starts
// before the parent. Its descendants on the same host move along. A span without a known host is
// always compared with its parent. A span without a start time is not compared.
func (p *plan) alignClocks(limit time.Duration) {
	p.emit.maxSkew = limit
	p.queue = p.queue[:0]
	for i := len(p.nodes) - 1; i >= 0; i-- {
		p.attach(i)
	}
	for at := 0; at < len(p.queue); at++ {
		parent := &p.nodes[p.queue[at]]
		for c := parent.child; c != 0; c = p.nodes[c-1].next {
			n := &p.nodes[c-1]
			n.delta = parent.delta
			known := n.host != 0 && parent.host != 0
			switch {
			case known && n.host == parent.host:
			case !p.least:
				n.delta = skew(parent, n)
			case known || n.start < parent.recorded():
				n.delta = leastSkew(parent, n)
			}
			if n.start == 0 {
				n.delta, n.warning = 0, missingStart
			}
			n.move(limit)
			p.queue = append(p.queue, c-1)
		}
	}
}

// attach adds a span to the children of its parent. Roots and spans with a missing parent are added
// to the queue, so that their descendants are compared with them.
func (p *plan) attach(i int) {
	n := &p.nodes[i]
	switch {
	case n.dropped:
	case n.repeats:
		n.warning = duplicateID
	case n.parent.IsZero():
		p.queue = append(p.queue, int32(i))
	default:
		at := p.first[n.parent]
		if at == 0 {
			n.warning = missingParent
			p.queue = append(p.queue, int32(i))
			return
		}
		parent := &p.nodes[at-1]
		n.next, parent.child = parent.child, int32(i)+1
	}
}

// skew returns the correction for the clock of a child relative to the clock of its parent.
func skew(parent, child *node) int64 {
	long, short := parent.end-parent.start, child.end-child.start
	switch {
	case parent.start == 0 || child.start == 0:
		return 0
	case short > long:
		return max(difference(parent.start, child.start), 0)
	case child.start >= parent.start && child.end <= parent.end:
		return 0
	}
	return difference(later(parent.start, (long-short)/2), child.start)
}

// leastSkew returns the smallest correction that puts a child inside its parent. A child that
// starts within its parent may end after it if it is longer, or if it processes a message.
func leastSkew(parent, child *node) int64 {
	switch {
	case parent.start == 0 || child.start == 0:
	case child.start < parent.start:
		return difference(parent.start, child.start)
	case child.end > parent.end && child.end-child.start <= parent.end-parent.start && child.side != consumerSide:
		return difference(parent.end, child.end)
	}
	return 0
}

// recorded returns the recorded start time.
func (n *node) recorded() uint64 {
	if n.moved {
		return shift(n.start, -n.delta)
	}
	return n.start
}

// move applies the correction or sets a warning.
func (n *node) move(limit time.Duration) {
	switch {
	case n.delta == 0:
	case limit == 0:
		n.warning = movingDisabled
	case n.delta > int64(limit) || n.delta < -int64(limit):
		n.warning = movingTooFar
	default:
		n.warning, n.moved = movedTimes, true
		n.start, n.end = shift(n.start, n.delta), shift(n.end, n.delta)
	}
}

// later returns t + d, limited to the largest time.
func later(t, d uint64) uint64 {
	if d > math.MaxUint64-t {
		return math.MaxUint64
	}
	return t + d
}

// shift returns t + d, limited to the range of times.
func shift(t uint64, d int64) uint64 {
	if d >= 0 {
		return later(t, uint64(d))
	}
	return t - min(t, uint64(-d))
}

// difference returns a - b, limited to the range of int64.
func difference(a, b uint64) int64 {
	if a >= b {
		return int64(min(a-b, math.MaxInt64))
	}
	return -int64(min(b-a, math.MaxInt64))
}
