package stats

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// EdgeKind describes the calls of an edge: some of the flags below, and the type of their
// connection. The numbers are part of the file format.
type EdgeKind uint8

// Flags of edges.
const (
	Messaging EdgeKind = 1 << iota // the parent is a producer or the child is a consumer
	// Inner calls are those that stay within a service, see tracestore.IsInnerCall. The type of
	// their connection and their histogram are not kept.
	Inner
)

// Flags of orphans.
const (
	Consumer EdgeKind = 1 << iota // the span is a consumer
	Server                        // the span is of the kind server
)

const (
	connectionShift = 2
	kindBits        = 5
	orphanBits      = kindBits - 1 // Consumer is among the flags of the point
)

// Side is what the kind of an edge needs of one of its spans.
type Side struct {
	Service    string
	Kind       int32
	Connection tracestore.Connection
}

// SideOf returns the Side of a span whose attributes have the given keys.
func SideOf(service string, kind int32, keys iter.Seq[string]) Side {
	return Side{service, kind, tracestore.ConnectionOfKeys(kind, keys)}
}

// EdgeKindOf returns the kind of the edge between two spans.
func EdgeKindOf(parent, child Side) EdgeKind {
	k := EdgeKind(0)
	if parent.Kind == otlpdata.KindProducer || child.Kind == otlpdata.KindConsumer {
		k |= Messaging
	}
	if tracestore.IsInnerCall(parent.Service, child.Service, child.Kind) {
		return k | Inner
	}
	return k | EdgeKind(tracestore.ConnectionOfCall(parent.Connection, child.Connection))<<connectionShift
}

// OrphanKindOf returns the kind of an orphan.
func OrphanKindOf(s Side) EdgeKind {
	k := EdgeKind(s.Connection) << connectionShift
	switch s.Kind {
	case otlpdata.KindConsumer:
		k |= Consumer
	case otlpdata.KindServer:
		k |= Server
	}
	return k
}

// Connection returns the type of the connection.
func (k EdgeKind) Connection() tracestore.Connection {
	return tracestore.Connection(k >> connectionShift)
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
		id := key >> rangeBits & (1<<nameBits - 1)
		return key + (uint64(rank[id])-id)<<rangeBits
	})
	dst = binary.AppendUvarint(append(dst, version), c.callsDropped)
	dst = appendEdgeNames(dst, edges, order)
	var w groupWriter
	var h tracestore.Histogram
	for len(cells) > 0 {
		name, errors := cells[0].key>>rangeBits, uint64(0)
		n := 0
		for h.Reset(); n < len(cells) && cells[n].key>>rangeBits == name; n++ {
			v := &c.calls.slots[cells[n].slot].value
			addCell(&h, int(cells[n].key&(1<<rangeBits-1)), &v.cell)
			errors += v.errors
		}
		cells = cells[n:]
		id := name & (1<<nameBits - 1)
		w.point(name>>nameBits, id)
		if edges[order[id]].Kind&Inner != 0 {
			w.bodies = appendNumbers(w.bodies, h.Count()-1, errors, h.Sum)
			continue
		}
		w.bodies = appendHistogram(binary.AppendUvarint(w.bodies, errors), &h)
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
		dst = appendNumbers(dst, t.number[e.Tenant], t.number[e.Parent], t.number[e.Child]<<kindBits|uint64(e.Kind))
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
	// Durations has the durations of the calls, unless they are Inner. It is valid until the next
	// iteration.
	Durations tracestore.Histogram
}

// DecodeEdges decodes a section of edges, which it retains. Errors match ErrCorrupt.
func DecodeEdges(section []byte) (*EdgeStats, error) {
	const minNameSize, minPointSize = 3, 4
	r := reader{b: section}
	s := &EdgeStats{Dropped: r.head()}
	t := r.texts()
	s.Edges = make([]Edge, r.names(minNameSize))
	for i := range s.Edges {
		e := &s.Edges[i]
		e.Tenant, e.Parent = r.text(t), r.text(t)
		child := r.uvarint()
		e.Kind = EdgeKind(child & (1<<kindBits - 1))
		if int(e.Kind.Connection()) >= tracestore.Connections {
			r.fail("undefined connection")
			break
		}
		if child>>kindBits >= uint64(len(t)) {
			r.fail("undefined text")
			break
		}
		e.Child = t[child>>kindBits]
		if i > 0 && s.Edges[i-1].compare(e) >= 0 {
			r.fail("edges out of order")
		}
	}
	s.groups = r.groups(minPointSize)
	var p EdgePoint
	r.check(s.groups, func(r *reader, first bool) { r.edgePoint(&p, first, s) })
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// edgePoint decodes the next point of a body into p, which holds the preceding point.
func (r *reader) edgePoint(p *EdgePoint, first bool, s *EdgeStats) {
	p.Edge = r.nextName(p.Edge, first, len(s.Edges))
	p.Durations.Reset()
	if r.err == nil && s.Edges[p.Edge].Kind&Inner == 0 {
		p.Errors = r.spans()
		r.histogram(&p.Durations)
		p.Calls, p.Sum = p.Durations.Count(), p.Durations.Sum
	} else {
		p.Calls = r.spans() + 1
		p.Errors = r.spans()
		p.Sum = r.uvarint()
	}
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
				if r.edgePoint(&p, i == 0, s); !yield(p) {
					return
				}
			}
		}
	}
}
