package adjust

import (
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// plan is what is to be done with the spans of a trace. It is made in a first walk, which keeps a node of each span, and carried out in a
// second one, so that a large trace is held once.
type plan struct {
	nodes  []node
	first  map[otlpdata.SpanID]int32 // 1 + index of the first span with an id
	hosts  map[string]int32          // host -> its number, from 1
	shared bool                      // some spans share an id
	queue  []int32                   // scratch of the clock skew
	emit   emitter
}

// node is a span, as far as the spans of a trace bear on each other. Times are nanoseconds since the Unix epoch.
type node struct {
	id, parent  otlpdata.SpanID
	start, end  uint64
	delta       int64 // of the clock, nanoseconds
	host        int32 // 0: not known
	child, next int32 // 1 + index of the first child and of the next sibling
	side        side
	warning     warning
	shared      bool // other spans have its id
	again       bool // an earlier span that is shown has its id
	gone        bool // a duplicate
	moved       bool // its times are moved by delta
}

type side uint8

const (
	otherSide side = iota
	clientSide
	serverSide
)

var plans = sync.Pool{New: func() any {
	return &plan{first: make(map[otlpdata.SpanID]int32), hosts: make(map[string]int32)}
}}

// release forgets the trace. What a large one needed is left to the garbage collector.
func (p *plan) release() {
	const keep = 1024 // spans
	if cap(p.nodes) > keep || len(p.hosts) > keep || !p.emit.small(keep) {
		return
	}
	clear(p.first)
	clear(p.hosts)
	p.nodes, p.shared = p.nodes[:0], false
	p.emit.forget()
	plans.Put(p)
}

func (p *plan) make(opt Options, spans int, pieces []*otlpdata.Batch) error {
	if cap(p.nodes) < spans {
		p.nodes = make([]node, 0, spans)
	}
	if err := walkAll(pieces, &collector{plan: p}); err != nil {
		return err
	}
	if p.shared {
		if err := p.dropDuplicates(pieces); err != nil {
			return err
		}
		p.separateServers()
		p.index()
	}
	p.evenClocks(opt.MaxClockSkew)
	return nil
}

// index finds the spans by their ids again, after some were dropped or renamed.
func (p *plan) index() {
	clear(p.first)
	for i := range p.nodes {
		if n := &p.nodes[i]; !n.gone {
			n.again = !p.take(n.id, i)
		}
	}
}

// take notes which span has an id, and reports whether it is the first.
func (p *plan) take(id otlpdata.SpanID, i int) bool {
	if p.first[id] != 0 {
		return false
	}
	p.first[id] = int32(i) + 1
	return true
}

// collector makes the nodes.
type collector struct {
	*plan
	host int32
}

// Resource notes the host.
func (c *collector) Resource(r *otlpdata.Resource) error {
	c.host = 0
	key := hostOf(r.Attributes)
	if key == "" {
		return nil
	}
	n, ok := c.hosts[key]
	if !ok {
		n = int32(len(c.hosts)) + 1
		c.hosts[key] = n
	}
	c.host = n
	return nil
}

// Scope has nothing to tell.
func (c *collector) Scope(*otlpdata.Scope) error { return nil }

// Span adds a node.
func (c *collector) Span(s *otlpdata.Span) error {
	length, _ := s.Duration()
	n := node{id: s.SpanID, parent: s.ParentID, start: s.Start, end: later(s.Start, length), host: c.host}
	switch s.Kind {
	case otlpdata.KindClient:
		n.side = clientSide
	case otlpdata.KindServer:
		n.side = serverSide
	}
	if !c.take(n.id, len(c.nodes)) {
		n.shared, c.shared = true, true
		c.nodes[c.first[n.id]-1].shared = true
	}
	c.nodes = append(c.nodes, n)
	return nil
}
