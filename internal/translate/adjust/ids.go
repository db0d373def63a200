package adjust

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// separateServers gives each server span that shares its id with a client span a new id: the
// smallest that the trace does not use. The client span becomes its parent, and the children of the
// shared id become its children. The id zero does not count as shared.
func (p *plan) separateServers() {
	clients := make(map[otlpdata.SpanID]bool)
	for i := range p.nodes {
		if n := &p.nodes[i]; n.shared && n.side == clientSide && !n.id.IsZero() {
			clients[n.id] = true
		}
	}
	if len(clients) == 0 {
		return
	}
	free := idSource{used: p.first}
	renamed := make(map[otlpdata.SpanID]otlpdata.SpanID) // shared id -> id of the server span
	servers := make(map[otlpdata.SpanID]bool)            // new ids
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.dropped || n.side != serverSide || !clients[n.id] {
			continue
		}
		id := free.next()
		renamed[n.id], servers[id] = id, true
		n.parent, n.id = n.id, id
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if id, ok := renamed[n.parent]; ok && !servers[n.id] {
			n.parent = id
		}
	}
}

// idSource returns unused ids, counting from 1.
type idSource struct {
	used map[otlpdata.SpanID]int32
	last uint64
}

func (f *idSource) next() otlpdata.SpanID {
	for {
		f.last++
		var id otlpdata.SpanID
		binary.BigEndian.PutUint64(id[:], f.last)
		if f.used[id] == 0 {
			return id
		}
	}
}
