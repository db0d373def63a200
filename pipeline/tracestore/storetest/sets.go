package storetest

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// planner is storequery.Find or, in tests of the suite, an incorrect variant of it.
type planner func(context.Context, tracestore.Reader, tracestore.Query, storequery.SpanSet, tracestore.Want) (*tracestore.Results, error)

// findSet runs a query with a span set.
func (s *suite) findSet(q tracestore.Query, set storequery.SpanSet, want tracestore.Want) ([]tracestore.Result, tracestore.Outcome) {
	s.Helper()
	res, err := s.plan(s.ctx, s.store, q, set, want)
	return s.results(describeSet(q, set), res, err)
}

// checkSet compares the results of a query with a span set with the expected results for traces.
func (s *suite) checkSet(traces []fullTrace, q tracestore.Query, set storequery.SpanSet, want tracestore.Want) []tracestore.Result {
	s.Helper()
	got, outcome := s.findSet(q, set, want)
	if !outcome.Complete() {
		s.Errorf("Find(%s): incomplete although there is no budget: %s", describeSet(q, set), outcome.Text())
	}
	s.sameResults(describeSet(q, set), got, findSet(traces, q, set))
	for _, r := range got {
		s.checkResult(q.Tenant, r, want)
	}
	return got
}

// compareSteps continues one storequery.Search each time its budget is exhausted, and compares all
// results with want.
func (s *suite) compareSteps(q tracestore.Query, want []tracestore.Result, set storequery.SpanSet, content tracestore.Want) {
	s.Helper()
	search := storequery.NewSearch(s.store, set, content)
	defer search.Close()
	s.compareBudgetPages(q, want, func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
		s.Helper()
		res, err := search.Find(s.ctx, q)
		got, outcome := s.results(describeSet(q, set), res, err)
		for _, r := range got {
			s.checkResult(q.Tenant, r, content)
		}
		return got, outcome
	})
}

// named selects spans by name.
func named(name string) storequery.Select {
	return storequery.Select{Where: property(tracestore.Name, name)}
}

func descendant(ancestors, spans storequery.SpanSet) storequery.SpanSet {
	return storequery.Relation{Left: ancestors, Right: spans}
}

func child(parents, spans storequery.SpanSet) storequery.SpanSet {
	return storequery.Relation{Kind: storequery.Child, Left: parents, Right: spans}
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

// sendSpan sends one request with one span.
func (s *suite) sendSpan(trace, id, parent uint64, service, name string, kind ptrace.SpanKind, start uint64) {
	s.Helper()
	r := newRequest(service)
	sp := r.span(trace, id, name, base+start)
	sp.SetParentSpanID(pcommon.SpanID(spanID(parent)))
	sp.SetKind(kind)
	s.send("", r.traces)
}

// sendRelated sends traces with various structures: parents in later requests, two sides of a call
// with the same id, cycles, orphans and duplicates.
func (s *suite) sendRelated() {
	s.Helper()
	const internal, client, server = ptrace.SpanKindInternal, ptrace.SpanKindClient, ptrace.SpanKindServer
	s.sendSpan(1, 3, 2, "x", "c", internal, 30)
	s.sendSpan(1, 1, 0, "x", "a", internal, 10)
	s.sendSpan(1, 2, 1, "x", "b", internal, 20)
	s.sendSpan(2, 2, 1, "x", "a", client, 5) // orphan, and parent of its server side
	s.sendSpan(2, 2, 0, "y", "b", server, 6)
	s.sendSpan(2, 3, 2, "y", "c", internal, 7)
	s.sendSpan(3, 1, 2, "x", "a", internal, 40)
	s.sendSpan(3, 2, 1, "x", "b", internal, 41)
	s.sendSpan(4, 1, 1, "x", "a", internal, 50) // own parent
	s.sendSpan(5, 1, 0, "x", "a", internal, 60)
	s.sendSpan(5, 1, 0, "x", "a", internal, 60)
	s.sendSpan(5, 4, 9, "x", "c", internal, 61)
	s.sendSpan(6, 1, 0, "x", "c", internal, 1)
	s.sendSpan(6, 2, 1, "x", "a", internal, 2000)
	s.sendSpan(7, 7, 0, "x", "a", internal, 70)
	s.sendSpan(7, 7, 7, "x", "a", internal, 71) // parent with the same id
	other := newRequest("x")
	other.span(1, 1, "z", base)
	s.send("other", other.traces)
}

// ofTrace selects the spans of a trace by its id.
func ofTrace(id uint64) storequery.SpanSet {
	raw := traceID(id)
	return storequery.Select{Where: property(tracestore.TraceID, hex.EncodeToString(raw[:]))}
}

// idLike holds for traces whose ids match a pattern.
func idLike(pattern string) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.TraceID}, Op: tracestore.Like,
		Value: tracestore.Pattern(regexp.MustCompile(pattern))}
}

func checkSets(s *suite) {
	s.sendRelated()
	traces := s.sent.fullTraces(s, "")
	spansA, spansB, spansC := named("a"), named("b"), named("c")
	long := storequery.Select{Where: number(tracestore.TraceDuration, tracestore.Ge, 2000)}
	rooted := storequery.Select{Where: tracestore.And{property(tracestore.Name, "c"), property(tracestore.RootName, "a")}}
	mixed := storequery.Select{Where: tracestore.Or{property(tracestore.Name, "b"), property(tracestore.RootName, "c")}}
	unlike := storequery.Select{Where: tracestore.Not{Expr: property(tracestore.RootService, "x")}}
	for _, c := range []struct {
		set  storequery.SpanSet
		want []uint64 // newest first
	}{
		{nil, []uint64{6, 7, 5, 4, 3, 1, 2}},
		{descendant(spansA, spansC), []uint64{1, 2}},
		{child(spansA, spansC), nil},
		{child(spansA, spansB), []uint64{3, 1, 2}},
		{child(spansB, spansC), []uint64{1, 2}},
		{descendant(spansA, spansA), []uint64{7}},
		{descendant(spansB, spansA), []uint64{3}},
		{descendant(spansC, spansA), []uint64{6}},
		{descendant(descendant(spansA, spansB), spansC), []uint64{1, 2}},
		{descendant(spansA, descendant(spansB, spansC)), []uint64{1, 2}},
		{and(spansA, spansB), []uint64{3, 1, 2}},
		{and(spansA, spansC), []uint64{6, 5, 1, 2}},
		{and(spansA, named("z")), nil},
		{or(spansB, and(spansC, named("z"))), []uint64{3, 1, 2}},
		{or(spansB, spansC), []uint64{5, 3, 1, 2, 6}},
		{long, []uint64{6}},
		{rooted, []uint64{5, 1}},
		{storequery.Select{Where: number(tracestore.ChildCount, tracestore.Ge, 1)}, []uint64{7, 3, 1, 2, 6}},
		{storequery.Select{Where: tracestore.And{number(tracestore.ChildCount, tracestore.Eq, 0), property(tracestore.Name, "a")}},
			[]uint64{6, 7, 5, 4}},
		{mixed, []uint64{6, 3, 1, 2}},
		{unlike, []uint64{2}},
		{and(unlike, spansA), []uint64{2}},
		{ofTrace(3), []uint64{3}},
		{child(and(ofTrace(3), nil), spansB), []uint64{3}},
		{ofTrace(99), nil},
		{storequery.Select{Where: idLike("^0{31}[1-3]$")}, []uint64{3, 1, 2}},
		{or(ofTrace(3), and(ofTrace(1), spansB)), []uint64{3, 1}},
		{storequery.Select{Where: tracestore.And{idLike("0[16]$"), property(tracestore.Name, "c")}}, []uint64{1, 6}},
		{storequery.Select{Where: tracestore.Not{Expr: idLike("0[1-3]$")}}, []uint64{6, 7, 5, 4}},
		{storequery.Select{Where: tracestore.And{idLike("0[2-5]$"), unlike.Where}}, []uint64{2}},
		{storequery.Select{Where: tracestore.Or{idLike("05$"), long.Where}}, []uint64{6, 5}},
		{storequery.Select{Where: tracestore.Or{idLike("05$"), property(tracestore.Name, "b")}}, []uint64{5, 3, 1, 2}},
		{storequery.Relation{Kind: storequery.Ancestor, Left: spansC, Right: spansA}, []uint64{1, 2}},
		{storequery.Relation{Kind: storequery.Ancestor, Left: spansA, Right: spansA}, []uint64{7}},
		{storequery.Relation{Kind: storequery.Parent, Left: spansB, Right: spansA}, []uint64{3, 1, 2}},
		{storequery.Relation{Kind: storequery.Sibling, Left: spansC, Right: spansA}, nil},
		{storequery.Relation{Mode: storequery.Unrelated, Left: spansA, Right: spansC}, []uint64{5, 6}},
		{storequery.Relation{Kind: storequery.Child, Mode: storequery.Both, Left: spansA, Right: spansB}, []uint64{3, 1, 2}},
		{descendant(spansA, rooted), []uint64{1}},
		{storequery.Select{Where: tracestore.Or{}}, nil},
	} {
		for _, want := range []tracestore.Want{tracestore.WantIDs, tracestore.WantSummaries, tracestore.WantFull} {
			var got []uint64
			for _, r := range s.checkSet(traces, tracestore.Query{}, c.set, want) {
				got = append(got, uint64(r.ID[15]))
			}
			if !slices.Equal(got, c.want) {
				s.Errorf("Find(%s): traces %d, want %d", describeSet(tracestore.Query{}, c.set), got, c.want)
			}
		}
		s.checkSet(s.sent.fullTraces(s, "other"), tracestore.Query{Tenant: "other"}, c.set, tracestore.WantFull)
	}
}

// boundedSets returns one set for each kind of search.
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

// sendSpreadTraces sends traces whose spans are spread over time, so that windows and cursors
// divide them. The newest span of a trace is not always selected.
func (s *suite) sendSpreadTraces() {
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
	s.sendSpreadTraces()
	traces := s.sent.fullTraces(s, "")
	for _, set := range boundedSets() {
		find := func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantIDs)
		}
		var matches int
		for _, limit := range []int{0, 1, 3, 19, 20} {
			matches = max(matches, len(s.checkSet(traces, tracestore.Query{Limit: limit}, set, tracestore.WantFull)))
		}
		if matches < 3 || matches > 19 {
			s.Errorf("Find(%s): %d traces, want 3 to 19", describeSet(tracestore.Query{}, set), matches)
		}
		for _, size := range []int{1, 2, 7} {
			s.comparePagesOf(tracestore.Query{}, size, findSet(traces, tracestore.Query{}, set), find)
		}
		for _, spans := range []int{1, 9, 1000} {
			q := tracestore.Query{Budget: tracestore.Budget{Spans: spans}}
			s.compareBudgetPages(q, findSet(traces, q, set), find)
			s.compareSteps(q, findSet(traces, q, set), set, tracestore.WantFull)
		}
		for _, to := range []uint64{base, base + 4, base + 55, base + 105, base + 1000} {
			for _, from := range []time.Time{{}, at(base + 3), at(base + 53)} {
				q := tracestore.Query{From: from, To: at(to), Where: tracestore.Not{Expr: property(tracestore.Kind, "client")}}
				s.checkSet(traces, q, set, tracestore.WantSummaries)
				s.comparePagesOf(q, 2, findSet(traces, q, set), find)
			}
		}
	}
}

// checkLongSets checks that a long chain of spans is searched in linear time, and that an outcome
// is incomplete if only a part of a trace was examined.
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
	if !outcome.Complete() || outcome.Scanned < spans {
		s.Errorf("outcome %+v, want complete after at least %d spans", outcome, spans)
	}
	q.Budget.TraceSpans = 100
	if _, outcome := s.findSet(q, set, tracestore.WantIDs); !outcome.Has(tracestore.ReasonLimit) {
		s.Errorf("outcome with a budget of 100 spans for each trace: %+v, want incomplete", outcome)
	}
}

// checkRareSets checks sets that match few of many candidates.
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
	traces := s.sent.fullTraces(s, "")
	for _, set := range []storequery.SpanSet{
		descendant(named("rare"), named("often")), and(named("often"), named("rare")), and(named("often"), named("none")),
		and(or(named("often"), named("rare")), descendant(named("rare"), named("often"))),
		descendant(named("rare"), nil), or(descendant(named("rare"), nil), descendant(named("none"), nil)),
	} {
		find := func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantIDs)
		}
		for _, q := range []tracestore.Query{{}, {To: at(base + 50)}, {From: at(base + 20), To: at(base + 450)}} {
			all := s.checkSet(traces, q, set, tracestore.WantFull)
			for _, limit := range []int{1, 3, 4} {
				q.Limit = limit
				s.checkSet(traces, q, set, tracestore.WantSummaries)
				s.comparePagesOf(q, limit, all, find)
			}
			q.Limit, q.Budget.Spans = 0, 250
			s.compareBudgetPages(q, all, find)
			s.compareSteps(q, all, set, tracestore.WantIDs)
		}
	}
}

func checkSetEnds(s *suite) {
	s.sendSpreadTraces()
	for _, set := range boundedSets() {
		ctx, cancel := context.WithCancel(s.ctx)
		res, err := s.plan(ctx, s.store, tracestore.Query{}, set, tracestore.WantFull)
		if err != nil {
			s.Fatalf("Find: %v", err)
		}
		if n, err := drain(res, cancel); err != nil && !errors.Is(err, context.Canceled) {
			s.Errorf("Find: after %d results: %v, want context.Canceled", n, err)
		} else if err != nil && res.Outcome().Complete() {
			s.Errorf("outcome is complete after cancellation at %d results", n)
		}
		if res, err = s.plan(ctx, s.store, tracestore.Query{}, set, tracestore.WantIDs); err == nil {
			_, err = drain(res, func() {})
		}
		if !errors.Is(err, context.Canceled) {
			s.Errorf("Find with a canceled context: error %v, want context.Canceled", err)
		}
		cancel()
		if res, err = s.plan(s.ctx, s.store, tracestore.Query{}, set, tracestore.WantSummaries); err != nil {
			s.Fatalf("Find: %v", err)
		}
		if before := res.Outcome(); !before.Has(tracestore.ReasonUnread) {
			s.Errorf("outcome before any result was read: %+v, want ReasonUnread", before)
		}
		for range res.All {
			break
		}
		if o := res.Outcome(); !o.Has(tracestore.ReasonUnread) || o.Next.Set {
			s.Errorf("outcome after the caller stopped: %+v, want ReasonUnread", o)
		}
	}
}

// set returns a span set of at most the given depth.
func (g *generator) set(depth int) storequery.SpanSet {
	if depth == 0 {
		where := g.expr(2)
		if g.IntN(4) == 0 {
			c := g.cond()
			c.Field.Place = tracestore.TraceDuration + tracestore.Place(g.IntN(len(tracestore.Places())-int(tracestore.TraceDuration)))
			where = tracestore.And{where, c}
		}
		if g.IntN(12) == 0 {
			where = tracestore.And{where, ofTrace(g.Uint64N(randomTraces)).(storequery.Select).Where}
		}
		return storequery.Select{Where: g.computed(where)}
	}
	left, right := g.set(depth-1), g.set(depth-1)
	switch g.IntN(7) {
	case 0:
		return and(left, right)
	case 1:
		return or(left, right)
	case 2, 3, 4:
		return g.relation(left, right)
	case 5:
		return g.pipeline(left)
	}
	return left
}

// computed adds, sometimes, a condition that is evaluated on whole traces.
func (g *generator) computed(e tracestore.Expr) tracestore.Expr {
	switch g.IntN(6) {
	case 0:
		return tracestore.And{e, g.condOn(true)}
	case 1:
		return tracestore.Or{e, g.compare()}
	case 2:
		return tracestore.And{e, tracestore.Not{Expr: g.compare()}}
	}
	return e
}

func (g *generator) pipeline(of storequery.SpanSet) storequery.SpanSet {
	p := storequery.Pipeline{Set: of}
	for range 1 + g.IntN(3) {
		var stage storequery.Stage = storequery.Coalesce{}
		switch g.IntN(6) {
		case 0, 1:
			stage = storequery.GroupBy{By: g.operand(2)}
		case 2:
			stage = storequery.Refine{Set: g.set(0)}
			if g.IntN(2) == 0 {
				stage = storequery.Refine{Set: g.relation(storequery.Select{}, g.set(0))}
			}
		case 3, 4:
			f := storequery.Filter{Op: tracestore.Op(g.IntN(int(tracestore.Ge) + 1)), Left: storequery.Aggregate{Func: storequery.Count},
				Right: tracestore.Constant{Value: otlpdata.IntValue(int64(g.IntN(4)))}}
			if g.IntN(2) == 0 {
				f.Left = storequery.Aggregate{Func: pick(g, storequery.Avg, storequery.Min, storequery.Max, storequery.Sum), Of: g.operand(1)}
			}
			stage = f
		}
		p.Stages = append(p.Stages, stage)
	}
	return p
}

// operand returns an operand of at most the given depth.
func (g *generator) operand(depth int) tracestore.Operand {
	switch g.IntN(4) {
	case 0:
		return tracestore.Constant{Value: pick(g, otlpdata.IntValue(2), otlpdata.DoubleValue(1.5), otlpdata.IntValue(-1))}
	case 1:
		if depth > 0 {
			return tracestore.Arithmetic{Op: pick(g, []byte("+-*/%^")...), Left: g.operand(depth - 1), Right: g.operand(depth - 1)}
		}
	case 2:
		return tracestore.Field{Place: pick(g, tracestore.Duration, tracestore.NestedLeft, tracestore.ChildCount, tracestore.Name)}
	}
	return g.condOn(g.IntN(3) == 0).Field
}

func (g *generator) compare() tracestore.Expr {
	c := tracestore.Compare{Op: tracestore.Op(g.IntN(int(tracestore.Ge) + 1)), Left: g.operand(2), Right: g.operand(2)}
	switch g.IntN(8) {
	case 0:
		c.Op, c.Right = tracestore.Exists, nil
	case 1:
		c.Right = tracestore.Truth{Expr: g.cond()}
	}
	return c
}

func (g *generator) relation(left, right storequery.SpanSet) storequery.SpanSet {
	return storequery.Relation{Kind: storequery.RelationKind(g.IntN(int(storequery.Sibling) + 1)),
		Mode: storequery.RelationMode(g.IntN(int(storequery.Both) + 1)), Left: left, Right: right}
}

// checkRandomSet compares the results of a random span set.
func (s *suite) checkRandomSet(g *generator) {
	s.Helper()
	tenant := g.tenant()
	s.checkRandomBounds(g, tenant, s.sent.fullTraces(s, tenant), g.set(2))
}

// checkRandomBounds compares the results of a span set with a random window, page size, limit or
// budget.
func (s *suite) checkRandomBounds(g *generator, tenant string, traces []fullTrace, set storequery.SpanSet) {
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
		s.comparePagesOf(q, 1+g.IntN(9), findSet(traces, q, set), func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantIDs)
		})
		return
	case 1:
		q.Limit, q.Budget.Spans = g.IntN(4), 30+g.IntN(100)
		s.compareSteps(q, findSet(traces, withoutLimit(q), set), set, tracestore.Want(g.IntN(3)))
		s.compareBudgetPages(q, findSet(traces, withoutLimit(q), set), func(q tracestore.Query) ([]tracestore.Result, tracestore.Outcome) {
			return s.findSet(q, set, tracestore.WantFull)
		})
		return
	case 2, 3, 4:
		q.After = tracestore.Cursor{Start: base + g.Uint64N(randomTimes), ID: traceID(g.Uint64N(randomTraces)), Set: true}
	}
	q.Limit = g.IntN(12)
	s.checkSet(traces, q, set, tracestore.Want(g.IntN(3)))
}

// withoutLimit returns q without a limit.
func withoutLimit(q tracestore.Query) tracestore.Query {
	q.Limit = 0
	return q
}

func checkRandomSets(s *suite) {
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	for range rounds(5, 3) {
		for range 8 {
			s.consume(s.encode(g.tenant(), g.relatedRequest()))
		}
		for range 15 {
			s.checkRandomSet(&g)
			s.checkRandomSetAggregate(&g)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}

// relatedRequest returns a request in which many spans are parents of others.
func (g *generator) relatedRequest() ptrace.Traces {
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

// selectSame reports whether two sets select the same spans.
func selectSame(traces []fullTrace, a, b storequery.SpanSet) bool {
	for i := range traces {
		if !maps.Equal(traces[i].selected(a), traces[i].selected(b)) {
			return false
		}
	}
	return true
}

// CheckSpanSets writes random spans to all stores, runs n random span sets on them, and compares
// the results with the definition. convert returns the set to run instead of a random set, and a
// set that must be equivalent, for example after formatting and parsing it. The behavior depends
// only on the seed.
func CheckSpanSets(
	tb testing.TB, seed uint64, n int, convert func(storequery.SpanSet) (want, run storequery.SpanSet), stores ...Subject,
) {
	tb.Helper()
	s := newSuite(tb, nil)
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	for range 16 {
		b := s.encode("", g.relatedRequest())
		for _, store := range stores {
			s.store = store
			s.consume(b)
		}
	}
	traces := s.sent.fullTraces(s, "")
	for i := range n {
		want, set := convert(g.set(g.IntN(4)))
		if !selectSame(traces, want, set) {
			tb.Errorf("%s is not equivalent to %s", describeSet(tracestore.Query{}, set), describeSet(tracestore.Query{}, want))
		}
		boundsSeed := g.Uint64()
		for _, store := range stores {
			s.store = store
			s.checkRandomBounds(&generator{rand.New(rand.NewPCG(boundsSeed, 3))}, "", traces, set)
		}
		if tb.Failed() {
			tb.Fatalf("failed at span set %d with seed %d", i, seed)
		}
	}
}
