package callpath

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Counter computes the counts of a path profile from traces that are added to it. The zero value is
// ready to use and has no memory limit. A Counter is not safe for concurrent use.
type Counter struct {
	sets       [2]tracestore.PathSet // rest, selected
	paths      []path
	operations []operation
	byCall     map[call]int32
	byName     map[name]int32
	memory     *tracestore.Memory
	omitted    bool // because of MaxCallPaths
	short      bool // because of memory

	pathOf  []int32 // by span of the current trace: its path, -1 for none
	nameOf  []int32 // its operation, -1 for none
	touched []int32 // paths of the current trace
	opened  []int32 // operations of the current trace
	stack   []int32
}

// name identifies an operation.
type name struct{ service, name string }

// call identifies a call path.
type call struct {
	parent, operation, kind int32
}

type operation struct {
	name
	sums
}

type path struct {
	call
	sums
}

// sums counts one path or operation.
type sums struct {
	sets [2]tracestore.PathCounts // rest, selected
	// Of the current trace.
	calls, errors, self uint64
}

// pathMemory and operationMemory are the approximate sizes in bytes of a path and an operation,
// including index entries and the result but not texts.
const (
	pathMemory      = 400
	operationMemory = 400
)

// ChargeTo makes the counter reserve its memory in m. Paths that do not fit are not counted.
func (c *Counter) ChargeTo(m *tracestore.Memory) { c.memory = m }

// AddTrace counts a trace in one of the two sets. The spans are as for Tree.Build; the counter
// retains none of their strings.
func (c *Counter) AddTrace(t *Tree, id otlpdata.TraceID, selected bool) {
	side := 0
	if selected {
		side = 1
	}
	c.assign(t)
	length := t.CriticalPath(func(span int, time uint64) {
		if span < 0 {
			return
		}
		if p := c.pathOf[span]; p >= 0 {
			c.paths[p].self += time
		}
		if o := c.nameOf[span]; o >= 0 {
			c.operations[o].self += time
		}
	})
	failed := false
	for i := range t.spans {
		failed = failed || t.spans[i].Failed
	}
	set := &c.sets[side]
	set.Traces++
	set.Spans += uint64(len(t.spans))
	set.Time += length
	set.TimeSquares += float64(length) * float64(length)
	set.IDs = append(set.IDs, id)
	if failed {
		set.Failed++
	}
	for _, i := range c.touched {
		c.paths[i].endTrace(side)
	}
	for _, i := range c.opened {
		c.operations[i].endTrace(side)
	}
}

// assign sets pathOf and nameOf, and counts the calls and errors of the trace.
func (c *Counter) assign(t *Tree) {
	c.pathOf = append(c.pathOf[:0], make([]int32, len(t.spans))...)
	c.nameOf = append(c.nameOf[:0], c.pathOf...)
	c.touched, c.opened = c.touched[:0], c.opened[:0]
	c.stack = append(c.stack[:0], t.tops...)
	for len(c.stack) > 0 {
		span := c.stack[len(c.stack)-1]
		c.stack = append(c.stack[:len(c.stack)-1], t.childrenOf(span)...)
		s := &t.spans[span]
		o, p := c.operationAt(s.Service, s.Name), int32(-1)
		if o >= 0 {
			p = c.pathAt(c.pathAbove(t, span), o, s.Kind)
			c.opened = c.operations[o].addCall(c.opened, o, s.Failed)
		}
		if p >= 0 {
			c.touched = c.paths[p].addCall(c.touched, p, s.Failed)
		}
		c.nameOf[span], c.pathOf[span] = o, p
	}
}

// pathAbove returns the path of a span's parent: noParent if the span has none, and -1 if the path
// is not counted.
func (c *Counter) pathAbove(t *Tree, span int32) int32 {
	if p := t.parent[span]; p >= 0 {
		return c.pathOf[p]
	}
	return noParent
}

// noParent is the parent of a path that starts at a span without a parent.
const noParent = -2

// addCall counts a call of the current trace. For the first call, it appends the index of the path
// or operation to list.
func (s *sums) addCall(list []int32, index int32, failed bool) []int32 {
	if s.calls == 0 {
		list = append(list, index)
	}
	s.calls++
	if failed {
		s.errors++
	}
	return list
}

// endTrace adds the counts of the current trace to one set.
func (s *sums) endTrace(side int) {
	n := &s.sets[side]
	n.Traces++
	n.Calls += s.calls
	n.Errors += s.errors
	n.SelfTime += s.self
	n.SelfSquares += float64(s.self) * float64(s.self)
	n.CallSquares += float64(s.calls) * float64(s.calls)
	s.calls, s.errors, s.self = 0, 0, 0
}

// pathAt returns the path of an operation below another path, or -1 if it is not counted.
func (c *Counter) pathAt(parent, operation, kind int32) int32 {
	if parent == -1 {
		return -1
	}
	key := call{parent, operation, kind}
	at, known := c.byCall[key]
	if known {
		return at
	}
	if !c.mayAdd(len(c.paths), pathMemory) {
		return -1
	}
	if c.byCall == nil {
		c.byCall = make(map[call]int32)
	}
	at = int32(len(c.paths))
	c.byCall[key] = at
	c.paths = append(c.paths, path{call: key})
	return at
}

// operationAt returns the operation with a service and a name, or -1 if it is not counted.
func (c *Counter) operationAt(service, operationName string) int32 {
	at, known := c.byName[name{service, operationName}]
	if known {
		return at
	}
	if !c.mayAdd(len(c.operations), operationMemory+int64(len(service)+len(operationName))) {
		return -1
	}
	if c.byName == nil {
		c.byName = make(map[name]int32)
	}
	key := name{strings.Clone(service), strings.Clone(operationName)}
	at = int32(len(c.operations))
	c.byName[key] = at
	c.operations = append(c.operations, operation{name: key})
	return at
}

// mayAdd reports whether another element may be added to n, and reserves its memory.
func (c *Counter) mayAdd(n int, bytes int64) bool {
	if n >= tracestore.MaxCallPaths {
		c.omitted = true
		return false
	}
	if c.short || c.memory.Grow(bytes) != nil {
		c.short = true
		return false
	}
	return true
}

// AddProfile adds the counts of another profile. It retains nothing of p. It returns an error if
// the paths are not in the order of PathProfile.Paths.
func (c *Counter) AddProfile(p *tracestore.PathProfile) error {
	for side, set := range [2]*tracestore.PathSet{&p.Rest, &p.Selected} {
		sum := &c.sets[side]
		sum.Traces += set.Traces
		sum.Failed += set.Failed
		sum.Spans += set.Spans
		sum.Time += set.Time
		sum.TimeSquares += set.TimeSquares
		sum.IDs = append(sum.IDs, set.IDs...)
	}
	for i := range p.Operations {
		o := &p.Operations[i]
		if at := c.operationAt(o.Service, o.Name); at >= 0 {
			c.operations[at].add(&o.Rest, &o.Selected)
		}
	}
	added := make([]int32, len(p.Paths)) // -1: not counted
	for i := range p.Paths {
		q := &p.Paths[i]
		parent := int32(noParent)
		if q.Parent >= i || q.Parent < -1 {
			return fmt.Errorf("call path %d of %d has the parent %d", i, len(p.Paths), q.Parent)
		}
		if q.Parent >= 0 {
			parent = added[q.Parent]
		}
		added[i] = -1
		if o := c.operationAt(q.Service, q.Name); o >= 0 {
			added[i] = c.pathAt(parent, o, q.Kind)
		}
		if at := added[i]; at >= 0 {
			c.paths[at].add(&q.Rest, &q.Selected)
		}
	}
	return nil
}

// add adds the counts of both sets.
func (s *sums) add(rest, selected *tracestore.PathCounts) {
	for side, n := range [2]*tracestore.PathCounts{rest, selected} {
		sum := &s.sets[side]
		sum.Traces += n.Traces
		sum.Calls += n.Calls
		sum.Errors += n.Errors
		sum.SelfTime += n.SelfTime
		sum.SelfSquares += n.SelfSquares
		sum.CallSquares += n.CallSquares
	}
}

// Traces returns the number of traces of a set.
func (c *Counter) Traces(selected bool) int {
	if selected {
		return int(c.sets[1].Traces)
	}
	return int(c.sets[0].Traces)
}

// Answer returns the profile, with shares of 1. It is complete if all paths were counted.
func (c *Counter) Answer() tracestore.PathProfile {
	out, _ := c.answer()
	return out
}

// answer is like Answer but also returns the index of each path in c.paths.
func (c *Counter) answer() (out tracestore.PathProfile, order []int32) {
	out = tracestore.PathProfile{Selected: c.sets[1], Rest: c.sets[0]}
	for _, set := range []*tracestore.PathSet{&out.Selected, &out.Rest} {
		set.Share = 1
	}
	out.Paths, order = c.arrange()
	for i := range c.operations {
		o := &c.operations[i]
		out.Operations = append(out.Operations, tracestore.OperationProfile{
			Service: o.service, Name: o.name.name, Selected: o.sets[1], Rest: o.sets[0]})
	}
	slices.SortFunc(out.Operations, func(a, b tracestore.OperationProfile) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Name, b.Name))
	})
	switch {
	case c.omitted:
		out.Reasons = tracestore.Because(tracestore.ReasonLimit,
			fmt.Sprintf("there are more than %d call paths; the others are not counted", tracestore.MaxCallPaths))
	case c.short:
		out.Reasons = tracestore.Because(tracestore.ReasonLimit, "not enough memory for all call paths; some are not counted")
	}
	return out, order
}

// arrange returns the paths in the order of PathProfile.Paths, and the index of each in c.paths.
func (c *Counter) arrange() (out []tracestore.CallPath, indexes []int32) {
	order := make([]int32, len(c.paths))
	for i := range order {
		order[i] = int32(i)
	}
	// Parents were added before their children, so a path has a higher index than its parent.
	slices.SortFunc(order, func(a, b int32) int {
		p, q := &c.paths[a], &c.paths[b]
		o, u := &c.operations[p.operation], &c.operations[q.operation]
		return cmp.Or(cmp.Compare(o.service, u.service), cmp.Compare(o.name.name, u.name.name), cmp.Compare(p.kind, q.kind), cmp.Compare(a, b))
	})
	children := make(map[int32][]int32)
	for _, i := range order {
		children[c.paths[i].parent] = append(children[c.paths[i].parent], i)
	}
	out, indexes = make([]tracestore.CallPath, 0, len(c.paths)), make([]int32, 0, len(c.paths))
	type entry struct {
		path   int32
		parent int
	}
	push := func(stack []entry, of int32, parent int) []entry {
		for _, i := range slices.Backward(children[of]) {
			stack = append(stack, entry{i, parent})
		}
		return stack
	}
	for stack := push(nil, noParent, -1); len(stack) > 0; {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		p := &c.paths[e.path]
		o := &c.operations[p.operation]
		out = append(out, tracestore.CallPath{Parent: e.parent, Service: o.service, Name: o.name.name, Kind: p.kind,
			Selected: p.sets[1], Rest: p.sets[0]})
		indexes = append(indexes, e.path)
		stack = push(stack, e.path, len(out)-1)
	}
	return out, indexes
}
