package storetest

import (
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// edges measures the calls by their definition: lower counts each span once, and upper counts it
// once for each request with it, as in calls and peers.
func (o *oracle) edges(tenant string, q tracestore.EdgeQuery) (lower, upper []tracestore.CallEdge) {
	once, often := storequery.NewEdgeCounter(&q), storequery.NewEdgeCounter(&q)
	first, last, ok := tracestore.Query{From: q.From, To: q.To}.Window()
	if !ok {
		return nil, nil
	}
	t := o.tenant(tenant)
	var parents storequery.ParentFinder
	for _, trace := range t.traces {
		var spans []storequery.CallSpan
		requests := make(map[storequery.CallSpan][]int)
		for _, s := range trace {
			c := storequery.EdgeSpanOf(s)
			n := t.requests[identity(s)]
			spans, requests[c] = append(spans, c), append(requests[c], n)
			if c.Peer != "" && c.Start >= first && c.Start <= last {
				countPeer(&c, n, isAnswered(trace, s.SpanID), once, often)
			}
		}
		parents.Index(spans)
		parents.Each(func(span, parent *storequery.CallSpan) {
			n := requests[*span][0]
			requests[*span] = requests[*span][1:]
			if parent == nil || span.Start < first || span.Start > last {
				return
			}
			once.AddCall(parent, span)
			for range n {
				often.AddCall(parent, span)
			}
		})
	}
	return once.Graph().Edges, often.Graph().Edges
}

// countPeer counts a span that names its peer and was sent in n requests. A span from several
// requests may be stored in a place without its counterpart.
func countPeer(s *storequery.CallSpan, n int, answered bool, once, often *storequery.EdgeCounter) {
	if !answered {
		once.AddPeer(s)
	}
	if answered && n == 1 {
		return
	}
	for range n {
		often.AddPeer(s)
	}
}

// checkEdges compares the measured calls within a window with those sent, of all services and of
// one.
func (s *suite) checkEdges(d tracestore.Edges, tenant string, q tracestore.EdgeQuery) {
	s.Helper()
	for _, service := range []string{"", "b"} {
		q.Service = service
		got, err := d.Edges(s.ctx, tenant, q)
		if err != nil {
			s.Fatalf("Edges(%q, %+v): %v", tenant, q, err)
		}
		lower, upper := s.sent.edges(tenant, q)
		if problem := callEdgesDiffer(got.Edges, lower, upper); !got.Complete() || problem != "" {
			s.Errorf("Edges(%q, %d, %d, %q): reasons are %v, %s\n got %v\nwant %v\nto   %v", tenant, q.From.UnixNano(), q.To.UnixNano(),
				service, got.Reasons, problem, got.Edges, lower, upper)
		}
	}
}

// callEdgesDiffer describes how edges are not between lower and upper. upper has all edges of
// lower. A store may not know the type of a connection.
func callEdgesDiffer(got, lower, upper []tracestore.CallEdge) string {
	for i := range got {
		e := &got[i]
		switch {
		case e.Calls == 0:
			return "edge without calls"
		case i > 0 && !lessCallEdge(&got[i-1], e):
			return "edges are not sorted"
		case e.Durations.Count() != e.Calls:
			return "durations of calls are missing"
		case e.Connection != tracestore.ConnectionUnknown && e.Calls > callsOver(upper, e, e.Connection).Calls:
			return "too many calls of a type of connection"
		}
	}
	for i := range upper {
		l, g, m := callsOf(lower, &upper[i]), callsOf(got, &upper[i]), callsOf(upper, &upper[i])
		if g.Calls < l.Calls || g.Calls > m.Calls || g.Errors < l.Errors || g.Errors > m.Errors ||
			g.Durations.Sum < l.Durations.Sum || g.Durations.Sum > m.Durations.Sum || !bucketsBetween(&l, &g, &m) {
			return "calls from " + upper[i].Parent + " to " + upper[i].Child
		}
		if l.Calls == m.Calls && callsOver(got, &upper[i], tracestore.ConnectionUnknown).Calls <= callsOver(upper, &upper[i], 0).Calls &&
			callsOver(got, &upper[i], upper[i].Connection).Calls != upper[i].Calls {
			return "types of connections from " + upper[i].Parent + " to " + upper[i].Child
		}
	}
	for i := range got {
		if callsOf(upper, &got[i]).Calls == 0 {
			return "unexpected edge from " + got[i].Parent + " to " + got[i].Child
		}
	}
	return ""
}

// bucketsBetween reports whether each bucket of g is between the same buckets of l and m.
func bucketsBetween(l, g, m *tracestore.CallEdge) bool {
	counts := func(e *tracestore.CallEdge) (all [tracestore.Buckets]uint64) {
		first, list := e.Durations.Counts()
		copy(all[min(first, tracestore.Buckets-1):], list)
		return all
	}
	low, is, high := counts(l), counts(g), counts(m)
	for i := range is {
		if is[i] < low[i] || is[i] > high[i] {
			return false
		}
	}
	return true
}

func lessCallEdge(a, b *tracestore.CallEdge) bool {
	switch {
	case a.Parent != b.Parent:
		return a.Parent < b.Parent
	case a.Child != b.Child:
		return a.Child < b.Child
	case a.Peer != b.Peer:
		return b.Peer
	}
	return a.Connection < b.Connection
}

// callsOf sums up the edges of a list between the same ends as e.
func callsOf(list []tracestore.CallEdge, e *tracestore.CallEdge) (sum tracestore.CallEdge) {
	for c := range tracestore.Connections {
		of := callsOver(list, e, tracestore.Connection(c))
		sum.Calls += of.Calls
		sum.Errors += of.Errors
		sum.Durations.Add(&of.Durations)
	}
	return sum
}

// callsOver returns the edge of a list between the same ends as e over a type of connection, or an
// edge without calls.
func callsOver(list []tracestore.CallEdge, e *tracestore.CallEdge, over tracestore.Connection) tracestore.CallEdge {
	for i := range list {
		if o := &list[i]; o.Parent == e.Parent && o.Child == e.Child && o.Peer == e.Peer && o.Connection == over {
			return *o
		}
	}
	return tracestore.CallEdge{}
}
