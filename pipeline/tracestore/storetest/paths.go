package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// profiler returns the store as a PathProfiler, if it implements it.
func (s *suite) profiler() tracestore.PathProfiler {
	p, ok := optional[tracestore.PathProfiler](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.PathProfiler")
	}
	return p
}

// checkPathProfiles compares path profiles of hand-made traces.
func checkPathProfiles(s *suite) {
	store := s.profiler()
	for i := range uint64(60) {
		s.send("", checkout(i, i%3 == 0).traces)
	}
	failed := property(tracestore.Status, "error")
	slow := number(tracestore.TraceDuration, tracestore.Ge, 1_000_000)
	shard := attribute("shard", "7")
	all := tracestore.Query{From: at(base), To: at(base + 60*minute)}
	got := s.checkPathProfile(store, all, tracestore.Selection{Where: slow})
	if got.Selected.Traces != 20 || got.Rest.Traces != 40 || len(got.Paths) != 4 || got.Selected.Failed != 20 {
		s.Errorf("profile %s", describeProfile(&got))
	}
	queries := []tracestore.Query{{}, all, {From: at(base + 10*minute)}, {Where: tracestore.And{slow, failed}}, {Tenant: "unknown"},
		{To: at(base + 30*minute), Where: property(tracestore.Service, "db")}, {From: at(base + 1), To: at(base)}}
	selections := []tracestore.Selection{{}, {Where: slow}, {Where: failed}, {Where: shard}, {Where: tracestore.Or{slow, shard}},
		{From: at(base + 20*minute)}, {To: at(base + 20*minute), Where: tracestore.Not{Expr: failed}}, {Where: tracestore.Or{}},
		{From: at(base + 1), To: at(base)}}
	for _, q := range queries {
		for _, sel := range selections {
			s.checkPathProfile(store, q, sel)
		}
	}
	for _, o := range []tracestore.PathOptions{{Traces: -1}, {Traces: tracestore.MaxPathTraces + 1}} {
		if _, err := store.ProfilePaths(s.ctx, all, tracestore.Selection{}, o); err == nil {
			s.Errorf("ProfilePaths with options %+v: no error", o)
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := store.ProfilePaths(ctx, all, tracestore.Selection{}, tracestore.PathOptions{}); err == nil {
		s.Errorf("ProfilePaths with a canceled context: no error")
	}
	if got, err := store.ProfilePaths(s.ctx, tracestore.Query{Budget: tracestore.Budget{TraceSpans: 1}}, tracestore.Selection{},
		tracestore.PathOptions{}); err != nil || !got.Has(tracestore.ReasonLimit) || got.Selected.Spans != 60 {
		s.Errorf("profile of one span of each trace: error %v, %s", err, describeProfile(&got))
	}
}

// checkout returns a trace that begins at a minute: a web server that calls a database. If slow is
// set, the call is slow and follows a failed call.
func checkout(n uint64, slow bool) *request {
	begin, id := base+n*minute, 10*n+1
	r := newRequest("web")
	end := func(s ptrace.Span, parent, takes uint64) {
		if parent > 0 {
			s.SetParentSpanID(pcommon.SpanID(spanID(parent)))
		}
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(takes))
	}
	takes := uint64(100_000)
	if slow {
		takes = 2_000_000
		first := r.span(n, id+3, "query", begin+1000)
		end(first, id, 5000)
		first.SetKind(ptrace.SpanKindClient)
		first.Status().SetCode(ptrace.StatusCodeError)
	}
	root := r.span(n, id, "GET /", begin)
	end(root, 0, takes+20_000)
	root.SetKind(ptrace.SpanKindServer)
	call := r.span(n, id+1, "query", begin+10_000)
	end(call, id, takes)
	call.SetKind(ptrace.SpanKindClient)
	call.Attributes().PutInt("shard", int64(n%8))
	db := r.traces.ResourceSpans().AppendEmpty()
	db.Resource().Attributes().PutStr("service.name", "db")
	inner := &request{r.traces, db.ScopeSpans().AppendEmpty()}
	server := inner.span(n, id+2, "SELECT", begin+12_000)
	end(server, id+1, takes-5000)
	server.SetKind(ptrace.SpanKindServer)
	if n%2 == 0 {
		end(inner.span(n, id+4, "sort", begin+13_000), id+2, 50_000)
	}
	return r
}

// checkRandomPathProfiles compares path profiles of random spans, which have cycles of parents,
// shared ids, missing parents and children outside their parents.
func checkRandomPathProfiles(s *suite) {
	store := s.profiler()
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 21))}
	var sent []*otlpdata.Batch
	for range rounds(6, 3) {
		for range 5 {
			b := s.encode(g.tenant(), g.request())
			s.maybeResend(&g, sent)
			s.consume(b)
			sent = append(sent, b)
		}
		for range 12 {
			q := tracestore.Query{Tenant: g.tenant(), Where: g.computed(g.expr(2))}
			sel := tracestore.Selection{Where: g.computed(g.expr(2))}
			if g.IntN(2) == 0 {
				q.From, q.To = at(base+g.Uint64N(randomTimes/2)), at(base+randomTimes/2+g.Uint64N(randomTimes/2))
			}
			if g.IntN(3) == 0 {
				sel.From, sel.To = at(base+g.Uint64N(randomTimes)), at(base+g.Uint64N(randomTimes))
			}
			s.checkPathProfile(store, q, sel)
			all, part := []storequery.SpanSet{g.set(2)}, []storequery.SpanSet{g.set(1)}
			s.checkSetProfile(q, sel, callpath.Sets{All: all, Selected: part})
			s.checkSetProfile(q, sel, callpath.Sets{Selected: part})
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}

// checkPathProfile compares a path profile of the store with the profile of the spans sent, and
// returns it.
func (s *suite) checkPathProfile(store tracestore.PathProfiler, q tracestore.Query, sel tracestore.Selection) tracestore.PathProfile {
	s.Helper()
	got, err := store.ProfilePaths(s.ctx, q, sel, tracestore.PathOptions{})
	if err != nil {
		s.Fatalf("ProfilePaths(%s, %s): %v", describe(q), describeSelection(sel), err)
	}
	want := s.sent.profile(q, sel, callpath.Sets{})
	if g, w := describeProfile(&got), describeProfile(&want); g != w {
		s.Errorf("ProfilePaths(%s, %s):\n got %s\nwant %s", describe(q), describeSelection(sel), g, w)
	}
	return got
}

// checkSetProfile is like checkPathProfile, for the traces of two span sets.
func (s *suite) checkSetProfile(q tracestore.Query, sel tracestore.Selection, sets callpath.Sets) {
	s.Helper()
	got, err := callpath.ProfileSets(s.ctx, s.store, q, sel, sets, tracestore.PathOptions{})
	if err != nil {
		s.Fatalf("ProfileSets(%s, %s, %+v): %v", describe(q), describeSelection(sel), sets, err)
	}
	want := s.sent.profile(q, sel, sets)
	if g, w := describeProfile(&got), describeProfile(&want); g != w {
		s.Errorf("ProfileSets(%s, %s, %+v):\n got %s\nwant %s", describe(q), describeSelection(sel), sets, g, w)
	}
}

func describeSelection(sel tracestore.Selection) string {
	return describe(tracestore.Query{From: sel.From, To: sel.To, Where: sel.Where})
}

// describeProfile returns a profile as text, without the fields that the oracle does not know.
// Squares are rounded, because their sum depends on the order of the traces.
func describeProfile(p *tracestore.PathProfile) string {
	round := func(squares *float64) { *squares = math.Round(math.Sqrt(*squares) * 1e3) }
	counts := func(c tracestore.PathCounts) tracestore.PathCounts {
		round(&c.SelfSquares)
		round(&c.CallSquares)
		return c
	}
	sorted := func(ids []otlpdata.TraceID) []otlpdata.TraceID {
		return slices.SortedFunc(slices.Values(ids), func(a, b otlpdata.TraceID) int { return bytes.Compare(a[:], b[:]) })
	}
	out := *p
	out.Scanned, out.Selected.IDs, out.Rest.IDs = 0, sorted(p.Selected.IDs), sorted(p.Rest.IDs)
	round(&out.Selected.TimeSquares)
	round(&out.Rest.TimeSquares)
	out.Paths = slices.Clone(p.Paths)
	for i := range out.Paths {
		out.Paths[i].Selected, out.Paths[i].Rest = counts(out.Paths[i].Selected), counts(out.Paths[i].Rest)
	}
	out.Operations = slices.Clone(p.Operations)
	for i := range out.Operations {
		out.Operations[i].Selected, out.Operations[i].Rest = counts(out.Operations[i].Selected), counts(out.Operations[i].Rest)
	}
	return fmt.Sprintf("%+v", out)
}

// profile computes a path profile of all traces by its definition.
func (o *oracle) profile(q tracestore.Query, sel tracestore.Selection, sets callpath.Sets) tracestore.PathProfile {
	from, to, ok := q.Window()
	first, last, some := tracestore.Query{From: sel.From, To: sel.To}.Window()
	var counter callpath.Counter
	var tree callpath.Tree
	for id, trace := range o.tenant(q.Tenant).traces {
		var hosts storequery.Hosts
		var spans []tracestore.SummarySpan
		for _, s := range trace {
			spans = append(spans, hosts.OutlineSpan(s))
		}
		summary := storequery.SummarizeSpans(id, spans)
		matched, selected := false, false
		w := newFullTrace(id, trace, &summary)
		among := func(sets []storequery.SpanSet) func(span int) bool {
			var selected []map[int]bool
			for _, set := range sets {
				selected = append(selected, w.selected(set))
			}
			return func(span int) bool {
				return !slices.ContainsFunc(selected, func(by map[int]bool) bool { return !by[span] })
			}
		}
		inAll, inSelected := among(sets.All), among(sets.Selected)
		for i, s := range w.spans {
			if ok && s.Start >= from && s.Start <= to && tracestore.Match(q.Where, s) && inAll(i) {
				matched = true
				selected = selected || some && s.Start >= first && s.Start <= last && tracestore.Match(sel.Where, s) && inSelected(i)
			}
		}
		if matched {
			tree.Build(spans)
			counter.AddTrace(&tree, id, selected)
		}
	}
	return counter.Answer()
}

// checkSampledPaths sends more traces than are examined. The sample must be spread over the window
// and contain only traces of the right set, and its share must be about right.
func checkSampledPaths(s *suite) {
	store := s.profiler()
	const traces, hours, want = 3000, 4, 300
	const step = hours * 60 * minute / traces
	for first := uint64(0); first < traces; first += traces / 10 {
		r := newRequest("web")
		for i := first; i < first+traces/10; i++ {
			root := r.span(i, 16*i+1, "root", base+i*step)
			if i%5 == 0 {
				root.Status().SetCode(ptrace.StatusCodeError)
			}
			for n := range 1 + i%2*8 { // every other trace is long
				later := n * (3*minute + i*2654435761%minute)
				r.span(i, 16*i+2+n, "child", base+i*step+10+later).SetParentSpanID(root.SpanID())
			}
		}
		s.send("", r.traces)
	}
	q := tracestore.Query{From: at(base), To: at(base + hours*60*minute)}
	sel := tracestore.Selection{Where: property(tracestore.Status, "error")}
	got, err := store.ProfilePaths(s.ctx, q, sel, tracestore.PathOptions{Traces: want})
	if err != nil || !got.Complete() {
		s.Fatalf("ProfilePaths: error %v, reasons %v", err, got.Reasons)
	}
	s.checkSample(&got.Selected, want, traces/5, step, true)
	s.checkSample(&got.Rest, want, traces*4/5, step, false)
	s.checkPathBudget(store, q, sel)
	again, err := store.ProfilePaths(s.ctx, q, sel, tracestore.PathOptions{Traces: want})
	if err != nil || describeProfile(&again) != describeProfile(&got) {
		s.Errorf("ProfilePaths again: error %v\n got %s\nwant %s", err, describeProfile(&again), describeProfile(&got))
	}
}

// checkPathBudget checks that a small budget makes the sample smaller.
func (s *suite) checkPathBudget(store tracestore.PathProfiler, q tracestore.Query, sel tracestore.Selection) {
	s.Helper()
	q.Budget.Spans = 200
	got, err := store.ProfilePaths(s.ctx, q, sel, tracestore.PathOptions{})
	if err != nil || got.Selected.Traces+got.Rest.Traces > 1500 || got.Selected.Share >= 1 || got.Rest.Share >= 1 {
		s.Errorf("ProfilePaths with a budget of %d spans: error %v, %d and %d traces, shares %g and %g", q.Budget.Spans, err,
			got.Selected.Traces, got.Rest.Traces, got.Selected.Share, got.Rest.Share)
	}
	sets := callpath.Sets{Selected: []storequery.SpanSet{storequery.Select{Where: sel.Where}}}
	got, err = callpath.ProfileSets(s.ctx, s.store, q, tracestore.Selection{}, sets, tracestore.PathOptions{})
	if err != nil || got.Selected.Traces == 0 || got.Rest.Traces == 0 || got.Selected.Share >= 1 || got.Rest.Share >= 1 {
		s.Errorf("ProfileSets with a budget of %d spans: error %v, %d and %d traces, shares %g and %g", q.Budget.Spans, err,
			got.Selected.Traces, got.Rest.Traces, got.Selected.Share, got.Rest.Share)
	}
}

// checkSample checks the sample of one set of the traces of checkSampledPaths.
func (s *suite) checkSample(set *tracestore.PathSet, want, all int, step uint64, failed bool) {
	s.Helper()
	if set.Traces != uint64(want) || len(set.IDs) != want {
		s.Errorf("%d traces with %d ids, want %d", set.Traces, len(set.IDs), want)
	}
	tolerance := 0.1
	if several, ok := s.store.(Several); ok {
		tolerance *= math.Sqrt(float64(several.Stores()))
	}
	if estimate := float64(set.Traces) / set.Share; math.Abs(estimate-float64(all)) > tolerance*float64(all) {
		s.Errorf("share %g of %d traces: estimated %.0f, want about %d", set.Share, set.Traces, estimate, all)
	}
	const quarters = 4
	var spread [quarters]int
	long := 0
	for i, id := range set.IDs {
		if slices.Contains(set.IDs[:i], id) {
			s.Errorf("trace %s is listed twice", id)
		}
		n := 0
		for _, b := range id {
			n = n<<8 | int(b)
		}
		if (n%5 == 0) != failed {
			s.Errorf("trace %s is in the wrong set", id)
		}
		long += n % 2
		spread[min(uint64(n)*step*quarters/(240*minute), quarters-1)]++
	}
	if math.Abs(float64(long)/float64(want)-0.5) > 0.2 {
		s.Errorf("%d of %d traces are long, want half of them", long, want)
	}
	for i, n := range spread {
		if n < want/quarters/2 {
			s.Errorf("quarter %d of the window has %d traces of %v", i, n, spread)
		}
	}
}
