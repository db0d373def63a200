package storequery

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// setMatcher evaluates a span set on one whole trace after the other, and reuses its memory. Lists by span are in the order in which the
// spans come; of duplicates all but the first are never chosen. Not for concurrent use.
type setMatcher struct {
	set       SpanSet
	fits      tracestore.Expr   // must hold on chosen spans besides
	conds     []tracestore.Expr // of the selections in set, from left to right
	facts     bool              // the summary of the trace is needed
	structure bool              // so are parents

	chosen  []bool
	starts  []uint64
	summary tracestore.Summary // where facts are needed

	truth   [][]bool // by condition, by span; evaluation writes over it
	again   []bool   // by span: it is a duplicate
	heads   []tracestore.SummarySpan
	members []member
	origins []identity // of members, as they come
	parents []int32    // by span; below 0 where there is none. Empty until it is needed
	finder  ParentFinder
	calls   []CallSpan
	next    int // condition of the next selection
	up      ancestry
}

// member is a span by which parents are found.
type member struct {
	CallSpan
	raw    []byte
	at     int32 // its place in the order in which spans come
	origin int32
}

func newSetMatcher(set SpanSet, fits tracestore.Expr) *setMatcher {
	m := &setMatcher{set: simplifySet(set), fits: fits}
	m.collect(m.set)
	if fits != nil {
		m.collect(Select{fits})
	}
	m.truth = make([][]bool, len(m.conds))
	return m
}

// collect finds out what must be known of each span.
func (m *setMatcher) collect(set SpanSet) {
	switch s := set.(type) {
	case Select:
		_, trace := placesOf(s.Where)
		m.facts = m.facts || trace
		m.conds = append(m.conds, s.Where)
	case And:
		m.collect(s.Left)
		m.collect(s.Right)
	case Or:
		m.collect(s.Left)
		m.collect(s.Right)
	case Descendant:
		m.structure = true
		m.collect(s.Ancestors)
		m.collect(s.Spans)
	case Child:
		m.structure = true
		m.collect(s.Parents)
		m.collect(s.Spans)
	}
}

// evaluate finds the chosen spans of a trace. walk is called once or twice. Without dedup there are no duplicates. The error is that of
// walk or of ctx.
func (m *setMatcher) evaluate(ctx context.Context, id otlpdata.TraceID, dedup *Dedup, walk func(visit func(tracestore.Span) error) error) error {
	m.reset()
	err := walk(func(s tracestore.Span) error {
		again := dedup != nil && !dedup.First(s)
		m.again = append(m.again, again)
		m.starts = append(m.starts, s.Start)
		if !again {
			m.remember(s)
		}
		if m.facts {
			return nil
		}
		return m.judge(ctx, s, len(m.starts)-1)
	})
	if err != nil {
		return err
	}
	if m.facts {
		m.summary = SummarizeSpans(id, m.heads)
		i := 0
		err := walk(func(s tracestore.Span) error {
			s.Trace = &m.summary
			i++
			return m.judge(ctx, s, i-1)
		})
		if err != nil {
			return err
		}
	}
	m.combine()
	return nil
}

func (m *setMatcher) reset() {
	m.starts, m.again, m.heads, m.members, m.parents, m.next = m.starts[:0], m.again[:0], m.heads[:0], m.members[:0], m.parents[:0], 0
	m.origins = m.origins[:0]
	for i := range m.truth {
		m.truth[i] = m.truth[i][:0]
	}
}

// remember keeps what is needed of a span when all spans are known.
func (m *setMatcher) remember(s tracestore.Span) {
	if m.facts {
		m.heads = append(m.heads, summarySpanOf(s))
	}
	if m.structure {
		ns, _ := s.Duration()
		call := CallSpan{ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns, Service: s.Resource.Service, Kind: s.Kind}
		m.members = append(m.members, member{call, s.Raw, int32(len(m.starts) - 1), m.origin(s)})
	}
}

// origin returns which of the origins the resource and the scope of a span are.
func (m *setMatcher) origin(s tracestore.Span) int32 {
	id := identityOf(s)
	id.span = nil
	if n := len(m.origins); n == 0 || !m.origins[n-1].equal(&id) {
		m.origins = append(m.origins, id)
	}
	return int32(len(m.origins) - 1)
}

// judge evaluates all conditions on a span, by its place.
func (m *setMatcher) judge(ctx context.Context, s tracestore.Span, at int) error {
	const atOnce = 64 // spans; conditions may be many and slow
	if at%atOnce == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	for i, e := range m.conds {
		m.truth[i] = append(m.truth[i], !m.again[at] && tracestore.Match(e, s))
	}
	return nil
}

// combine finds the chosen spans when all conditions were evaluated.
func (m *setMatcher) combine() {
	m.chosen = m.choose(m.set)
	if m.fits != nil {
		keep(m.chosen, m.truth[m.next])
	}
}

// choose returns the spans that a part of the set chooses. The list is that of one of its conditions, of which each is there once.
func (m *setMatcher) choose(set SpanSet) []bool {
	switch s := set.(type) {
	case And:
		left, right := m.choose(s.Left), m.choose(s.Right)
		if !slices.Contains(left, true) || !slices.Contains(right, true) {
			clear(left)
			return left
		}
		return join(left, right)
	case Or:
		return join(m.choose(s.Left), m.choose(s.Right))
	case Descendant:
		return m.descendants(m.choose(s.Ancestors), m.choose(s.Spans))
	case Child:
		return m.children(m.choose(s.Parents), m.choose(s.Spans))
	}
	m.next++
	return m.truth[m.next-1]
}

// join adds to a what is in b.
func join(a, b []bool) []bool {
	for i, is := range b {
		a[i] = a[i] || is
	}
	return a
}

// keep leaves in a what is in b.
func keep(a, b []bool) {
	for i, is := range b {
		a[i] = a[i] && is
	}
}

// descendants keeps in spans those with an ancestor in ancestors.
func (m *setMatcher) descendants(ancestors, spans []bool) []bool {
	if !slices.Contains(ancestors, true) || !slices.Contains(spans, true) {
		clear(spans)
		return spans
	}
	m.findParents()
	keep(spans, m.up.have(ancestors, m.parents))
	return spans
}

// children keeps in spans those whose parent is in parents.
func (m *setMatcher) children(parents, spans []bool) []bool {
	if !slices.Contains(parents, true) || !slices.Contains(spans, true) {
		clear(spans)
		return spans
	}
	m.findParents()
	for i, selected := range spans {
		spans[i] = selected && m.parents[i] >= 0 && parents[m.parents[i]]
	}
	return spans
}

func (m *setMatcher) findParents() {
	if len(m.parents) > 0 {
		return
	}
	// Parents depend on the order of spans that share an id. It must not depend on how a store returns them.
	slices.SortFunc(m.members, func(a, b member) int {
		if c := cmp.Or(cmp.Compare(a.Start, b.Start), bytes.Compare(a.ID[:], b.ID[:])); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.Parent[:], b.Parent[:]),
			cmp.Compare(a.Duration, b.Duration), bytes.Compare(a.raw, b.raw), m.origins[a.origin].compare(&m.origins[b.origin]))
	})
	m.calls = m.calls[:0]
	for i := range m.members {
		m.calls = append(m.calls, m.members[i].CallSpan)
	}
	m.finder.Index(m.calls) // leaves them as they are: its order is a coarser one
	for range m.starts {
		m.parents = append(m.parents, -1)
	}
	for i := range m.members {
		if p := m.finder.Parent(i); p >= 0 {
			m.parents[m.members[i].at] = m.members[p].at
		}
	}
}

// ancestry finds spans with certain ancestors. It goes over each span once, however deep a trace is.
type ancestry struct {
	out   []bool
	state []uint8
	path  []int32
}

// What is known of a span's ancestors.
const (
	unvisited uint8 = iota
	onPath
	visited
)

// have says of each span whether one of its ancestors, of which it is none itself, is in above.
func (a *ancestry) have(above []bool, parents []int32) []bool {
	a.out = append(a.out[:0], make([]bool, len(parents))...)
	a.state = append(a.state[:0], make([]uint8, len(parents))...)
	for i := range parents {
		a.path = a.path[:0]
		at := int32(i)
		for ; at >= 0 && a.state[at] == unvisited; at = parents[at] {
			a.state[at] = onPath
			a.path = append(a.path, at)
		}
		if at >= 0 && a.state[at] == onPath {
			a.circle(slices.Index(a.path, at), above)
		}
		for _, s := range slices.Backward(a.path) {
			p := parents[s]
			a.out[s] = p >= 0 && (above[p] || a.out[p])
			a.state[s] = visited
		}
	}
	return a.out
}

// circle decides about spans that are ancestors of each other: the end of the path, from a place on.
func (a *ancestry) circle(from int, above []bool) {
	circle, n := a.path[from:], 0
	for _, s := range circle {
		if above[s] {
			n++
		}
	}
	for _, s := range circle {
		a.out[s] = n > 1 || n == 1 && !above[s]
		a.state[s] = visited
	}
	a.path = a.path[:from]
}
