package stats

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// EdgeKind is the kind of a dependency. The numbers are part of the file format.
type EdgeKind uint8

// The kinds of edges.
const (
	Call      EdgeKind = iota
	Messaging          // the parent is a producer or the child is a consumer
)

// EdgeKindOf returns the kind of the edge between spans with the given span kinds.
func EdgeKindOf(parent, child int32) EdgeKind {
	if parent == otlpdata.KindProducer || child == otlpdata.KindConsumer {
		return Messaging
	}
	return Call
}

// Edge is a dependency between two services of a tenant, which may be the same service.
type Edge struct {
	Tenant, Parent, Child string
	Kind                  EdgeKind
}

func (a *Edge) compare(b *Edge) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Child, b.Child), cmp.Compare(a.Kind, b.Kind))
}

// AppendEdges appends the encoded section of edges. The Collector may still be used afterwards.
func (c *Collector) AppendEdges(dst []byte) []byte {
	edges := make([]Edge, len(c.edges))
	for i, e := range c.edges {
		parent, child := c.services[e.parent], c.services[e.child]
		edges[i] = Edge{child.tenant, parent.name, child.name, e.kind}
	}
	order := sortedOrder(edges, (*Edge).compare)
	rank := ranks(order)
	cells := c.calls.sorted(func(key uint64) uint64 {
		id := key & (1<<nameBits - 1)
		return key + uint64(rank[id]) - id
	})
	dst = binary.AppendUvarint(append(dst, version), c.callsDropped)
	dst = appendEdgeNames(dst, edges, order)
	var w groupWriter
	for _, e := range cells {
		v := &c.calls.slots[e.slot].value
		w.point(e.key>>nameBits, e.key&(1<<nameBits-1))
		w.bodies = appendNumbers(w.bodies, v.calls-1, v.errors, v.sum)
	}
	return w.append(dst)
}

func appendEdgeNames(dst []byte, edges []Edge, order []uint32) []byte {
	var all []string
	for _, e := range edges {
		all = append(all, e.Tenant, e.Parent, e.Child)
	}
	t := newTexts(slices.Values(all))
	dst = binary.AppendUvarint(t.append(dst), uint64(len(edges)))
	for _, id := range order {
		e := &edges[id]
		dst = appendNumbers(dst, t.number[e.Tenant], t.number[e.Parent], t.number[e.Child]<<1|uint64(e.Kind))
	}
	return dst
}

// EdgeStats is a decoded section of edges. Immutable and safe for concurrent use.
type EdgeStats struct {
	// Edges lists all edges, sorted. The strings alias the section.
	Edges []Edge
	// Dropped is the number of calls that are not counted because a limit was reached.
	Dropped uint64
	groups  []group
}

// EdgePoint holds the calls of an edge in a minute.
type EdgePoint struct {
	Minute        uint64
	Edge          int // index into EdgeStats.Edges
	Calls, Errors uint64
	Sum           uint64 // sum of the durations of child spans in nanoseconds, at most the maximum of uint64
}

// DecodeEdges decodes a section of edges, which it retains. Errors match ErrCorrupt.
func DecodeEdges(section []byte) (*EdgeStats, error) {
	const minNameSize, minPointSize = 3, 4
	r := reader{b: section}
	_, dropped := r.head(version)
	s := &EdgeStats{Dropped: dropped}
	t := r.texts()
	s.Edges = make([]Edge, r.names(minNameSize))
	for i := range s.Edges {
		e := &s.Edges[i]
		e.Tenant, e.Parent = r.text(t), r.text(t)
		child := r.uvarint()
		e.Kind = EdgeKind(child & 1)
		if child>>1 >= uint64(len(t)) {
			r.fail("undefined text")
			break
		}
		e.Child = t[child>>1]
		if i > 0 && s.Edges[i-1].compare(e) >= 0 {
			r.fail("edges out of order")
		}
	}
	s.groups = r.groups(minPointSize)
	var p EdgePoint
	r.check(s.groups, func(r *reader, first bool) { r.edgePoint(&p, first, len(s.Edges)) })
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// edgePoint decodes the next point of a body into p, which holds the preceding point.
func (r *reader) edgePoint(p *EdgePoint, first bool, edges int) {
	p.Edge = r.nextName(p.Edge, first, edges)
	p.Calls = r.spans() + 1
	p.Errors = r.spans()
	p.Sum = r.uvarint()
	if p.Errors > p.Calls {
		r.fail("more errors than calls")
	}
}

// Minutes returns the first and last minute with calls; ok is false if there are none.
func (s *EdgeStats) Minutes() (first, last uint64, ok bool) { return minutes(s.groups) }

// Points returns the points of the minutes from first to last, both inclusive, ordered by minute
// and edge.
func (s *EdgeStats) Points(first, last uint64) iter.Seq[EdgePoint] {
	return func(yield func(EdgePoint) bool) {
		var p EdgePoint
		for _, g := range inMinutes(s.groups, first, last) {
			p.Minute = g.minute
			r := reader{b: g.body}
			for i := range g.points {
				if r.edgePoint(&p, i == 0, len(s.Edges)); !yield(p) {
					return
				}
			}
		}
	}
}
