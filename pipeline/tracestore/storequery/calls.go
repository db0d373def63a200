package storequery

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// CallCounter counts calls between services. The zero value is ready to use. Not safe for
// concurrent use.
type CallCounter struct {
	index map[edgeName]int
	edges []tracestore.Edge
}

type edgeName struct {
	parent, child string
	messaging     bool
}

// AddEdge adds the calls, errors and duration of e. It does not retain strings of e.
func (c *CallCounter) AddEdge(e *tracestore.Edge) {
	c.addEdgeWithin(e, math.MaxInt)
}

// addEdgeWithin is like AddEdge, but does nothing and returns false if there would be more than
// limit edges.
func (c *CallCounter) addEdgeWithin(e *tracestore.Edge, limit int) bool {
	i, ok := c.index[edgeName{e.Parent, e.Child, e.Messaging}]
	if !ok {
		if len(c.edges) >= limit {
			return false
		}
		if c.index == nil {
			c.index = make(map[edgeName]int)
		}
		i = len(c.edges)
		name := edgeName{strings.Clone(e.Parent), strings.Clone(e.Child), e.Messaging}
		c.edges = append(c.edges, tracestore.Edge{Parent: name.parent, Child: name.child, Messaging: name.messaging})
		c.index[name] = i
	}
	sum := &c.edges[i]
	sum.Calls += e.Calls
	sum.Errors += e.Errors
	sum.Duration = saturatingAdd(sum.Duration, e.Duration)
	return true
}

// AddCall adds one call.
func (c *CallCounter) AddCall(parent, child *CallSpan) {
	e := tracestore.Edge{Parent: parent.Service, Child: child.Service, Messaging: messaging(parent, child), Calls: 1,
		Duration: child.Duration}
	if child.Failed {
		e.Errors = 1
	}
	c.AddEdge(&e)
}

// Edges returns the counts in the order of Graph.Edges.
func (c *CallCounter) Edges() []tracestore.Edge {
	out := slices.Clone(c.edges)
	slices.SortFunc(out, func(a, b tracestore.Edge) int {
		if c := cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Child, b.Child)); c != 0 || a.Messaging == b.Messaging {
			return c
		}
		if b.Messaging {
			return -1
		}
		return 1
	})
	return out
}

// saturatingAdd returns a + b, or the maximum uint64 if the sum overflows.
func saturatingAdd(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxUint64
}
