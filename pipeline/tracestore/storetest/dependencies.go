package storetest

import (
	"cmp"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	callsTenant = "calls" // of random calls, no two of which share an id: stores may decide about those by how they keep them
	minute      = uint64(time.Minute)
	firstMinute = base - base%minute
	callMinutes = 4 // that random calls start in
)

// calls answers from the definition: the calls of spans that are counted once, and with each counted once for every request it came in.
func (o *oracle) calls(tenant string, from, to time.Time) (least, most []tracestore.Edge) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok {
		return nil, nil
	}
	t := o.tenant(tenant)
	var parents storequery.ParentFinder
	var once, often storequery.CallCounter
	for _, trace := range t.traces {
		var spans []storequery.CallSpan
		requests := make(map[storequery.CallSpan][]int)
		for _, s := range trace {
			c := storequery.CallSpanOf(s)
			spans, requests[c] = append(spans, c), append(requests[c], t.requests[content(s)])
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
	return once.Edges(), often.Edges()
}

// peers answers from the definition as calls does. A span that came in several requests may be where nothing answers it.
func (o *oracle) peers(tenant string, from, to time.Time) (least, most []tracestore.Edge) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok {
		return nil, nil
	}
	t := o.tenant(tenant)
	var once, often storequery.PeerCounter
	for _, trace := range t.traces {
		for _, s := range trace {
			c := storequery.CallSpanOf(s)
			if c.Peer == "" || c.Start < first || c.Start > last {
				continue
			}
			n, answered := t.requests[content(s)], isAnswered(trace, s.SpanID)
			if !answered {
				once.AddCall(&c)
			}
			if answered && n == 1 {
				continue
			}
			for range n {
				often.AddCall(&c)
			}
		}
	}
	return once.Graph().Edges, often.Graph().Edges
}

// isAnswered reports whether a span of the client's side with an id is no call to a peer.
func isAnswered(trace []tracestore.Span, id otlpdata.SpanID) bool {
	return slices.ContainsFunc(trace, func(s tracestore.Span) bool {
		server := s.Kind == otlpdata.KindServer || s.Kind == otlpdata.KindConsumer
		return !id.IsZero() && s.ParentID == id || server && s.SpanID == id
	})
}

// content is equal for duplicates.
func content(s tracestore.Span) string {
	var out []byte
	for _, part := range []string{s.Resource.SchemaURL, s.Scope.SchemaURL, string(s.Resource.Raw), string(s.Scope.Raw), string(s.Raw)} {
		out = append(binary.AppendUvarint(out, uint64(len(part))), part...)
	}
	return string(out)
}

// checkCalls compares the calls within a window with what was sent.
func (s *suite) checkCalls(d tracestore.Dependencies, tenant string, from, to time.Time) {
	s.Helper()
	got, err := d.Dependencies(s.ctx, tenant, from, to)
	if err != nil {
		s.Fatalf("Dependencies(%q, %s, %s): %v", tenant, from, to, err)
	}
	least, most := s.sent.calls(tenant, from, to)
	if !got.Complete || wrongCalls(got.Edges, least, most) {
		s.Errorf("Dependencies(%q, %d, %d): complete is %t %s\n got %+v\nwant %+v\nto   %+v", tenant, from.UnixNano(), to.UnixNano(),
			got.Complete, got.Reason, got.Edges, least, most)
	}
	if p, ok := d.(tracestore.Peers); ok {
		s.checkPeers(p, tenant, from, to)
	}
}

// checkPeers compares the calls to peers within a window with what was sent.
func (s *suite) checkPeers(p tracestore.Peers, tenant string, from, to time.Time) {
	s.Helper()
	got, err := p.Peers(s.ctx, tenant, from, to)
	if err != nil {
		s.Fatalf("Peers(%q, %s, %s): %v", tenant, from, to, err)
	}
	least, most := s.sent.peers(tenant, from, to)
	if !got.Complete || wrongCalls(got.Edges, least, most) {
		s.Errorf("Peers(%q, %d, %d): complete is %t %s\n got %+v\nwant %+v\nto   %+v", tenant, from.UnixNano(), to.UnixNano(),
			got.Complete, got.Reason, got.Edges, least, most)
	}
}

// wrongCalls reports whether edges differ from the definition's. most has all edges of least.
func wrongCalls(got, least, most []tracestore.Edge) bool {
	for i := range got {
		if got[i].Calls == 0 || edgeLike(most, &got[i]).Calls == 0 || i > 0 && compareEdges(&got[i-1], &got[i]) >= 0 {
			return true
		}
	}
	for i := range most {
		l, g, m := edgeLike(least, &most[i]), edgeLike(got, &most[i]), &most[i]
		if g.Calls < l.Calls || g.Calls > m.Calls || g.Errors < l.Errors || g.Errors > m.Errors ||
			g.Duration < l.Duration || g.Duration > m.Duration {
			return true
		}
	}
	return false
}

// edgeLike returns the edge of a list between the same two as e, without calls where there is none.
func edgeLike(list []tracestore.Edge, e *tracestore.Edge) tracestore.Edge {
	for i := range list {
		if compareEdges(&list[i], e) == 0 {
			return list[i]
		}
	}
	return tracestore.Edge{}
}

// compareEdges orders edges as those of a Graph are.
func compareEdges(a, b *tracestore.Edge) int {
	messaging := 0
	switch {
	case b.Messaging && !a.Messaging:
		messaging = -1
	case a.Messaging && !b.Messaging:
		messaging = 1
	}
	return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Child, b.Child), messaging)
}

// call adds a span for counting calls, which lasts one microsecond.
func (r *request) call(trace, id, parent uint64, kind ptrace.SpanKind, start uint64) ptrace.Span {
	s := r.span(trace, id, "call", start)
	s.SetParentSpanID(pcommon.SpanID(spanID(parent)))
	s.SetKind(kind)
	return s
}

func checkDependencies(s *suite) {
	d, ok := s.store.(tracestore.Dependencies)
	if !ok {
		s.Skip("the store is no tracestore.Dependencies")
	}
	s.checkAllCalls(d)
	late := newRequest("b") // before its parent, which starts in another minute
	late.call(1, 2, 1, ptrace.SpanKindServer, firstMinute+minute-1).Status().SetCode(ptrace.StatusCodeError)
	late.call(1, 2, 1, ptrace.SpanKindServer, firstMinute+minute-1)
	late.call(1, 3, 2, ptrace.SpanKindProducer, firstMinute+minute).Attributes().PutStr("messaging.system", "queue")
	s.send("", late.traces)
	s.checkAllCalls(d)
	parent := newRequest("a")
	parent.call(1, 1, 0, ptrace.SpanKindClient, firstMinute-10*minute).Attributes().PutStr("peer.service", "b")
	parent.call(2, 1, 1, ptrace.SpanKindClient, firstMinute)           // its own parent
	lonely := parent.call(2, 5, 4, ptrace.SpanKindClient, firstMinute) // without one
	lonely.Attributes().PutStr("db.system", "base")
	lonely.Status().SetCode(ptrace.StatusCodeError)
	parent.call(2, 6, 4, ptrace.SpanKindClient, firstMinute+minute/2+1).Attributes().PutStr("peer.service", "d")
	s.send("", parent.traces)
	s.checkAllCalls(d)
	answer := newRequest("d") // much later
	answer.call(2, 7, 6, ptrace.SpanKindInternal, firstMinute+3*minute)
	s.send("", answer.traces)
	s.checkAllCalls(d)
	for _, r := range []*request{late, parent} {
		for range 2 {
			one := newRequest("c")
			one.call(1, 4, 3, ptrace.SpanKindConsumer, firstMinute+2*minute+30)
			one.call(1, 4, 3, ptrace.SpanKindConsumer, firstMinute+2*minute+30)
			s.send("other", one.traces) // has no parent there
			s.send("", one.traces)
		}
		s.send("", r.traces)
		s.checkAllCalls(d)
	}
	client, server := newRequest("a"), newRequest("b")
	client.call(3, 7, 0, ptrace.SpanKindClient, firstMinute+5)
	server.call(3, 7, 0, ptrace.SpanKindServer, firstMinute+6)
	server.call(3, 8, 7, ptrace.SpanKindInternal, firstMinute+7)
	client.traces.ResourceSpans().MoveAndAppendTo(server.traces.ResourceSpans())
	s.send("", server.traces)
	s.checkAllCalls(d)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := d.Dependencies(ctx, "", time.Time{}, time.Time{}); err == nil {
		s.Errorf("Dependencies answers although the context has ended")
	}
}

// checkAllCalls compares windows with bounds on, beside and between the ends of minutes.
func (s *suite) checkAllCalls(d tracestore.Dependencies) {
	s.Helper()
	bounds := []time.Time{{}}
	for _, ns := range []uint64{0, minute / 2, minute, 2 * minute, 3 * minute} {
		bounds = append(bounds, at(firstMinute+ns-1), at(firstMinute+ns), at(firstMinute+ns+1))
	}
	for _, tenant := range []string{"", "other", "nobody"} {
		for _, from := range bounds {
			for _, to := range bounds {
				s.checkCalls(d, tenant, from, to)
			}
		}
	}
}

// caller makes random calls. The spans of a trace come in several requests and in any order.
type caller struct {
	ids  []uint64 // still to be sent
	next uint64
}

const (
	callsOfTrace = 8
	callsAhead   = 64 // ids that come in any order
)

// request returns a request of some spans.
func (c *caller) request(g *generator) ptrace.Traces {
	td := ptrace.NewTraces()
	scopes := make(map[string]*request)
	for range 1 + g.IntN(10) {
		if len(c.ids) == 0 {
			for range callsAhead {
				c.next++
				c.ids = append(c.ids, c.next)
			}
			g.Shuffle(len(c.ids), func(i, j int) { c.ids[i], c.ids[j] = c.ids[j], c.ids[i] })
		}
		id := c.ids[0]
		c.ids = c.ids[1:]
		service := pick(g, "a", "b", "c")
		if scopes[service] == nil {
			r := newRequest(service)
			r.traces.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
			r.scope = td.ResourceSpans().At(td.ResourceSpans().Len() - 1).ScopeSpans().At(0)
			scopes[service] = r
		}
		c.span(g, scopes[service], id)
	}
	return td
}

func (c *caller) span(g *generator, r *request, id uint64) {
	trace, parent := id/callsOfTrace, uint64(0)
	if g.IntN(6) > 0 { // any of the trace, itself and spans that never come included
		parent = trace*callsOfTrace + g.Uint64N(callsOfTrace)
	}
	s := r.call(trace, id, parent, ptrace.SpanKind(g.IntN(6)), g.instant())
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(g.IntN(100)))
	s.Status().SetCode(ptrace.StatusCode(g.IntN(3)))
	s.TraceState().FromRaw(pick(g, tracestates()...))
	c.peer(g, s)
}

// peer lets some spans name a peer, or what looks like one.
func (c *caller) peer(g *generator, s ptrace.Span) {
	keys := storequery.PeerKeys()
	for range g.IntN(4) {
		key := keys[g.IntN(len(keys))]
		switch g.IntN(8) {
		case 0:
			s.Attributes().PutInt(key, 7)
		case 1:
			s.Attributes().PutStr(key, "")
		case 2:
			s.Attributes().PutStr(key, strings.Repeat("x", storequery.MaxPeerName+g.IntN(2)))
		case 3:
			s.Attributes().PutStr("no "+key, "queue")
		default:
			s.Attributes().PutStr(key, pick(g, "base", "queue", "a"))
		}
	}
}

// instant is a time within the minutes of random calls, often where one ends.
func (g *generator) instant() uint64 {
	if g.IntN(3) == 0 {
		return firstMinute + g.Uint64N(callMinutes*minute)
	}
	return firstMinute + g.Uint64N(callMinutes)*minute + g.Uint64N(3) - 1
}

// askCalls compares the answer for one random window.
func (s *suite) askCalls(g *generator, d tracestore.Dependencies) {
	s.Helper()
	var from, to time.Time
	if g.IntN(4) > 0 {
		from = at(g.instant())
	}
	if g.IntN(4) > 0 {
		to = at(g.instant())
	}
	if !from.IsZero() && !to.IsZero() && to.Before(from) && g.IntN(8) > 0 {
		from, to = to, from
	}
	s.checkCalls(d, callsTenant, from, to)
}

func checkRandomCalls(s *suite) {
	d, ok := s.store.(tracestore.Dependencies)
	if !ok {
		s.Skip("the store is no tracestore.Dependencies")
	}
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	var c caller
	var sent []*otlpdata.Batch
	for range 12 {
		for range 5 {
			b := s.encode(callsTenant, c.request(&g))
			s.sometimesAgain(&g, sent)
			s.consume(b)
			sent = append(sent, b)
		}
		for range 10 {
			s.askCalls(&g, d)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
	s.checkCalls(d, callsTenant, time.Time{}, time.Time{})
}

// allTenants are those of random requests and of random calls.
func allTenants() []string { return slices.Concat(tenants(), []string{callsTenant}) }
