package storequery

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// setMatcher evaluates a span set on whole traces, one after the other, and reuses its memory.
// Slices by span are in the order in which the spans arrive. Only the first of several duplicates
// can be selected. A setMatcher is not safe for concurrent use.
type setMatcher struct {
	set          SpanSet
	also         tracestore.Expr   // a further condition on selected spans
	conds        []tracestore.Expr // of each Select in set from left to right, then also
	needsTrace   bool              // conditions depend on the whole trace
	needsSummary bool              // conditions or the caller need the summary
	needsParents bool

	walk     spanWalk // over the trace that was evaluated
	selected []bool   // by span: the result
	starts   []uint64
	summary  tracestore.Summary // set if needsSummary

	truth        [][]bool // by condition, by span; evaluation overwrites it
	duplicate    []bool   // by span
	summarySpans []tracestore.SummarySpan
	members      []member
	origins      []identity // of members, in order of arrival
	parents      []int32    // by span; negative if it has none. Empty until needed
	childCounts  []int      // by span. Empty until needed
	finder       ParentFinder
	callSpans    []CallSpan
	nextCond     int // index of the condition of the next Select
	ancestry     ancestry
}

// member is a span from which parents are resolved.
type member struct {
	call   CallSpan
	raw    []byte
	at     int32 // index in order of arrival
	origin int32 // index of its resource and scope in origins
}

func newSetMatcher(set SpanSet, also tracestore.Expr) *setMatcher {
	m := &setMatcher{set: simplifySet(set), also: also}
	m.addConditions(m.set)
	if also != nil {
		m.addConditions(Select{also})
	}
	m.truth = make([][]bool, len(m.conds))
	return m
}

// addConditions adds the conditions of a set, and determines what else its evaluation needs.
func (m *setMatcher) addConditions(set SpanSet) {
	switch s := set.(type) {
	case Select:
		_, trace := PlacesOf(s.Where)
		m.needsTrace, m.needsSummary = m.needsTrace || trace, m.needsSummary || trace
		m.conds = append(m.conds, s.Where)
	case And:
		m.addConditions(s.Left)
		m.addConditions(s.Right)
	case Or:
		m.addConditions(s.Left)
		m.addConditions(s.Right)
	case Descendant:
		m.needsParents = true
		m.addConditions(s.Ancestors)
		m.addConditions(s.Spans)
	case Child:
		m.needsParents = true
		m.addConditions(s.Parents)
		m.addConditions(s.Spans)
	}
}

// evaluate sets selected for the spans of a trace. It calls walk once or twice. dedup is nil if
// there are no duplicates. It returns the error of walk or of ctx.
func (m *setMatcher) evaluate(ctx context.Context, id otlpdata.TraceID, dedup *Dedup, walk spanWalk) error {
	m.reset()
	m.walk = walk
	err := walk(func(s tracestore.Span) error {
		duplicate := dedup != nil && !dedup.First(s)
		m.duplicate = append(m.duplicate, duplicate)
		m.starts = append(m.starts, s.Start)
		if !duplicate {
			m.record(s)
		}
		if m.needsTrace {
			return nil
		}
		return m.testConditions(ctx, s, len(m.starts)-1)
	})
	if err != nil {
		return err
	}
	if m.needsSummary {
		m.summary = SummarizeSpans(id, m.summarySpans)
	}
	if m.needsTrace {
		err := m.each(func(s tracestore.Span, at int) error { return m.testConditions(ctx, s, at) })
		if err != nil {
			return err
		}
	}
	m.combine()
	return ctx.Err() // conditions may be wrong, see tracestore.WithContext
}

// each calls visit with each span of the trace and its index, with Span.Children, and with
// Span.Trace if needsSummary.
func (m *setMatcher) each(visit func(s tracestore.Span, at int) error) error {
	at := -1
	children := func() int { return m.childCount(at) }
	return m.walk(func(s tracestore.Span) error {
		if s.Children = children; m.needsSummary {
			s.Trace = &m.summary
		}
		at++
		return visit(s, at)
	})
}

// childCount returns the number of children of the span at an index. The first call counts the
// children of all spans.
func (m *setMatcher) childCount(at int) int {
	if len(m.childCounts) > 0 {
		return m.childCounts[at]
	}
	if !m.needsParents { // members were not recorded
		n := -1
		_ = m.walk(func(s tracestore.Span) error { // cannot fail: this is not the first walk
			if n++; !m.duplicate[n] {
				m.addMember(s, n)
			}
			return nil
		})
	}
	m.findParents()
	m.childCounts = append(m.childCounts, make([]int, len(m.starts))...)
	for _, parent := range m.parents {
		if parent >= 0 {
			m.childCounts[parent]++
		}
	}
	return m.childCounts[at]
}

func (m *setMatcher) reset() {
	m.starts, m.duplicate, m.summarySpans = m.starts[:0], m.duplicate[:0], m.summarySpans[:0]
	m.members, m.origins, m.parents, m.nextCond = m.members[:0], m.origins[:0], m.parents[:0], 0
	m.childCounts = m.childCounts[:0]
	for i := range m.truth {
		m.truth[i] = m.truth[i][:0]
	}
}

// record stores the parts of a span that are needed after all spans have arrived.
func (m *setMatcher) record(s tracestore.Span) {
	if m.needsSummary {
		m.summarySpans = append(m.summarySpans, summarySpanOf(s))
	}
	if m.needsParents {
		m.addMember(s, len(m.starts)-1)
	}
}

// addMember records the span at an index for the resolution of parents.
func (m *setMatcher) addMember(s tracestore.Span, at int) {
	ns, _ := s.Duration()
	call := CallSpan{ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns, Service: s.Resource.Service, Kind: s.Kind}
	m.members = append(m.members, member{call: call, raw: s.Raw, at: int32(at), origin: m.origin(s)})
}

// origin returns the index in origins of the resource and the scope of a span.
func (m *setMatcher) origin(s tracestore.Span) int32 {
	id := identityOf(s)
	id.span = nil
	if n := len(m.origins); n == 0 || !m.origins[n-1].equal(&id) {
		m.origins = append(m.origins, id)
	}
	return int32(len(m.origins) - 1)
}

// checkInterval is the number of spans after which the context is checked. Conditions may be many
// and slow.
const checkInterval = 64

// testConditions evaluates all conditions on the span at an index.
func (m *setMatcher) testConditions(ctx context.Context, s tracestore.Span, at int) error {
	if at%checkInterval == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	for i, e := range m.conds {
		m.truth[i] = append(m.truth[i], !m.duplicate[at] && tracestore.Match(e, s))
	}
	return nil
}

// combine sets selected, after all conditions were evaluated.
func (m *setMatcher) combine() {
	m.selected = m.selectedBy(m.set)
	if m.also != nil {
		intersect(m.selected, m.truth[m.nextCond])
	}
}

// selectedBy returns the spans that a part of the set selects. It reuses the slice of one of the
// conditions in that part.
func (m *setMatcher) selectedBy(set SpanSet) []bool {
	switch s := set.(type) {
	case And:
		left, right := m.selectedBy(s.Left), m.selectedBy(s.Right)
		if !slices.Contains(left, true) || !slices.Contains(right, true) {
			clear(left)
			return left
		}
		return unite(left, right)
	case Or:
		return unite(m.selectedBy(s.Left), m.selectedBy(s.Right))
	case Descendant:
		return m.descendants(m.selectedBy(s.Ancestors), m.selectedBy(s.Spans))
	case Child:
		return m.children(m.selectedBy(s.Parents), m.selectedBy(s.Spans))
	}
	m.nextCond++
	return m.truth[m.nextCond-1]
}

// unite sets a to the union of a and b.
func unite(a, b []bool) []bool {
	for i, in := range b {
		a[i] = a[i] || in
	}
	return a
}

// intersect sets a to the intersection of a and b.
func intersect(a, b []bool) {
	for i, in := range b {
		a[i] = a[i] && in
	}
}

// descendants removes the spans without an ancestor in ancestors.
func (m *setMatcher) descendants(ancestors, spans []bool) []bool {
	if !slices.Contains(ancestors, true) || !slices.Contains(spans, true) {
		clear(spans)
		return spans
	}
	m.findParents()
	intersect(spans, m.ancestry.descendantsOf(ancestors, m.parents))
	return spans
}

// children removes the spans whose parent is not in parents.
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

// findParents sets parents, unless they are already set for this trace.
func (m *setMatcher) findParents() {
	if len(m.parents) > 0 {
		return
	}
	// Parents depend on the order of spans that share an id. This order must not depend on how a
	// store returns them.
	slices.SortFunc(m.members, func(a, b member) int {
		x, y := &a.call, &b.call
		if c := cmp.Or(cmp.Compare(x.Start, y.Start), bytes.Compare(x.ID[:], y.ID[:])); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(x.Service, y.Service), cmp.Compare(x.Kind, y.Kind), bytes.Compare(x.Parent[:], y.Parent[:]),
			cmp.Compare(x.Duration, y.Duration), bytes.Compare(a.raw, b.raw), m.origins[a.origin].compare(&m.origins[b.origin]))
	})
	m.callSpans = m.callSpans[:0]
	for i := range m.members {
		m.callSpans = append(m.callSpans, m.members[i].call)
	}
	m.finder.Index(m.callSpans) // does not reorder them: its order is coarser
	for range m.starts {
		m.parents = append(m.parents, -1)
	}
	for i := range m.members {
		if p := m.finder.Parent(i); p >= 0 {
			m.parents[m.members[i].at] = m.members[p].at
		}
	}
}
