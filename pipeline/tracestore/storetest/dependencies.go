package storetest

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
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
	callsTenant = "calls" // of random calls; no two share an id, because parents of shared ids may depend on the store
	minute      = uint64(time.Minute)
	firstMinute = base - base%minute
	callMinutes = 4 // minutes in which random calls start
)

// calls counts the calls by their definition: lower counts each span once, and upper counts it once
// for each request that contains it.
func (o *oracle) calls(tenant string, from, to time.Time) (lower, upper []tracestore.Edge) {
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
			spans, requests[c] = append(spans, c), append(requests[c], t.requests[identity(s)])
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

// peers counts the calls to peers by their definition, with lower and upper as in calls. A span
// from several requests may be stored in a place without its counterpart.
func (o *oracle) peers(tenant string, from, to time.Time) (lower, upper []tracestore.Edge) {
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
			n, answered := t.requests[identity(s)], isAnswered(trace, s.SpanID)
			if !answered {
				once.AddPeer(&c)
			}
			if answered && n == 1 {
				continue
			}
			for range n {
				often.AddPeer(&c)
			}
		}
	}
	return once.Graph().Edges, often.Graph().Edges
}

// isAnswered reports whether a span on the client side with an id has a counterpart, so that it is
// not a call to a peer.
func isAnswered(trace []tracestore.Span, id otlpdata.SpanID) bool {
	return slices.ContainsFunc(trace, func(s tracestore.Span) bool {
		server := s.Kind == otlpdata.KindServer || s.Kind == otlpdata.KindConsumer
		return !id.IsZero() && s.ParentID == id || server && s.SpanID == id
	})
}

// identity returns a string that is equal for duplicates and only for these.
func identity(s tracestore.Span) string {
	var out []byte
	for _, part := range []string{s.Resource.SchemaURL, s.Scope.SchemaURL, string(s.Resource.Raw), string(s.Scope.Raw), string(s.Raw)} {
		out = append(binary.AppendUvarint(out, uint64(len(part))), part...)
	}
	return string(out)
}

// checkCalls compares the calls within a window with those sent.
func (s *suite) checkCalls(d tracestore.Edges, tenant string, from, to time.Time) {
	s.Helper()
	got, err := d.Dependencies(s.ctx, tenant, from, to)
	if err != nil {
		s.Fatalf("Dependencies(%q, %s, %s): %v", tenant, from, to, err)
	}
	lower, upper := s.sent.calls(tenant, from, to)
	if !got.Complete() || edgesDiffer(got.Edges, lower, upper) {
		s.Errorf("Dependencies(%q, %d, %d): reasons are %v\n got %+v\nwant %+v\nto   %+v", tenant, from.UnixNano(), to.UnixNano(),
			got.Reasons, got.Edges, lower, upper)
	}
	if s.onlyDependencies(d) {
		return
	}
	s.checkPeers(d, tenant, from, to)
	s.checkEdges(d, tenant, tracestore.EdgeQuery{From: from, To: to})
}

// onlyDependencies reports whether the store is behind the protocol of other programs, which has
// neither peers nor edges.
func (s *suite) onlyDependencies(d tracestore.Edges) bool {
	_, aggregates := optional[tracestore.Aggregator](s, d)
	_, err := d.Peers(s.ctx, "", time.Time{}, time.Time{})
	return !aggregates && errors.Is(err, tracestore.ErrUnsupported)
}

// checkPeers compares the calls to peers within a window with those sent.
func (s *suite) checkPeers(p tracestore.Edges, tenant string, from, to time.Time) {
	s.Helper()
	got, err := p.Peers(s.ctx, tenant, from, to)
	if err != nil {
		s.Fatalf("Peers(%q, %s, %s): %v", tenant, from, to, err)
	}
	lower, upper := s.sent.peers(tenant, from, to)
	if !got.Complete() || edgesDiffer(got.Edges, lower, upper) {
		s.Errorf("Peers(%q, %d, %d): reasons are %v\n got %+v\nwant %+v\nto   %+v", tenant, from.UnixNano(), to.UnixNano(),
			got.Reasons, got.Edges, lower, upper)
	}
}

// edgesDiffer reports whether edges are not between lower and upper. upper has all edges of lower.
func edgesDiffer(got, lower, upper []tracestore.Edge) bool {
	for i := range got {
		if got[i].Calls == 0 || edgeBetween(upper, &got[i]).Calls == 0 || i > 0 && compareEdges(&got[i-1], &got[i]) >= 0 {
			return true
		}
	}
	for i := range upper {
		l, g, m := edgeBetween(lower, &upper[i]), edgeBetween(got, &upper[i]), &upper[i]
		if g.Calls < l.Calls || g.Calls > m.Calls || g.Errors < l.Errors || g.Errors > m.Errors ||
			g.Duration < l.Duration || g.Duration > m.Duration {
			return true
		}
	}
	return false
}

// edgeBetween returns the edge in a list with the same services as e, or an edge without calls.
func edgeBetween(list []tracestore.Edge, e *tracestore.Edge) tracestore.Edge {
	for i := range list {
		if compareEdges(&list[i], e) == 0 {
			return list[i]
		}
	}
	return tracestore.Edge{}
}

// compareEdges orders edges as in a Graph.
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

// call adds a span with a parent, a kind and a duration of one microsecond.
func (r *request) call(trace, id, parent uint64, kind ptrace.SpanKind, start uint64) ptrace.Span {
	s := r.span(trace, id, "call", start)
	s.SetParentSpanID(pcommon.SpanID(spanID(parent)))
	s.SetKind(kind)
	return s
}

func checkDependencies(s *suite) {
	d, ok := optional[tracestore.Edges](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Edges")
	}
	s.checkAllCalls(d)
	late := newRequest("b") // sent before its parent, which starts in another minute
	late.call(1, 2, 1, ptrace.SpanKindServer, firstMinute+minute-1).Status().SetCode(ptrace.StatusCodeError)
	late.call(1, 2, 1, ptrace.SpanKindServer, firstMinute+minute-1)
	late.call(1, 3, 2, ptrace.SpanKindProducer, firstMinute+minute).Attributes().PutStr("messaging.system", "queue")
	s.send("", late.traces)
	s.checkAllCalls(d)
	parent := newRequest("a")
	parent.call(1, 1, 0, ptrace.SpanKindClient, firstMinute-10*minute).Attributes().PutStr("peer.service", "b")
	parent.call(2, 1, 1, ptrace.SpanKindClient, firstMinute)           // own parent
	orphan := parent.call(2, 5, 4, ptrace.SpanKindClient, firstMinute) // no parent
	orphan.Attributes().PutStr("db.system", "base")
	orphan.Status().SetCode(ptrace.StatusCodeError)
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
			s.send("other", one.traces) // no parent in this tenant
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
		s.Errorf("Dependencies with a canceled context: no error")
	}
}

// checkAllCalls compares windows with bounds at, next to and between full minutes.
func (s *suite) checkAllCalls(d tracestore.Edges) {
	s.Helper()
	bounds := []time.Time{{}}
	for _, ns := range []uint64{0, minute / 2, minute, 2 * minute, 3 * minute} {
		bounds = append(bounds, at(firstMinute+ns-1), at(firstMinute+ns), at(firstMinute+ns+1))
	}
	for _, tenant := range []string{"", "other", "unknown"} {
		for _, from := range bounds {
			for _, to := range bounds {
				s.checkCalls(d, tenant, from, to)
			}
		}
	}
}

// callGenerator generates random calls. The spans of a trace are spread over several requests in
// random order.
type callGenerator struct {
	ids  []uint64 // not sent yet
	next uint64
}

const (
	callsPerTrace = 8
	shuffledIDs   = 64 // number of ids that are shuffled together
)

// request returns a request with some spans.
func (c *callGenerator) request(g *generator) ptrace.Traces {
	td := ptrace.NewTraces()
	scopes := make(map[string]*request)
	for range 1 + g.IntN(10) {
		if len(c.ids) == 0 {
			for range shuffledIDs {
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

func (c *callGenerator) span(g *generator, r *request, id uint64) {
	trace, parent := id/callsPerTrace, uint64(0)
	if g.IntN(6) > 0 { // any span id of the trace, including its own and ids that are never sent
		parent = trace*callsPerTrace + g.Uint64N(callsPerTrace)
	}
	s := r.call(trace, id, parent, ptrace.SpanKind(g.IntN(6)), g.instant())
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(g.IntN(100)))
	s.Status().SetCode(ptrace.StatusCode(g.IntN(3)))
	s.TraceState().FromRaw(pick(g, tracestates()...))
	c.peer(g, s)
}

// peer adds attributes that name a peer, or look similar, to some spans.
func (c *callGenerator) peer(g *generator, s ptrace.Span) {
	keys := append(storequery.EdgePeerKeys(otlpdata.KindClient), "http.method", "rpc.system", "rpc.grpc.status_code")
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

// instant returns a time within the minutes of the random calls, often near the end of a minute.
func (g *generator) instant() uint64 {
	if g.IntN(3) == 0 {
		return firstMinute + g.Uint64N(callMinutes*minute)
	}
	return firstMinute + g.Uint64N(callMinutes)*minute + g.Uint64N(3) - 1
}

// checkRandomCallQuery compares the calls within a random window.
func (s *suite) checkRandomCallQuery(g *generator, d tracestore.Edges) {
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
	d, ok := optional[tracestore.Edges](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Edges")
	}
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	var c callGenerator
	var sent []*otlpdata.Batch
	for range rounds(6, 3) {
		for range 5 {
			b := s.encode(callsTenant, c.request(&g))
			s.maybeResend(&g, sent)
			s.consume(b)
			sent = append(sent, b)
		}
		for range 10 {
			s.checkRandomCallQuery(&g, d)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
	s.checkCalls(d, callsTenant, time.Time{}, time.Time{})
}

// allTenants returns the tenants of random requests and random calls.
func allTenants() []string { return slices.Concat(tenants(), []string{callsTenant}) }
