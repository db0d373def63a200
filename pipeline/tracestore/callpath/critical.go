package callpath

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// overlapShare is the share of its duration by which a child may overlap with what follows it:
// clocks and schedulers are not exact.
const overlapShare = 0.02

// walk finds a critical path from its end. It does not recurse, because traces can be deep.
type walk struct {
	stack    []piece
	pieces   []piece // of the current span
	children []int32
}

// piece is a piece of time of the critical path: own time of a span, or a span whose pieces are not
// found yet.
type piece struct {
	span     int32 // -1: between spans without parent, where nothing was recorded
	expand   bool
	from, to uint64
}

// CriticalPath calls own with the pieces of the critical path, from the first to the last: the
// spans that the end of the trace waited for, with their own time, in nanoseconds. A span may occur
// several times; -1 is the time between spans without parent. It returns the length of the path,
// which is the sum of the pieces.
//
// It is found backwards. From the end of a span, its child that ended last carries the time until
// that child started; before it, the child that ended last before that start; and so on. What no
// child carries is the span's own time. Times of children outside their parent are cut off.
// criticalPath in the web UI has the same definition; both are tested with the same traces.
func (t *Tree) CriticalPath(own func(span int, time uint64)) (length uint64) {
	tops := t.pathTops()
	from, to := uint64(math.MaxUint64), uint64(0)
	for _, s := range tops {
		from, to = min(from, t.start[s]), max(to, t.end[s])
	}
	if from >= to {
		return 0
	}
	w := &t.walk
	w.stack = w.stack[:0]
	w.children = append(w.children[:0], tops...)
	t.split(-1, from, to)
	for len(w.stack) > 0 {
		p := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if !p.expand {
			own(int(p.span), p.to-p.from)
			continue
		}
		t.waitedFor(p.span, p.from, p.to)
		t.split(p.span, p.from, p.to)
	}
	return to - from
}

// pathTops returns the spans at which the path begins: those that are roots, or if there are none,
// those whose parents are missing.
func (t *Tree) pathTops() []int32 {
	if t.roots == 0 || t.roots == len(t.tops) {
		return t.tops
	}
	return slices.DeleteFunc(slices.Clone(t.tops), func(s int32) bool { return !t.spans[s].Parent.IsZero() })
}

// isAsync reports whether the parent does not wait for a span: a message that another service
// processes.
func (t *Tree) isAsync(span, parent int32) bool {
	s, p := &t.spans[span], &t.spans[parent]
	return s.Kind == otlpdata.KindConsumer && p.Kind != otlpdata.KindProducer && p.Service != s.Service
}

// waitedFor sets walk.children to the children that a span can wait for between two times.
func (t *Tree) waitedFor(span int32, from, to uint64) {
	w := &t.walk
	w.children = w.children[:0]
	for _, c := range t.childrenOf(span) {
		if t.start[c] < to && t.end[c] > from && t.end[c] > t.start[c] && !t.isAsync(c, span) {
			w.children = append(w.children, c)
		}
	}
}

// split splits the time of a span into that of walk.children and its own.
func (t *Tree) split(span int32, from, to uint64) {
	w := &t.walk
	if len(w.children) > 1 {
		slices.SortStableFunc(w.children, func(a, b int32) int {
			return cmp.Or(cmp.Compare(min(t.end[b], to), min(t.end[a], to)), cmp.Compare(t.start[a], t.start[b]))
		})
	}
	w.pieces = w.pieces[:0]
	until := to
	for _, c := range w.children {
		first, last := max(t.start[c], from), min(t.end[c], to)
		if last > until && float64(last-until) <= overlapShare*(float64(last)-float64(first)) {
			last = until
		}
		if last > until || last <= first {
			continue
		}
		if last < until {
			w.pieces = append(w.pieces, piece{span: span, from: last, to: until})
		}
		w.pieces = append(w.pieces, piece{span: c, expand: true, from: first, to: last})
		until = first
	}
	if until > from {
		w.pieces = append(w.pieces, piece{span: span, from: from, to: until})
	}
	w.stack = append(w.stack, w.pieces...)
}
