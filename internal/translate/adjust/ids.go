package adjust

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// separateServers gives a server span that shares its id with a client span an id of its own: the smallest that the trace does not use. Its
// parent is then the client span, and the children of the shared id are its children. The id zero is no id that could be shared.
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
	renamed := make(map[otlpdata.SpanID]otlpdata.SpanID) // shared id -> the server's own
	servers := make(map[otlpdata.SpanID]bool)            // the servers' own ids
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.gone || n.side != serverSide || !clients[n.id] {
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

// idSource yields ids that are not used, counting from 1.
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
