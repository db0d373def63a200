package callpath

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// overlapShare is the share of a child's duration that may overlap with the next span, because
// clocks and schedulers are not exact.
const overlapShare = 0.02

// maxRepeatedSteps bounds the work on spans that run in several gaps between roots, which are
// reexamined in each gap. A step is one span, or one of its children, that is reexamined.
const maxRepeatedSteps = 1 << 20

// walk finds a critical path from its end. It does not recurse, because traces can be deep.
type walk struct {
	stack    []piece
	pieces   []piece // of the current span
	children []int32
	expanded []bool // by span
	repeated int    // steps of spans that were expanded before
}

// piece is a part of the critical path: own time of a span, or a span that was not split into
// pieces yet.
type piece struct {
	span     int32 // -1: no span runs
	expand   bool
	from, to uint64
}

// CriticalPath calls own with the pieces of the critical path, from the first to the last: the
// spans that the end of the trace waited for, with their own time, in nanoseconds. A span may occur
// several times; -1 is the time in which no span runs. It returns the length of the path, which is
// the sum of the pieces and the duration of the trace.
//
// The path is found backwards. At the end of a span, its child that ended last is on the path back
// to that child's start; then the child that ended last before that start; and so on. Time without
// such a child is the span's own time. While a root runs, children are cut off at the bounds of
// their parents. While no root runs, for example after its end, spans that outlive their parents
// are on the path. After maxRepeatedSteps, the remaining time of such a span counts as its own.
// criticalPath in the web UI has the same definition; both are tested with the same traces.
func (t *Tree) CriticalPath(own func(span int, time uint64)) (length uint64) {
	w := &t.walk
	length = t.coverTrace()
	w.stack = append(w.stack[:0], w.pieces...) // the first piece is on top
	w.expanded, w.repeated = append(w.expanded[:0], make([]bool, len(t.spans))...), 0
	for len(w.stack) > 0 {
		p := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if !p.expand || !t.expands(p.span) {
			own(int(p.span), p.to-p.from)
			continue
		}
		t.waitedFor(p.span, p.from, p.to)
		t.split(p.span, p.from, p.to)
	}
	return length
}

// expands reports whether the children of a span may be looked at, and counts them.
func (t *Tree) expands(span int32) bool {
	w := &t.walk
	if !w.expanded[span] {
		w.expanded[span] = true
		return true
	}
	if w.repeated >= maxRepeatedSteps {
		return false
	}
	w.repeated += 1 + len(t.childrenOf(span))
	return true
}

// coverTrace sets walk.pieces to the topmost span at each time, from the last end to the first
// start: a root while one runs, otherwise a span that runs outside the time of its parent, and -1
// where no span runs. If there is no root, spans with missing parents take its place.
func (t *Tree) coverTrace() (length uint64) {
	w := &t.walk
	w.pieces = w.pieces[:0]
	from, to := uint64(math.MaxUint64), uint64(0)
	for i := range t.spans {
		from, to = min(from, t.start[i]), max(to, t.end[i])
	}
	if from >= to {
		return 0
	}
	roots := t.cover(t.pathTops())
	var others *cover
	for until := to; until > from; {
		span, begin := roots.before(until, from)
		if span >= 0 {
			w.pieces = append(w.pieces, piece{span: span, expand: true, from: begin, to: until})
		} else if others == nil {
			others = t.cover(t.outsideParent())
		}
		for end := until; span < 0 && end > begin; {
			other, start := others.before(end, begin)
			w.pieces = append(w.pieces, piece{span: other, expand: other >= 0, from: start, to: end})
			end = start
		}
		until = begin
	}
	return to - from
}

// pathTops returns the spans at which the path can begin: the roots or, if there are none, the
// spans with missing parents.
func (t *Tree) pathTops() []int32 {
	if t.roots == 0 || t.roots == len(t.tops) {
		return slices.Clone(t.tops)
	}
	return slices.DeleteFunc(slices.Clone(t.tops), func(s int32) bool { return !t.spans[s].Parent.IsZero() })
}

// outsideParent returns the spans that run at a time at which their parent does not, depth first.
func (t *Tree) outsideParent() (list []int32) {
	stack := slices.Clone(t.tops)
	slices.Reverse(stack)
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if p := t.parent[s]; p < 0 || t.start[s] < t.start[p] || t.end[s] > t.end[p] {
			list = append(list, s)
		}
		for _, c := range slices.Backward(t.childrenOf(s)) {
			stack = append(stack, c)
		}
	}
	return list
}

// cover covers time with spans, from the end.
type cover struct {
	t    *Tree
	list []int32 // by end, the last one first
	best int32   // the first start of the spans that end at until or later; -1: none
}

func (t *Tree) cover(list []int32) *cover {
	slices.SortStableFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.end[b], t.end[a]), cmp.Compare(t.start[a], t.start[b]))
	})
	return &cover{t: t, list: list, best: -1}
}

// before returns the earliest-started span among the spans that run just before until, and its
// start. If no span runs then, it returns -1 and the last end before until. The returned time is at
// least from. until must not increase between calls.
func (c *cover) before(until, from uint64) (span int32, begin uint64) {
	for ; len(c.list) > 0 && c.t.end[c.list[0]] >= until; c.list = c.list[1:] {
		if c.best < 0 || c.t.start[c.list[0]] < c.t.start[c.best] {
			c.best = c.list[0]
		}
	}
	switch {
	case c.best >= 0 && c.t.start[c.best] < until:
		return c.best, max(c.t.start[c.best], from)
	case len(c.list) > 0:
		return -1, max(c.t.end[c.list[0]], from)
	}
	return -1, from
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

// split splits the time of a span into the times of walk.children and the span's own time.
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
