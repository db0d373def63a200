package tracestore

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Dependencies is implemented by stores that know which service calls which.
//
// A call is a span with its parent. It belongs to the start of the span, wherever its parent lies. The parent is the span of the same
// trace and tenant whose id is the parent id, whenever and in whatever request it came. A span whose parent is not stored is no call.
//
// Spans that share an id, as the two sides of a call do in Zipkin's model, have sides: server (kinds server and consumer) and client (all
// others). Then:
//
//  1. the parent of a span of the server's side is a span of the client's side with its own id, whatever its parent id says;
//  2. any other span belongs to the one with its parent id that is of its own service, else to one of the server's side, else to any;
//  3. among several that will do it is the earliest, of those any; a span is not its own parent.
//
// A store may decide among the spans that it stored together, where one of them will do, and look at no more than [MaxAlike] spans of a
// trace that share their id with an earlier one. It counts duplicates once; those that came in different requests it may count once for
// each place where it has stored them.
type Dependencies interface {
	// Dependencies returns the calls whose spans start within from and to, both inclusive and as in Query.Window. An error says that they
	// cannot be counted at all; what could be counted is returned where Graph.Complete is false.
	Dependencies(ctx context.Context, tenant string, from, to time.Time) (Graph, error)
}

// Graph is which service calls which.
type Graph struct {
	// Edges are sorted by parent, child and messaging. None is without calls.
	Edges []Edge
	// Complete: every call within the window is counted. Otherwise Reason says in the user's words what is missing.
	Complete bool
	Reason   string
}

// Edge is the calls from one service to another, or to itself.
type Edge struct {
	Parent, Child string
	Messaging     bool   // the parent is a producer or the child a consumer
	Calls, Errors uint64 // Errors are those calls whose span has the status error
	Duration      uint64 // of the children, nanoseconds, as otlpdata.Span.Duration mends it; the greatest number where the sum exceeds it
}

// CallCounter adds up calls. The zero value is ready to use. Not for concurrent use.
type CallCounter struct {
	index map[edgeName]int
	edges []Edge
}

type edgeName struct {
	parent, child string
	messaging     bool
}

// Add adds the calls, errors and duration of e. It keeps none of its strings.
func (c *CallCounter) Add(e *Edge) {
	c.addWithin(e, math.MaxInt)
}

// addWithin is Add unless that would make more than most edges. It is false then.
func (c *CallCounter) addWithin(e *Edge, most int) bool {
	i, ok := c.index[edgeName{e.Parent, e.Child, e.Messaging}]
	if !ok {
		if len(c.edges) >= most {
			return false
		}
		if c.index == nil {
			c.index = make(map[edgeName]int)
		}
		i = len(c.edges)
		name := edgeName{strings.Clone(e.Parent), strings.Clone(e.Child), e.Messaging}
		c.edges = append(c.edges, Edge{Parent: name.parent, Child: name.child, Messaging: name.messaging})
		c.index[name] = i
	}
	sum := &c.edges[i]
	sum.Calls += e.Calls
	sum.Errors += e.Errors
	sum.Duration = addUpTo(sum.Duration, e.Duration)
	return true
}

// addUpTo returns the sum, or the greatest number where it exceeds that.
func addUpTo(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}

// timesUpTo returns the product, or the greatest number where it exceeds that.
func timesUpTo(a, b uint64) uint64 {
	if hi, product := bits.Mul64(a, b); hi == 0 {
		return product
	}
	return ^uint64(0)
}

// Call adds one call.
func (c *CallCounter) Call(parent, child *CallSpan) {
	e := Edge{Parent: parent.Service, Child: child.Service, Messaging: messaging(parent, child), Calls: 1, Duration: child.Duration}
	if child.Failed {
		e.Errors = 1
	}
	c.Add(&e)
}

// Edges returns the sums in the order of Graph.Edges.
func (c *CallCounter) Edges() []Edge {
	out := slices.Clone(c.edges)
	slices.SortFunc(out, func(a, b Edge) int {
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
