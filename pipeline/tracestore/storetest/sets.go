package storetest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// planner is storequery.Find, or a wrong one.
type planner func(context.Context, tracestore.Reader, tracestore.Query, storequery.SpanSet, tracestore.Want) (*tracestore.Results, error)

// findSet runs a query of a span set to its end.
func (s *suite) findSet(q tracestore.Query, set storequery.SpanSet, want tracestore.Want) ([]tracestore.Result, tracestore.Outcome) {
	s.Helper()
	res, err := s.plan(s.ctx, s.store, q, set, want)
	return s.results(describeSet(q, set), res, err)
}

// checkSet compares the answer to a query of a span set with what traces say.
func (s *suite) checkSet(traces []whole, q tracestore.Query, set storequery.SpanSet, want tracestore.Want) []tracestore.Result {
	s.Helper()
	got, outcome := s.findSet(q, set, want)
	if !outcome.Complete {
		s.Errorf("Find(%s): incomplete without a budget: %s", describeSet(q, set), outcome.Reason)
	}
	s.sameResults(describeSet(q, set), got, findSet(traces, q, set))
	for _, r := range got {
		s.checkResult(q.Tenant, r, want)
	}
	return got
}

// named selects spans by their name.
func named(name string) storequery.Select {
	return storequery.Select{Where: property(tracestore.Name, name)}
}

func descendant(ancestors, spans storequery.SpanSet) storequery.SpanSet {
	return storequery.Descendant{Ancestors: ancestors, Spans: spans}
}

func child(parents, spans storequery.SpanSet) storequery.SpanSet {
	return storequery.Child{Parents: parents, Spans: spans}
}

func and(left, right storequery.SpanSet) storequery.SpanSet {
	return storequery.And{Left: left, Right: right}
}

func or(left, right storequery.SpanSet) storequery.SpanSet {
	return storequery.Or{Left: left, Right: right}
}

func number(p tracestore.Place, op tracestore.Op, n float64) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: op, Value: tracestore.Number(n)}
}

// kin sends a span in a request of its own.
func (s *suite) kin(trace, id, parent uint64, service, name string, kind ptrace.SpanKind, start uint64) {
	s.Helper()
	r := newRequest(service)
	sp := r.span(trace, id, name, base+start)
	sp.SetParentSpanID(pcommon.SpanID(spanID(parent)))
	sp.SetKind(kind)
	s.send("", r.traces)
}

// sendKin sends traces whose structure matters: parents that come late and in later requests, sides of a call that share an id, circles,
// orphans and duplicates.
func (s *suite) sendKin() {
	s.Helper()
	const internal, client, server = ptrace.SpanKindInternal, ptrace.SpanKindClient, ptrace.SpanKindServer
	s.kin(1, 3, 2, "x", "c", internal, 30)
	s.kin(1, 1, 0, "x", "a", internal, 10)
	s.kin(1, 2, 1, "x", "b", internal, 20)
	s.kin(2, 2, 1, "x", "a", client, 5) // an orphan, and above its other side
	s.kin(2, 2, 0, "y", "b", server, 6)
	s.kin(2, 3, 2, "y", "c", internal, 7)
	s.kin(3, 1, 2, "x", "a", internal, 40)
	s.kin(3, 2, 1, "x", "b", internal, 41)
	s.kin(4, 1, 1, "x", "a", internal, 50) // its own parent
	s.kin(5, 1, 0, "x", "a", internal, 60)
	s.kin(5, 1, 0, "x", "a", internal, 60)
	s.kin(5, 4, 9, "x", "c", internal, 61)
	s.kin(6, 1, 0, "x", "c", internal, 1)
	s.kin(6, 2, 1, "x", "a", internal, 2000)
	s.kin(7, 7, 0, "x", "a", internal, 70)
	s.kin(7, 7, 7, "x", "a", internal, 71) // its parent has its id
	other := newRequest("x")
	other.span(1, 1, "z", base)
	s.send("other", other.traces)
}

func checkSets(s *suite) {
	s.sendKin()
	traces := s.sent.wholes(s, "")
	a, b, c := named("a"), named("b"), named("c")
	long := storequery.Select{Where: number(tracestore.TraceDuration, tracestore.Ge, 2000)}
	rooted := storequery.Select{Where: tracestore.And{property(tracestore.Name, "c"), property(tracestore.RootName, "a")}}
	mixed := storequery.Select{Where: tracestore.Or{property(tracestore.Name, "b"), property(tracestore.RootName, "c")}}
	unlike := storequery.Select{Where: tracestore.Not{Expr: property(tracestore.RootService, "x")}}
	for _, ask := range []struct {
		set  storequery.SpanSet
		want []uint64 // newest first
	}{
		{nil, []uint64{6, 7, 5, 4, 3, 1, 2}},
		{descendant(a, c), []uint64{1, 2}},
		{child(a, c), nil},
		{child(a, b), []uint64{3, 1, 2}},
		{child(b, c), []uint64{1, 2}},
		{descendant(a, a), []uint64{7}},
		{descendant(b, a), []uint64{3}},
		{descendant(c, a), []uint64{6}},
		{descendant(descendant(a, b), c), []uint64{1, 2}},
		{descendant(a, descendant(b, c)), []uint64{1, 2}},
		{and(a, b), []uint64{3, 1, 2}},
		{and(a, c), []uint64{6, 5, 1, 2}},
		{and(a, named("z")), nil},
		{or(b, and(c, named("z"))), []uint64{3, 1, 2}},
		{or(b, c), []uint64{5, 3, 1, 2, 6}},
		{long, []uint64{6}},
		{rooted, []uint64{5, 1}},
		{mixed, []uint64{6, 3, 1, 2}},
		{unlike, []uint64{2}},
		{and(unlike, a), []uint64{2}},
		{descendant(a, rooted), []uint64{1}},
		{storequery.Select{Where: tracestore.Or{}}, nil},
	} {
		for _, want := range []tracestore.Want{tracestore.WantIDs, tracestore.WantSummaries, tracestore.WantFull} {
			var got []uint64
			for _, r := range s.checkSet(traces, tracestore.Query{}, ask.set, want) {
				got = append(got, uint64(r.ID[15]))
			}
			if !slices.Equal(got, ask.want) {
				s.Errorf("Find(%s): traces %d, want %d", describeSet(tracestore.Query{}, ask.set), got, ask.want)
			}
		}
		s.checkSet(s.sent.wholes(s, "other"), tracestore.Query{Tenant: "other"}, ask.set, tracestore.WantFull)
	}
}

// boundedSets are asked in all ways of bounding an answer: one for each way of finding it.
func boundedSets() []storequery.SpanSet {
	spread := number(tracestore.TraceDuration, tracestore.Gt, 1200)
	return []storequery.SpanSet{
		named("even"),
		storequery.Select{Where: tracestore.And{property(tracestore.Name, "even"), spread}},
		storequery.Select{Where: tracestore.Or{property(tracestore.Name, "last"), spread}},
		descendant(named("even"), named("odd")),
		and(named("even"), named("last")),
	}
}

// sendWide sends traces whose spans are spread, so that windows and cursors cut them, and of which the newest span is not always chosen.
func (s *suite) sendWide() {
	s.Helper()
	for round := range uint64(4) {
		r := newRequest("wide")
		for trace := range uint64(20) {
			name := [...]string{"even", "odd"}[(trace+round)%2]
			switch {
			case trace%5 == 4:
				name = "plain"
			case round == 3 && trace%6 == 0:
				name = "last"
			}
			sp := r.span(trace, round+1, name, base+round*50*(trace%3)+trace*(round+3)%9)
			sp.SetParentSpanID(pcommon.SpanID(spanID(round)))
		}
		s.send("", r.traces)
	}
}

func checkSetBounds(s *suite) {
	s.sendWide()
	traces := s.sent.wholes(s, "")
	for _, set := range boundedSets() {
		ask := func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantIDs)
		}
		var whole int
		for _, limit := range []int{0, 1, 3, 19, 20} {
			whole = max(whole, len(s.checkSet(traces, tracestore.Query{Limit: limit}, set, tracestore.WantFull)))
		}
		if whole < 3 || whole > 19 {
			s.Errorf("Find(%s): %d traces, want some and not all", describeSet(tracestore.Query{}, set), whole)
		}
		for _, size := range []int{1, 2, 7} {
			s.pagesOf(tracestore.Query{}, size, findSet(traces, tracestore.Query{}, set), ask)
		}
		for _, spans := range []int{1, 9, 1000} {
			s.stepsOf(tracestore.Query{Budget: tracestore.Budget{Spans: spans}}, findSet(traces, tracestore.Query{}, set), ask)
		}
		for _, to := range []uint64{base, base + 4, base + 55, base + 105, base + 1000} {
			for _, from := range []time.Time{{}, at(base + 3), at(base + 53)} {
				q := tracestore.Query{From: from, To: at(to), Where: tracestore.Not{Expr: property(tracestore.Kind, "client")}}
				s.checkSet(traces, q, set, tracestore.WantSummaries)
				s.pagesOf(q, 2, findSet(traces, q, set), ask)
			}
		}
	}
}

// checkLongSets: a trace of which only a part is looked at is told, and a long chain takes no longer than another trace of its length.
func checkLongSets(s *suite) {
	const spans = 5000
	r := newRequest("long")
	r.span(1, 1, "top", base)
	for i := range uint64(spans - 1) {
		r.span(1, i+2, "link", base+i+1).SetParentSpanID(pcommon.SpanID(spanID(i + 1)))
	}
	r.span(1, spans+1, "end", base+spans).SetParentSpanID(pcommon.SpanID(spanID(spans)))
	r.span(2, 1, "end", base)
	s.send("", r.traces)
	set := descendant(named("top"), named("end"))
	q := tracestore.Query{}
	got, outcome := s.findSet(q, set, tracestore.WantFull)
	s.sameResults(describeSet(q, set), got, []tracestore.Result{{ID: traceID(1), Start: base + spans}})
	if !outcome.Complete || outcome.Scanned < spans {
		s.Errorf("the outcome is %+v", outcome)
	}
	q.Budget.TraceSpans = 100
	if _, outcome := s.findSet(q, set, tracestore.WantIDs); outcome.Complete || outcome.Reason == "" {
		s.Errorf("100 spans of a trace are of use, and the outcome is %+v", outcome)
	}
}

// checkRareSets: among many traces that may be results few are.
func checkRareSets(s *suite) {
	r := newRequest("rare")
	for trace := range uint64(200) {
		name := "often"
		if trace%41 == 5 {
			name = "rare"
		}
		r.span(trace, 1, name, base+500-trace)
		r.span(trace, 2, "often", base+trace/3).SetParentSpanID(pcommon.SpanID(spanID(1)))
		r.span(trace, 3, "often", base+400).SetParentSpanID(pcommon.SpanID(spanID(4)))
	}
	s.send("", r.traces)
	traces := s.sent.wholes(s, "")
	for _, set := range []storequery.SpanSet{
		descendant(named("rare"), named("often")), and(named("often"), named("rare")), and(named("often"), named("none")),
		and(or(named("often"), named("rare")), descendant(named("rare"), named("often"))),
		descendant(named("rare"), nil), or(descendant(named("rare"), nil), descendant(named("none"), nil)),
	} {
		ask := func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantIDs)
		}
		for _, q := range []tracestore.Query{{}, {To: at(base + 50)}, {From: at(base + 20), To: at(base + 450)}} {
			whole := s.checkSet(traces, q, set, tracestore.WantFull)
			for _, limit := range []int{1, 3, 4} {
				q.Limit = limit
				s.checkSet(traces, q, set, tracestore.WantSummaries)
				s.pagesOf(q, limit, whole, ask)
			}
			q.Limit, q.Budget.Spans = 0, 250
			s.stepsOf(q, whole, ask)
		}
	}
}

func checkSetEnds(s *suite) {
	s.sendWide()
	for _, set := range boundedSets() {
		ctx, cancel := context.WithCancel(s.ctx)
		res, err := s.plan(ctx, s.store, tracestore.Query{}, set, tracestore.WantFull)
		if err != nil {
			s.Fatalf("Find: %v", err)
		}
		if n, err := drain(res, cancel); err != nil && !errors.Is(err, context.Canceled) {
			s.Errorf("Find: after %d results: %v, want context.Canceled", n, err)
		} else if err != nil && res.Outcome().Complete {
			s.Errorf("after %d results the context ended, and the outcome says complete", n)
		}
		if res, err = s.plan(ctx, s.store, tracestore.Query{}, set, tracestore.WantIDs); err == nil {
			_, err = drain(res, func() {})
		}
		if !errors.Is(err, context.Canceled) {
			s.Errorf("Find with an ended context: %v, want context.Canceled", err)
		}
		cancel()
		if res, err = s.plan(s.ctx, s.store, tracestore.Query{}, set, tracestore.WantSummaries); err != nil {
			s.Fatalf("Find: %v", err)
		}
		if before := res.Outcome(); before.Complete {
			s.Errorf("nothing was read, and the outcome says complete")
		}
		for range res.All {
			break
		}
		if o := res.Outcome(); o.Complete || o.Next.Set {
			s.Errorf("the caller stopped after one result, and the outcome says %+v", o)
		}
	}
}

// set returns a span set of at most the given depth.
func (g *generator) set(depth int) storequery.SpanSet {
	if depth == 0 {
		return storequery.Select{Where: g.expr(2)}
	}
	left, right := g.set(depth-1), g.set(depth-1)
	switch g.IntN(7) {
	case 0:
		return and(left, right)
	case 1:
		return or(left, right)
	case 2:
		return child(left, right)
	case 3, 4:
		return descendant(left, right)
	}
	return left
}

// askSet compares the answers to one random query of a span set.
func (s *suite) askSet(g *generator) {
	s.Helper()
	tenant := g.tenant()
	s.askSetOf(g, tenant, s.sent.wholes(s, tenant), g.set(2))
}

// askSetOf bounds the answer at random.
func (s *suite) askSetOf(g *generator, tenant string, traces []whole, set storequery.SpanSet) {
	s.Helper()
	q := tracestore.Query{Tenant: tenant}
	if g.IntN(3) == 0 {
		q.Where = g.expr(1)
	}
	if g.IntN(3) == 0 {
		q.From = at(base + g.Uint64N(randomTimes))
	}
	if g.IntN(3) == 0 {
		q.To = at(base + g.Uint64N(randomTimes))
	}
	switch g.IntN(10) {
	case 0:
		s.pagesOf(q, 1+g.IntN(9), findSet(traces, q, set), func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantIDs)
		})
		return
	case 1:
		q.Limit, q.Budget.Spans = g.IntN(4), 30+g.IntN(100)
		s.stepsOf(q, findSet(traces, unbounded(q), set), func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantFull)
		})
		return
	case 2, 3, 4:
		q.After = tracestore.Cursor{Start: base + g.Uint64N(randomTimes), ID: traceID(g.Uint64N(randomTraces)), Set: true}
	}
	q.Limit = g.IntN(12)
	s.checkSet(traces, q, set, tracestore.Want(g.IntN(3)))
}

// unbounded returns a query for everything that q finds at last.
func unbounded(q tracestore.Query) tracestore.Query {
	q.Limit = 0
	return q
}

func checkRandomSets(s *suite) {
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	for range 8 {
		for range 8 {
			s.consume(s.encode(g.tenant(), g.related()))
		}
		for range 15 {
			s.askSet(&g)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}

// related is a request whose spans are often parents of each other.
func (g *generator) related() ptrace.Traces {
	const ids = 8
	td := g.request()
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, sp := range ss.Spans().All() {
				sp.SetSpanID(pcommon.SpanID(spanID(1 + g.Uint64N(ids))))
				if g.IntN(4) > 0 {
					sp.SetParentSpanID(pcommon.SpanID(spanID(1 + g.Uint64N(ids))))
				}
			}
		}
	}
	return td
}

// sameChoice reports whether two sets choose the same spans.
func sameChoice(traces []whole, a, b storequery.SpanSet) bool {
	for i := range traces {
		if !maps.Equal(traces[i].chosen(a), traces[i].chosen(b)) {
			return false
		}
	}
	return true
}

// AskSets writes random spans to all stores, asks them n random span sets, and compares their answers with the definition. as says what to
// ask instead of a set, and what that must mean: a set that was written down and read again means what it did before. What happens depends
// on the seed only.
func AskSets(
	tb testing.TB, seed uint64, n int, as func(storequery.SpanSet) (meant, asked storequery.SpanSet), stores ...Subject,
) {
	tb.Helper()
	s := newSuite(tb, nil)
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	for range 16 {
		b := s.encode("", g.related())
		for _, store := range stores {
			s.store = store
			s.consume(b)
		}
	}
	traces := s.sent.wholes(s, "")
	for i := range n {
		meant, set := as(g.set(g.IntN(4)))
		if !sameChoice(traces, meant, set) {
			tb.Errorf("%s is not %s", describeSet(tracestore.Query{}, set), describeSet(tracestore.Query{}, meant))
		}
		questions := g.Uint64()
		for _, store := range stores {
			s.store = store
			s.askSetOf(&generator{rand.New(rand.NewPCG(questions, 3))}, "", traces, set)
		}
		if tb.Failed() {
			tb.Fatalf("span set %d of seed %d", i, seed)
		}
	}
}
