package core

import (
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Link is the number of calls from one service to another.
type Link struct {
	Parent, Child string
	Calls         uint64
}

// Links adds up edges of the service graph, which must be sorted by parent and child. Calls of a
// service to itself are left out. If service is not "", only links from and to this service are
// returned.
func Links(edges []tracestore.Edge, service string) []Link {
	var out []Link
	for i := range edges {
		e := &edges[i]
		if e.Parent == e.Child || service != "" && e.Parent != service && e.Child != service {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Parent == e.Parent && out[n-1].Child == e.Child {
			out[n-1].Calls += e.Calls
			continue
		}
		out = append(out, Link{e.Parent, e.Child, e.Calls})
	}
	return out
}
