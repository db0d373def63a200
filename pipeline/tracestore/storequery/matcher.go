package storequery

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"unsafe"

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
	pipelines    bool                 // the set has a Pipeline
	divides      bool                 // the set has a GroupBy
	operands     []tracestore.Operand // of stages, in the order of evaluation
	parentFields []tracestore.Field   // fields of parents in conditions and operands, without Field.Parent

	walk     spanWalk    // over the trace that was evaluated
	selected []bool      // by span: the result
	groups   []spanGroup // if pipelines: the result
	starts   []uint64
	summary  tracestore.Summary // set if needsSummary

	truth        [][]bool // by condition, by span; evaluation overwrites it
	duplicate    []bool   // by span
	summarySpans []tracestore.SummarySpan
	members      []member
	origins      []identity             // of members, in order of arrival
	parents      []int32                // by span; orphan or root if it has none. Empty until needed
	childCounts  []int                  // by span. Empty until needed
	nested       []tracestore.NestedSet // by span. Empty until needed
	values       [][]otlpdata.Value     // by operand, by span; no value is empty
	parentValues [][]parentValue        // by field in parentFields, by span
	nextOperand  int                    // index of the next operand
	finder       ParentFinder
	callSpans    []CallSpan
	nextCond     int // index of the condition of the next Select
	ancestry     ancestry
	marks        []int32 // by span, and one for roots; 0 except during relatives. Empty until needed
}

// Parents of spans without one.
const (
	orphan int32 = -1 // the parent is not in the trace
	root   int32 = -2
)

// parentValue is the first value of a field that a condition on its children uses.
type parentValue struct {
	value otlpdata.Value
	ok    bool
}

// member is a span from which parents are resolved.
type member struct {
	call   CallSpan
	raw    []byte
	at     int32 // index in order of arrival
	origin int32 // index of its resource and scope in origins
}

// newSetMatcher returns a matcher for the spans that a set selects and that meet a further
// condition (nil: none). The caller may read the given fields of selected spans; see each.
func newSetMatcher(set SpanSet, also tracestore.Expr, fields ...tracestore.Field) *setMatcher {
	m := &setMatcher{set: simplifySet(set), also: also}
	m.addConditions(m.set)
	for _, f := range fields {
		m.addParentField(f)
	}
	if also != nil {
		m.addConditions(Select{also})
	}
	m.truth, m.values = make([][]bool, len(m.conds)), make([][]otlpdata.Value, len(m.operands))
	m.parentValues = make([][]parentValue, len(m.parentFields))
	return m
}

// Approximate numbers of bytes that a matcher keeps for each span.
const (
	matcherMemory = 256 // in every search
	// groupMemory is for a group of one span while a GroupBy divides its group. A group also has
	// the values of all stages; the capacity of that list grows in advance.
	groupMemory      = 256
	groupValueMemory = 2 * int(unsafe.Sizeof(GroupValue{}))
)

// spanMemory returns the approximate number of bytes that the matcher keeps for each span of a
// trace.
func (m *setMatcher) spanMemory() int {
	bytes := matcherMemory + len(m.conds) + len(m.parentFields)*int(unsafe.Sizeof(parentValue{})) +
		len(m.operands)*int(unsafe.Sizeof(otlpdata.Value{}))
	if m.divides {
		bytes += groupMemory + len(m.operands)*groupValueMemory
	}
	return bytes
}

// reserve reserves memory for the evaluation of a trace. The caller must release it.
func (m *setMatcher) reserve(ctx context.Context, batches []*otlpdata.Batch) (*tracestore.Memory, error) {
	spans := 0
	for _, b := range batches {
		spans += b.Len()
	}
	return tracestore.Reserve(ctx, int64(spans*m.spanMemory()))
}

// addConditions adds the conditions of a set, and determines what else its evaluation needs.
func (m *setMatcher) addConditions(set SpanSet) {
	switch s := set.(type) {
	case Select:
		_, trace := PlacesOf(s.Where)
		m.needsTrace, m.needsSummary = m.needsTrace || trace, m.needsSummary || trace
		m.conds = append(m.conds, s.Where)
		for f := range tracestore.Fields(s.Where) {
			m.addParentField(f)
		}
	case And:
		m.addConditions(s.Left)
		m.addConditions(s.Right)
	case Or:
		m.addConditions(s.Left)
		m.addConditions(s.Right)
	case Relation:
		m.needsParents = true
		m.addConditions(s.Left)
		m.addConditions(s.Right)
	case Pipeline:
		m.pipelines = true
		m.addConditions(s.Set)
		for _, stage := range s.Stages {
			_, divides := stage.(GroupBy)
			m.divides = m.divides || divides
			stageOperands(stage, m.addOperand, m.addConditions)
		}
	}
}

func (m *setMatcher) addOperand(o tracestore.Operand) {
	m.operands = append(m.operands, o)
	tracestore.OperandFields(o, func(f tracestore.Field) bool {
		m.needsTrace, m.needsSummary = m.needsTrace || f.OfTrace(), m.needsSummary || f.OfTrace()
		m.addParentField(f)
		return true
	})
}

func (m *setMatcher) addParentField(f tracestore.Field) {
	if !f.Parent {
		return
	}
	m.needsParents, f.Parent = true, false
	if !slices.Contains(m.parentFields, f) {
		m.parentFields = append(m.parentFields, f)
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
		for i, f := range m.parentFields {
			v, ok := tracestore.ValueOf(f, s)
			m.parentValues[i] = append(m.parentValues[i], parentValue{v, ok})
		}
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
	m.combine(ctx)
	return ctx.Err() // conditions may be wrong, see tracestore.WithContext
}

// each calls visit with each span of the trace and its index, with Span.Children, and with
// Span.Trace if needsSummary.
func (m *setMatcher) each(visit func(s tracestore.Span, at int) error) error {
	at := -1
	children := func() int { return m.childCount(at) }
	parent := func(f tracestore.Field) (otlpdata.Value, bool) { return m.parentValue(f, at) }
	nested := func() tracestore.NestedSet { return m.nestedSet(at) }
	return m.walk(func(s tracestore.Span) error {
		if s.Children, s.Parent, s.Nested = children, parent, nested; m.needsSummary {
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
	m.findParents()
	m.childCounts = append(m.childCounts, make([]int, len(m.starts))...)
	for _, parent := range m.parents {
		if parent >= 0 {
			m.childCounts[parent]++
		}
	}
	return m.childCounts[at]
}

// parentValue returns the first value of a field in the parent of the span at an index.
func (m *setMatcher) parentValue(f tracestore.Field, at int) (v otlpdata.Value, ok bool) {
	m.findParents()
	field, parent := slices.Index(m.parentFields, f), m.parents[at]
	if field < 0 || parent < 0 {
		return v, false
	}
	found := m.parentValues[field][parent]
	return found.value, found.ok
}

// nestedSet returns the position of the span at an index. The first call numbers all spans.
func (m *setMatcher) nestedSet(at int) tracestore.NestedSet {
	if len(m.nested) > 0 {
		return m.nested[at]
	}
	m.findParents()
	m.nested = append(m.nested, make([]tracestore.NestedSet, len(m.starts))...)
	first, next := make([]int32, len(m.starts)), make([]int32, len(m.starts)) // children: 1 + index
	var roots []int32
	for i := len(m.members) - 1; i >= 0; i-- { // so that the earliest child is first
		switch span := m.members[i].at; m.parents[span] {
		case orphan:
		case root:
			roots = append(roots, span)
		default:
			parent := m.parents[span]
			next[span], first[parent] = first[parent], span+1
		}
	}
	n := int32(0)
	for len(roots) > 0 {
		r := roots[len(roots)-1]
		roots = roots[:len(roots)-1]
		n++
		m.nested[r] = tracestore.NestedSet{Left: n, Parent: -1}
		for span := r; span >= 0; {
			n++
			if child := first[span] - 1; child >= 0 {
				first[span] = next[child]
				m.nested[child] = tracestore.NestedSet{Left: n, Parent: m.nested[span].Left}
				span = child
				continue
			}
			m.nested[span].Right = n
			span = m.parents[span]
		}
	}
	return m.nested[at]
}

func (m *setMatcher) reset() {
	m.starts, m.duplicate, m.summarySpans = m.starts[:0], m.duplicate[:0], m.summarySpans[:0]
	m.members, m.origins, m.parents, m.nextCond = m.members[:0], m.origins[:0], m.parents[:0], 0
	m.childCounts, m.nested, m.nextOperand, m.groups = m.childCounts[:0], m.nested[:0], 0, nil
	m.marks = m.marks[:0]
	m.ancestry.reset()
	for i := range m.values {
		m.values[i] = m.values[i][:0]
	}
	for i := range m.parentValues {
		m.parentValues[i] = m.parentValues[i][:0]
	}
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
	for i, o := range m.operands {
		v, _ := tracestore.ValueOf(o, s)
		m.values[i] = append(m.values[i], v)
	}
	return nil
}

// combine sets selected, after all conditions were evaluated.
func (m *setMatcher) combine(ctx context.Context) {
	if m.pipelines {
		m.groups = m.groupsOf(ctx, m.set, m.everything())
		m.selected = make([]bool, len(m.starts))
		for _, g := range m.groups {
			for _, i := range g.spans {
				m.selected[i] = true
			}
		}
	} else {
		m.selected = m.selectedBy(m.set)
	}
	if m.also != nil {
		intersect(m.selected, m.truth[m.nextCond])
	}
}

// everything returns all spans as one group.
func (m *setMatcher) everything() (g spanGroup) {
	for i, duplicate := range m.duplicate {
		if !duplicate {
			g.spans = append(g.spans, int32(i))
		}
	}
	return g
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
	case Relation:
		left, right := m.selectedBy(s.Left), m.selectedBy(s.Right)
		related := m.related(s, indexes(left), indexes(right))
		clear(right)
		for _, i := range related {
			right[i] = true
		}
		return right
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

// related returns the spans that a relation selects. All lists of spans are in ascending order. It
// takes time for left and right only, not for the whole trace, because there may be many groups.
func (m *setMatcher) related(r Relation, left, right []int32) []int32 {
	if len(right) == 0 || r.Mode != Unrelated && len(left) == 0 {
		return nil
	}
	m.findParents()
	switch related := m.relatives(r.Kind, right, left); r.Mode {
	case Unrelated:
		return slices.DeleteFunc(slices.Clone(right), func(i int32) bool {
			_, found := slices.BinarySearch(related, i)
			return found
		})
	case Both:
		return uniteSorted(related, m.relatives(inverse[r.Kind], left, right))
	default:
		return related
	}
}

var inverse = [...]RelationKind{Descendant: Ancestor, Child: Parent, Ancestor: Descendant, Parent: Child, Sibling: Sibling}

// relatives returns the given spans that have a relation with a span of a set: for Child, the
// children of those spans.
func (m *setMatcher) relatives(kind RelationKind, spans, set []int32) (out []int32) {
	switch kind {
	case Descendant:
		m.ancestry.number(m.parents)
		return m.ancestry.haveAncestor(spans, set)
	case Ancestor:
		m.ancestry.number(m.parents)
		return m.ancestry.haveDescendant(spans, set)
	}
	if len(m.marks) == 0 {
		m.marks = append(m.marks, make([]int32, len(m.starts)+1)...)
	}
	for _, i := range set {
		if at := m.markOf(kind == Child, i); at >= 0 {
			m.marks[at]++
		}
	}
	for _, i := range spans {
		at, least := m.markOf(kind == Parent, i), int32(1)
		if _, own := slices.BinarySearch(set, i); own && kind == Sibling {
			least = 2
		}
		if at >= 0 && m.marks[at] >= least {
			out = append(out, i)
		}
	}
	for _, i := range set {
		if at := m.markOf(kind == Child, i); at >= 0 {
			m.marks[at] = 0
		}
	}
	return out
}

// markOf returns the index in marks of a span itself or of its parent, which is after all spans for
// roots and negative for orphans.
func (m *setMatcher) markOf(itself bool, span int32) int32 {
	switch {
	case itself:
		return span
	case m.parents[span] == root:
		return int32(len(m.starts))
	}
	return m.parents[span]
}

// findParents sets parents, unless they are already set for this trace.
func (m *setMatcher) findParents() {
	if len(m.parents) > 0 {
		return
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
		m.parents = append(m.parents, orphan)
	}
	for i := range m.members {
		if p := m.finder.Parent(i); p >= 0 {
			m.parents[m.members[i].at] = m.members[p].at
		} else if m.members[i].call.Parent.IsZero() {
			m.parents[m.members[i].at] = root
		}
	}
}
