package storetest

import (
	"context"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// referenceStore is a correct store that consists of the oracle.
type referenceStore struct {
	tracestore.Hub
	storequery.WholeTraces
	mu sync.RWMutex
	o  *oracle
}

var (
	_ tracestore.Catalog    = (*referenceStore)(nil)
	_ tracestore.Edges      = (*referenceStore)(nil)
	_ tracestore.Metrics    = (*referenceStore)(nil)
	_ tracestore.Aggregator = (*referenceStore)(nil)
	_ tracestore.Follower   = (*referenceStore)(nil)
)

func newReferenceStore() *referenceStore {
	n := &referenceStore{o: newOracle()}
	n.Of = n
	return n
}

func (n *referenceStore) Consume(_ context.Context, b *otlpdata.Batch) error {
	chunks, err := b.Chunks()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for chunk := range chunks {
		part, err := otlpdata.FromOTLP(chunk, b.Meta(), otlpdata.Limits{})
		if err != nil {
			return err
		}
		n.o.add(part)
	}
	n.Publish(b)
	return nil
}

// read calls f with the oracle. It takes the write lock, because methods of the oracle add entries
// for unknown tenants.
func (n *referenceStore) read(f func(o *oracle)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n.o)
}

func (n *referenceStore) spans(tenant string, id otlpdata.TraceID) (b *otlpdata.Batch, err error) {
	n.read(func(o *oracle) {
		if spans := o.tenant(tenant).traces[id]; len(spans) > 0 {
			b, err = encode(tenant, spans)
		}
	})
	return b, err
}

func (n *referenceStore) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for _, ref := range refs {
			b, err := n.spans(tenant, ref.ID)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if err == nil && b == nil {
				continue
			}
			if !yield(tracestore.Trace{ID: ref.ID, Spans: b}, err) || err != nil {
				return
			}
		}
	}
}

func (n *referenceStore) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	var all []tracestore.Result
	n.read(func(o *oracle) { all = o.find(q) })
	outcome := tracestore.Unread()
	return &tracestore.Results{
		Outcome: func() tracestore.Outcome { return outcome },
		All: func(yield func(tracestore.Result, error) bool) {
			for _, r := range all {
				spans, err := n.spans(q.Tenant, r.ID)
				var sum tracestore.Summary
				if err == nil {
					sum, err = storequery.Summarize(r.ID, spans)
				}
				if ctx.Err() != nil {
					err = ctx.Err()
				}
				switch want {
				case tracestore.WantSummaries:
					r.Summary = &sum
				case tracestore.WantFull:
					r.Spans = spans
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
			outcome.Reasons = nil
			if q.Limit > 0 && len(all) == q.Limit {
				last := all[len(all)-1]
				outcome.Next = tracestore.Cursor{Start: last.Start, ID: last.ID, Set: true}
			}
		},
	}, ctx.Err()
}

func (n *referenceStore) Services(_ context.Context, tenant string, q tracestore.NameQuery) (out []string, more bool, _ error) {
	n.read(func(o *oracle) { out, more = storequery.SelectServices(o.services(tenant), q) })
	return out, more, nil
}

func (n *referenceStore) Operations(
	_ context.Context, tenant, service, kind string, q tracestore.NameQuery,
) (out []tracestore.Operation, more bool, _ error) {
	n.read(func(o *oracle) { out, more = storequery.SelectOperations(o.operations(tenant, service, kind), q) })
	return out, more, nil
}

func (n *referenceStore) AttributeKeys(_ context.Context, tenant, prefix string, limit int) (out []string, _ error) {
	n.read(func(o *oracle) { out = o.attributeKeys(tenant, prefix) })
	return limited(out, limit), nil
}

func (n *referenceStore) AttributeValues(_ context.Context, tenant, key, prefix string, limit int) (out []string, _ error) {
	n.read(func(o *oracle) { out = o.attributeValues(tenant, key, prefix) })
	return limited(out, limit), nil
}

func (n *referenceStore) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	g := tracestore.Graph{}
	n.read(func(o *oracle) { g.Edges, _ = o.calls(tenant, from, to) })
	return g, ctx.Err()
}

func (n *referenceStore) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	g := tracestore.Graph{}
	n.read(func(o *oracle) { g.Edges, _ = o.peers(tenant, from, to) })
	return g, ctx.Err()
}

func (n *referenceStore) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	g := tracestore.EdgeGraph{}
	n.read(func(o *oracle) { g.Edges, _ = o.edges(tenant, q) })
	return g, ctx.Err()
}

func (n *referenceStore) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	return n.countMetrics(tenant, q, tracestore.Span.AdjustedCount), ctx.Err()
}

// countMetrics counts each span as count(span) calls.
func (n *referenceStore) countMetrics(
	tenant string, q tracestore.MetricsQuery, count func(tracestore.Span) uint64,
) tracestore.MetricsAnswer {
	from, to, _ := q.Window()
	c := storequery.NewMetricsCounter(q)
	n.read(func(o *oracle) {
		for _, s := range o.tenant(tenant).spans {
			if s.Start < from || s.Start > to || !c.Wants(s.Resource.Service, s.KindName()) {
				continue
			}
			duration, _ := s.Duration()
			series, _ := c.Series(s.Resource.Service, s.Operation(), s.KindName())
			c.AddSpan(series, s.Start, duration, count(s), s.StatusCode == otlpdata.StatusError)
		}
	})
	return c.Answer()
}

func (n *referenceStore) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	from, to, ok := q.Window()
	c := storequery.NewBaselineCounter(q)
	n.read(func(o *oracle) {
		for _, s := range o.tenant(tenant).spans {
			if series, wanted := c.Series(s.Resource.Service, s.Operation(), s.KindName()); wanted && ok && s.Start >= from && s.Start <= to {
				duration, _ := s.Duration()
				c.AddSpan(series, s.Start, duration, s.AdjustedCount(), false)
			}
		}
	})
	return c.Answer(), ctx.Err()
}

// Aggregate examines every n-th span, depending on the budget.
func (n *referenceStore) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	c, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	share := 1.0
	n.read(func(o *oracle) {
		spans := o.tenant(q.Tenant).spans
		every := 1
		if b := q.Budget.Spans; b > 0 && len(spans) > b {
			every = (len(spans) + b - 1) / b
		}
		for i := 0; i < len(spans); i += every {
			c.AddSpan(spans[i])
		}
		if len(spans) > 0 {
			share = float64(c.Scanned()) / float64(len(spans))
		}
	})
	return c.Answer(share), ctx.Err()
}

func limited(list []string, limit int) []string {
	if limit == 0 {
		limit = 1000
	}
	return list[:min(limit, len(list))]
}

// TestCorrectStorePasses runs the suite on a correct store.
func TestCorrectStorePasses(t *testing.T) {
	PassiveStore(t, func(testing.TB) Subject { return newReferenceStore() })
}

// Incorrect stores. Each violates one guarantee.
type (
	dropsSpan              struct{ *referenceStore }
	returnsDuplicates      struct{ *referenceStore }
	mixesTenants           struct{ *referenceStore }
	ignoresLimit           struct{ *referenceStore }
	ignoresCursor          struct{ *referenceStore }
	limitsBeforeFilter     struct{ *referenceStore }
	oldestFirst            struct{ *referenceStore }
	excludesBounds         struct{ *referenceStore }
	judgesTraceByFirstSpan struct{ *referenceStore }
	hidesBudget            struct{ *referenceStore }
	ignoresContext         struct{ *referenceStore }
	dropsLateSpans         struct{ *referenceStore }
	unsorted               struct{ *referenceStore }
	cutsSilently           struct{ *referenceStore }
	ignoresNameQuery       struct{ *referenceStore }
	roundsCallWindow       struct{ *referenceStore }
	countsCallsTwice       struct{ *referenceStore }
	missesLateParents      struct{ *referenceStore }
	roundsPeerWindow       struct{ *referenceStore }
	missesLateCounterparts struct{ *referenceStore }
	ignoresEdgeService     struct{ *referenceStore }
	forgetsConnections     struct{ *referenceStore }
	forgetsDurations       struct{ *referenceStore }
	roundsMetricsWindow    struct{ *referenceStore }
	mixesKinds             struct{ *referenceStore }
	usesFirstKind          struct{ *referenceStore }
	ignoresAdjustedCount   struct{ *referenceStore }
	coarseDurations        struct{ *referenceStore }
	hidesSampling          struct{ *referenceStore }
	overstatesShare        struct{ *referenceStore }
	scalesCounts           struct{ *referenceStore }
	cutsCharacters         struct{ *referenceStore }
	countsTwice            struct{ *referenceStore }
	adjustsSpanCounts      struct{ *referenceStore }
	ignoresSelectionWindow struct{ *referenceStore }
	shiftsColumns          struct{ *referenceStore }
	returnsWrongExemplars  struct{ *referenceStore }
	acceptsInvalid         struct{ *referenceStore }
	shufflesExemplars      struct{ *referenceStore }
	feedsOtherTenants      struct{ *referenceStore }
	feedsNothing           struct{ *referenceStore }
)

func (w feedsOtherTenants) Follow(ctx context.Context, _ string, capacity int) (*tracestore.Feed, error) {
	return w.referenceStore.Follow(ctx, "", capacity)
}

func (w feedsNothing) Follow(ctx context.Context, tenant string, capacity int) (*tracestore.Feed, error) {
	return new(tracestore.Hub).Follow(ctx, tenant, capacity)
}

func (w dropsSpan) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for tr, err := range w.referenceStore.Traces(ctx, tenant, refs) {
			if err == nil && tr.Spans.Len() > 1 {
				td, _ := tr.Spans.Traces()
				td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(all)
				tr.Spans = otlpdata.FromTraces(td, tr.Spans.Meta())
			}
			if !yield(tr, err) {
				return
			}
		}
	}
}

func (w returnsDuplicates) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for tr, err := range w.referenceStore.Traces(ctx, tenant, refs) {
			if !yield(tr, err) || err == nil && !yield(tr, err) {
				return
			}
		}
	}
}

func (w mixesTenants) Consume(ctx context.Context, b *otlpdata.Batch) error {
	td, err := b.Traces()
	if err != nil {
		return err
	}
	return w.referenceStore.Consume(ctx, otlpdata.FromTraces(td, otlpdata.Meta{}))
}

func (w ignoresLimit) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	q.Limit = 0
	return w.referenceStore.Find(ctx, q, want)
}

func (w ignoresCursor) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	q.After = tracestore.Cursor{}
	return w.referenceStore.Find(ctx, q, want)
}

// Find applies the limit before the condition.
func (w limitsBeforeFilter) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	below := q
	below.Where = nil
	var found []tracestore.Result
	w.read(func(o *oracle) { found = o.find(below) })
	res, err := w.referenceStore.Find(ctx, q, want)
	if err != nil {
		return nil, err
	}
	inner := res.All
	res.All = func(yield func(tracestore.Result, error) bool) {
		for r, err := range inner {
			known := slices.ContainsFunc(found, func(f tracestore.Result) bool { return f.ID == r.ID })
			if (known || err != nil) && !yield(r, err) {
				return
			}
		}
	}
	return res, nil
}

func (w oldestFirst) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	res, err := w.referenceStore.Find(ctx, q, want)
	if err != nil {
		return nil, err
	}
	inner := res.All
	res.All = func(yield func(tracestore.Result, error) bool) {
		var reversed []tracestore.Result
		for r, err := range inner {
			if err != nil {
				yield(r, err)
				return
			}
			reversed = append(reversed, r)
		}
		slices.Reverse(reversed)
		for _, r := range reversed {
			if !yield(r, nil) {
				return
			}
		}
	}
	return res, nil
}

// Find leaves out traces whose first span alone does not meet the condition on the trace.
func (w judgesTraceByFirstSpan) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	res, err := w.referenceStore.Find(ctx, q, want)
	if err != nil || q.OfTrace == nil {
		return res, err
	}
	inner := res.All
	res.All = func(yield func(tracestore.Result, error) bool) {
		for r, err := range inner {
			var alone tracestore.Summary
			w.read(func(o *oracle) {
				s := o.tenant(q.Tenant).traces[r.ID][0]
				ns, _ := s.Duration()
				alone = storequery.SummarizeSpans(r.ID, []tracestore.SummarySpan{
					{Start: s.Start, Duration: ns, Service: s.Resource.Service, Name: s.Operation()},
				})
			})
			if (err != nil || tracestore.Match(q.OfTrace, tracestore.Span{Trace: &alone})) && !yield(r, err) {
				return
			}
		}
	}
	return res, nil
}

func (w excludesBounds) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if !q.To.IsZero() {
		q.To = q.To.Add(-1)
	}
	return w.referenceStore.Find(ctx, q, want)
}

func (w hidesBudget) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	res, err := w.referenceStore.Find(ctx, q, want)
	if err != nil || q.Budget.Spans == 0 {
		return res, err
	}
	inner := res.All
	res.All = func(yield func(tracestore.Result, error) bool) {
		n := 0
		for r, err := range inner {
			if n++; n <= q.Budget.Spans && !yield(r, err) {
				return
			}
		}
	}
	return res, nil
}

func (w ignoresContext) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	return w.referenceStore.Find(context.WithoutCancel(ctx), q, want)
}

// Consume drops spans of traces that exist already.
func (w dropsLateSpans) Consume(ctx context.Context, b *otlpdata.Batch) error {
	late := false
	err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		w.read(func(o *oracle) { late = late || len(o.tenant(b.Meta().Tenant).traces[s.TraceID]) > 0 })
		return nil
	})
	if err != nil || late {
		return err
	}
	return w.referenceStore.Consume(ctx, b)
}

func (w unsorted) Services(ctx context.Context, tenant string, q tracestore.NameQuery) ([]string, bool, error) {
	out, more, err := w.referenceStore.Services(ctx, tenant, q)
	slices.Reverse(out)
	return out, more, err
}

func (w cutsSilently) Services(ctx context.Context, tenant string, q tracestore.NameQuery) ([]string, bool, error) {
	out, _, err := w.referenceStore.Services(ctx, tenant, q)
	return out, false, err
}

func (w ignoresNameQuery) Operations(
	ctx context.Context, tenant, service, kind string, q tracestore.NameQuery,
) ([]tracestore.Operation, bool, error) {
	return w.referenceStore.Operations(ctx, tenant, service, kind, tracestore.NameQuery{Limit: q.Limit})
}

func (w roundsCallWindow) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	if !from.IsZero() {
		from = from.Truncate(time.Minute)
	}
	return w.referenceStore.Dependencies(ctx, tenant, from, to)
}

func (w countsCallsTwice) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	g, err := w.referenceStore.Dependencies(ctx, tenant, from, to)
	w.read(func(o *oracle) { _, g.Edges = o.calls(tenant, from, to) })
	for i := range g.Edges {
		g.Edges[i].Calls++ // as if there was a duplicate within a request
	}
	return g, err
}

// Dependencies finds only parents that arrive before their children.
func (w missesLateParents) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	known := newOracle()
	var calls storequery.CallCounter
	w.read(func(o *oracle) {
		for _, s := range o.tenant(tenant).spans {
			known.tenant(tenant).traces[s.TraceID] = append(known.tenant(tenant).traces[s.TraceID], s)
			for _, p := range known.tenant(tenant).traces[s.TraceID] {
				if p.SpanID == s.ParentID && p.SpanID != s.SpanID {
					parent, child := storequery.CallSpanOf(p), storequery.CallSpanOf(s)
					calls.AddCall(&parent, &child)
				}
			}
		}
	})
	return tracestore.Graph{Edges: calls.Edges()}, ctx.Err()
}

func (w roundsPeerWindow) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	if !to.IsZero() {
		to = to.Truncate(time.Minute).Add(time.Minute - 1)
	}
	return w.referenceStore.Peers(ctx, tenant, from, to)
}

// Peers finds only counterparts that arrive before the call.
func (w missesLateCounterparts) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	known := newOracle()
	var calls storequery.PeerCounter
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	w.read(func(o *oracle) {
		for _, s := range o.tenant(tenant).spans {
			t := known.tenant(tenant)
			t.traces[s.TraceID] = append(t.traces[s.TraceID], s)
			c := storequery.CallSpanOf(s)
			if ok && c.Peer != "" && c.Start >= first && c.Start <= last && !isAnswered(t.traces[s.TraceID], s.SpanID) {
				calls.AddPeer(&c)
			}
		}
	})
	return calls.Graph(), ctx.Err()
}

func (w ignoresEdgeService) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	q.Service = ""
	return w.referenceStore.Edges(ctx, tenant, q)
}

// Edges returns HTTP as the connection of messages.
func (w forgetsConnections) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	g, err := w.referenceStore.Edges(ctx, tenant, q)
	for i := range g.Edges {
		if g.Edges[i].Connection == tracestore.ConnectionMessaging {
			g.Edges[i].Connection = tracestore.ConnectionHTTP
		}
	}
	return g, err
}

func (w forgetsDurations) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	g, err := w.referenceStore.Edges(ctx, tenant, q)
	for i := range g.Edges {
		g.Edges[i].Durations.Reset()
	}
	return g, err
}

func (w roundsMetricsWindow) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	if !q.From.IsZero() {
		q.From = q.From.Truncate(time.Minute)
	}
	return w.referenceStore.Metrics(ctx, tenant, q)
}

func (w usesFirstKind) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	q.Kinds = q.Kinds[:min(len(q.Kinds), 1)]
	return w.referenceStore.Metrics(ctx, tenant, q)
}

// Baselines returns the durations of the first kind for all kinds of an operation.
func (w mixesKinds) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	a, err := w.referenceStore.Baselines(ctx, tenant, q)
	first := make(map[[2]string]int)
	for i, o := range q.Operations {
		if at, known := first[[2]string{o.Service, o.Operation}]; known {
			a.Durations[i] = a.Durations[at]
		} else {
			first[[2]string{o.Service, o.Operation}] = i
		}
	}
	return a, err
}

// Metrics counts each span as one call.
func (w ignoresAdjustedCount) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	return w.countMetrics(tenant, q, func(tracestore.Span) uint64 { return 1 }), ctx.Err()
}

// Metrics returns histograms with two buckets per octave.
func (w coarseDurations) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	a, err := w.referenceStore.Metrics(ctx, tenant, q)
	for _, s := range a.Series {
		for i := range s.Points {
			var rough tracestore.Histogram
			first, counts := s.Points[i].Durations.Counts()
			for j, n := range counts {
				if n > 0 {
					rough.AddBucket((first+j)&^3|2, n)
				}
			}
			s.Points[i].Durations = rough
		}
	}
	return a, err
}

// Aggregate examines only the first spans and reports a share of 1.
func (w hidesSampling) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	c, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	w.read(func(o *oracle) {
		for _, s := range o.tenant(q.Tenant).spans {
			if c.Scanned() < max(q.Budget.Spans, 1) || q.Budget.Spans == 0 {
				c.AddSpan(s)
			}
		}
	})
	return c.Answer(1), ctx.Err()
}

// Aggregate reports twice the share that it examined.
func (w overstatesShare) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.modify(ctx, q, a, func(out *tracestore.Aggregate) {
		out.Share = min(2*out.Share, 1)
		if out.Heatmap != nil {
			out.Heatmap.Share = out.Share
		}
		if out.Facets != nil {
			out.Facets.Share = out.Share
		}
	})
}

// modify changes the result of the correct store.
func (n *referenceStore) modify(
	ctx context.Context, q tracestore.Query, a tracestore.Aggregation, f func(*tracestore.Aggregate),
) (tracestore.Aggregate, error) {
	out, err := n.Aggregate(ctx, q, a)
	if err == nil {
		f(&out)
	}
	return out, err
}

func (w scalesCounts) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.modify(ctx, q, a, func(out *tracestore.Aggregate) { out.Spans = uint64(1.5 * float64(out.Spans) / out.Share) })
}

func (w cutsCharacters) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.modify(ctx, q, a, func(out *tracestore.Aggregate) {
		if out.Facets == nil {
			return
		}
		for _, f := range out.Facets.Facets {
			for i, v := range f.Values {
				if len(v.Text) == storequery.MaxFacetText-1 {
					f.Values[i].Text += "\xc3"
				}
			}
		}
	})
}

// Aggregate counts duplicates within a request.
func (w countsTwice) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	c, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	w.read(func(o *oracle) {
		for _, s := range o.tenant(q.Tenant).spans {
			for range 1 + o.tenant(q.Tenant).requests[identity(s)] {
				c.AddSpan(s)
			}
		}
	})
	return c.Answer(1), ctx.Err()
}

// Aggregate counts each span as many times as calls that it stands for.
func (w adjustsSpanCounts) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	c, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	w.read(func(o *oracle) {
		for _, s := range o.tenant(q.Tenant).spans {
			for range s.AdjustedCount() {
				c.AddSpan(s)
			}
		}
	})
	return c.Answer(1), ctx.Err()
}

func (w ignoresSelectionWindow) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if s := a.Facets.Selection; s != nil {
		a.Facets.Selection = &tracestore.Selection{Where: s.Where}
	}
	return w.referenceStore.Aggregate(ctx, q, a)
}

// Aggregate aligns columns with the window.
func (w shiftsColumns) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.modify(ctx, q, a, func(out *tracestore.Aggregate) {
		if out.Heatmap == nil {
			return
		}
		from, _, _ := q.Window()
		for i := range out.Heatmap.Cells {
			out.Heatmap.Cells[i].Start += from % out.Heatmap.Step
		}
	})
}

func (w returnsWrongExemplars) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	out, err := w.referenceStore.Aggregate(ctx, q, a)
	q.Where = nil
	all, _ := w.referenceStore.Aggregate(ctx, q, a)
	out.Exemplars = all.Exemplars
	return out, err
}

// Aggregate ignores aggregations that are invalid.
func (w acceptsInvalid) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if a.Check(q) != nil {
		a = tracestore.Aggregation{}
	}
	return w.referenceStore.Aggregate(ctx, q, a)
}

// Aggregate returns exemplars in random order.
func (w shufflesExemplars) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.modify(ctx, q, a, func(out *tracestore.Aggregate) {
		rand.Shuffle(len(out.Exemplars), func(i, j int) {
			out.Exemplars[i], out.Exemplars[j] = out.Exemplars[j], out.Exemplars[i]
		})
	})
}

// skipShort skips tests of the suite itself in short mode: they take minutes with the race
// detector, which finds nothing there.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs without -short: the suite against incorrect stores and planners")
	}
}

// TestIncorrectStoresFail checks that the suite detects each incorrect store.
func TestIncorrectStoresFail(t *testing.T) {
	skipShort(t)
	byName := make(map[string]check)
	for _, c := range checks() {
		byName[c.name] = c
	}
	for _, w := range []struct {
		check string
		store Subject
	}{
		{"all span fields are returned", dropsSpan{newReferenceStore()}},
		{"a trace of 10,000 spans", dropsSpan{newReferenceStore()}},
		{"duplicates are returned once", returnsDuplicates{newReferenceStore()}},
		{"tenants are isolated", mixesTenants{newReferenceStore()}},
		{"order and limit", ignoresLimit{newReferenceStore()}},
		{"order and limit", limitsBeforeFilter{newReferenceStore()}},
		{"order and limit", oldestFirst{newReferenceStore()}},
		{"pages list each trace once", ignoresCursor{newReferenceStore()}},
		{"pages of traces with several matches", ignoresCursor{newReferenceStore()}},
		{"windows include both bounds", excludesBounds{newReferenceStore()}},
		{"span sets", judgesTraceByFirstSpan{newReferenceStore()}},
		{"an exhausted budget is reported", hidesBudget{newReferenceStore()}},
		{"canceled queries", ignoresContext{newReferenceStore()}},
		{"late spans join their trace", dropsLateSpans{newReferenceStore()}},
		{"catalog", unsorted{newReferenceStore()}},
		{"catalog", cutsSilently{newReferenceStore()}},
		{"catalog", ignoresNameQuery{newReferenceStore()}},
		{"calls between services", roundsCallWindow{newReferenceStore()}},
		{"calls between services", countsCallsTwice{newReferenceStore()}},
		{"calls between services", missesLateParents{newReferenceStore()}},
		{"calls between services", roundsPeerWindow{newReferenceStore()}},
		{"calls between services", missesLateCounterparts{newReferenceStore()}},
		{"calls between services", ignoresEdgeService{newReferenceStore()}},
		{"calls between services", forgetsConnections{newReferenceStore()}},
		{"calls between services", forgetsDurations{newReferenceStore()}},
		{"random calls", missesLateCounterparts{newReferenceStore()}},
		{"random calls", roundsCallWindow{newReferenceStore()}},
		{"rates, errors and durations", roundsMetricsWindow{newReferenceStore()}},
		{"rates, errors and durations", usesFirstKind{newReferenceStore()}},
		{"rates, errors and durations", ignoresAdjustedCount{newReferenceStore()}},
		{"rates, errors and durations", coarseDurations{newReferenceStore()}},
		{"random rates, errors and durations", roundsMetricsWindow{newReferenceStore()}},
		{"random rates, errors and durations", ignoresAdjustedCount{newReferenceStore()}},
		{"durations of operations", mixesKinds{newReferenceStore()}},
		{"heatmaps, facets and exemplars", hidesSampling{newReferenceStore()}},
		{"heatmaps, facets and exemplars", cutsCharacters{newReferenceStore()}},
		{"heatmaps, facets and exemplars", countsTwice{newReferenceStore()}},
		{"heatmaps, facets and exemplars", ignoresSelectionWindow{newReferenceStore()}},
		{"heatmaps, facets and exemplars", shiftsColumns{newReferenceStore()}},
		{"heatmaps, facets and exemplars", returnsWrongExemplars{newReferenceStore()}},
		{"heatmaps, facets and exemplars", acceptsInvalid{newReferenceStore()}},
		{"facet limits and samples", hidesSampling{newReferenceStore()}},
		{"facet limits and samples", overstatesShare{newReferenceStore()}},
		{"facet limits and samples", scalesCounts{newReferenceStore()}},
		{"facet limits and samples", shufflesExemplars{newReferenceStore()}},
		{"counts of sampled spans", adjustsSpanCounts{newReferenceStore()}},
		{"random aggregates", countsTwice{newReferenceStore()}},
		{"random aggregates", ignoresSelectionWindow{newReferenceStore()}},
		{"random aggregates", returnsWrongExemplars{newReferenceStore()}},
		{"feeds", feedsOtherTenants{newReferenceStore()}},
		{"feeds", feedsNothing{newReferenceStore()}},
	} {
		c, ok := byName[w.check]
		if !ok || !fails(t, c, w.store) {
			t.Errorf("%T passes %q", w.store, w.check)
		}
	}
}

// fails runs one check on a store and reports whether it failed.
func fails(t *testing.T, c check, store Subject) bool {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := newSuite(r, store)
		s.patience = 0
		c.run(s)
	}()
	<-done
	return r.Failed()
}

// recorder is a testing.TB that records failures without failing the test.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
}

func (r *recorder) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Errorf(string, ...any) { r.fail() }

func (r *recorder) Fatalf(string, ...any) {
	r.fail()
	runtime.Goexit()
}

func (r *recorder) Skip(...any) { runtime.Goexit() }

// TestRandomCheckDetectsIncorrectStores checks that random queries alone detect incorrect stores.
func TestRandomCheckDetectsIncorrectStores(t *testing.T) {
	soak.SkipIfRaced(t)
	random := checks()[len(checks())-1]
	for name, store := range map[string]Subject{
		"drops a span": dropsSpan{newReferenceStore()}, "excludes the end": excludesBounds{newReferenceStore()},
		"ignores the limit": ignoresLimit{newReferenceStore()},
	} {
		if !fails(t, random, store) {
			t.Errorf("store that %s passes random queries", name)
		}
	}
}

// TestModel checks that Model accepts a correct store and detects one that lost a request.
func TestModel(t *testing.T) {
	m := NewModel(t, 1)
	store := newReferenceStore()
	for range 20 {
		m.Write(store)
		m.Check(store)
	}
	m.Forget(15)
	if m.Written() != 5 {
		t.Errorf("%d recorded requests, want 5", m.Written())
	}
	store = newReferenceStore()
	m.Replay(store)
	m.CheckAll(store)
	for range 20 {
		m.Check(store)
	}

	failed := &recorder{TB: t}
	m = NewModel(failed, 2)
	lossy := newReferenceStore()
	m.Write(lossy)
	m.Record(m.Next())
	m.CheckAll(lossy)
	if !failed.Failed() {
		t.Error("the model does not detect a lost request")
	}
}
