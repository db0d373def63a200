package adjust

import (
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// plan holds the adjustments for the spans of a trace. A first walk builds it, with one node per
// span, and a second walk applies it, so that only the encoded trace is in memory.
type plan struct {
	nodes  []node
	first  map[otlpdata.SpanID]int32 // index+1 of the first span with an id
	hosts  map[string]int32          // host -> number, from 1
	shared bool                      // some spans have the same id
	least  bool                      // correct clocks as AlignClocks does
	queue  []int32                   // reused by alignClocks
	emit   emitter
}

// node is the part of a span that concerns other spans. Times are nanoseconds since the Unix epoch.
type node struct {
	id, parent  otlpdata.SpanID
	start, end  uint64
	delta       int64 // correction of the times in nanoseconds
	host        int32 // 0 if unknown
	child, next int32 // index+1 of the first child and of the next sibling
	side        side
	warning     warning
	shared      bool // another span has the same id
	repeats     bool // an earlier span that is not dropped has the same id
	dropped     bool // a duplicate
	moved       bool // its times are corrected by delta
}

type side uint8

const (
	otherSide side = iota
	clientSide
	serverSide
	consumerSide
)

var plans = sync.Pool{New: func() any {
	return &plan{first: make(map[otlpdata.SpanID]int32), hosts: make(map[string]int32)}
}}

// release returns the plan to the pool, unless it has grown large.
func (p *plan) release() {
	const maxPooled = 1024 // spans
	if cap(p.nodes) > maxPooled || len(p.hosts) > maxPooled || !p.emit.small(maxPooled) {
		return
	}
	clear(p.first)
	clear(p.hosts)
	p.nodes, p.shared, p.least = p.nodes[:0], false, false
	p.emit.forget()
	plans.Put(p)
}

func (p *plan) make(opt Options, spans int, batches []*otlpdata.Batch) error {
	if cap(p.nodes) < spans {
		p.nodes = make([]node, 0, spans)
	}
	if err := walkAll(batches, &collector{plan: p}); err != nil {
		return err
	}
	if p.shared {
		if err := p.dropDuplicates(batches); err != nil {
			return err
		}
	}
	if opt.Part {
		return nil
	}
	if p.shared {
		p.separateServers()
		p.index()
	}
	p.alignClocks(opt.MaxClockSkew)
	return nil
}

// index rebuilds the map of ids after spans were dropped or renamed.
func (p *plan) index() {
	clear(p.first)
	for i := range p.nodes {
		if n := &p.nodes[i]; !n.dropped {
			n.repeats = !p.takeSpan(n.id, i)
		}
	}
}

// takeSpan records the span of an id and reports whether it is the first with this id.
func (p *plan) takeSpan(id otlpdata.SpanID, i int) bool {
	if p.first[id] != 0 {
		return false
	}
	p.first[id] = int32(i) + 1
	return true
}

// collector creates the nodes.
type collector struct {
	plan *plan
	host int32
}

// Resource sets the current host.
func (c *collector) Resource(r *otlpdata.Resource) error {
	c.host = 0
	key := otlpdata.HostOf(r.Attributes)
	if key == "" {
		return nil
	}
	n, ok := c.plan.hosts[key]
	if !ok {
		n = int32(len(c.plan.hosts)) + 1
		c.plan.hosts[key] = n
	}
	c.host = n
	return nil
}

// Scope does nothing.
func (c *collector) Scope(*otlpdata.Scope) error { return nil }

// Span adds a node.
func (c *collector) Span(s *otlpdata.Span) error {
	length, _ := s.Duration()
	c.plan.addNode(node{id: s.SpanID, parent: s.ParentID, start: s.Start, end: later(s.Start, length), host: c.host, side: sideOf(s.Kind)})
	return nil
}

// addNode adds a node.
func (p *plan) addNode(n node) {
	if !p.takeSpan(n.id, len(p.nodes)) {
		n.shared, p.shared = true, true
		p.nodes[p.first[n.id]-1].shared = true
	}
	p.nodes = append(p.nodes, n)
}

func sideOf(kind int32) side {
	switch kind {
	case otlpdata.KindClient:
		return clientSide
	case otlpdata.KindServer:
		return serverSide
	case otlpdata.KindConsumer:
		return consumerSide
	}
	return otherSide
}
