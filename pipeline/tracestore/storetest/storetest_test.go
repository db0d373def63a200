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
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// naive is a right store made of the oracle itself.
type naive struct {
	tracestore.Hub
	mu sync.RWMutex
	o  *oracle
}

var (
	_ tracestore.AttributeCatalog = (*naive)(nil)
	_ tracestore.Dependencies     = (*naive)(nil)
	_ tracestore.Peers            = (*naive)(nil)
	_ tracestore.Metrics          = (*naive)(nil)
	_ tracestore.Aggregator       = (*naive)(nil)
	_ tracestore.Follower         = (*naive)(nil)
)

func newNaive() *naive { return &naive{o: newOracle()} }

func (n *naive) Consume(_ context.Context, b *otlpdata.Batch) error {
	segments, err := b.Segments()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, seg := range segments {
		part, err := otlpdata.FromOTLP(seg, b.Meta(), otlpdata.Limits{})
		if err != nil {
			return err
		}
		n.o.add(part)
	}
	n.Publish(b)
	return nil
}

// read runs f with the oracle, whose methods make entries for tenants they do not know.
func (n *naive) read(f func(o *oracle)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n.o)
}

func (n *naive) spans(tenant string, id otlpdata.TraceID) (b *otlpdata.Batch, err error) {
	n.read(func(o *oracle) {
		if spans := o.tenant(tenant).traces[id]; len(spans) > 0 {
			b, err = encode(tenant, spans)
		}
	})
	return b, err
}

func (n *naive) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
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

func (n *naive) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	var all []tracestore.Result
	n.read(func(o *oracle) { all = o.find(q) })
	var outcome tracestore.Outcome
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
			outcome.Complete = true
			if q.Limit > 0 && len(all) == q.Limit {
				last := all[len(all)-1]
				outcome.Next = tracestore.Cursor{Start: last.Start, ID: last.ID, Set: true}
			}
		},
	}, ctx.Err()
}

func (n *naive) Services(_ context.Context, tenant string) (out []string, _ error) {
	n.read(func(o *oracle) { out = o.services(tenant) })
	return out, nil
}

func (n *naive) Operations(_ context.Context, tenant, service, kind string) (out []tracestore.Operation, _ error) {
	n.read(func(o *oracle) { out = o.operations(tenant, service, kind) })
	return out, nil
}

func (n *naive) AttributeKeys(_ context.Context, tenant, prefix string, limit int) (out []string, _ error) {
	n.read(func(o *oracle) { out = o.attributeKeys(tenant, prefix) })
	return cut(out, limit), nil
}

func (n *naive) AttributeValues(_ context.Context, tenant, key, prefix string, limit int) (out []string, _ error) {
	n.read(func(o *oracle) { out = o.attributeValues(tenant, key, prefix) })
	return cut(out, limit), nil
}

func (n *naive) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	g := tracestore.Graph{Complete: true}
	n.read(func(o *oracle) { g.Edges, _ = o.calls(tenant, from, to) })
	return g, ctx.Err()
}

func (n *naive) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	g := tracestore.Graph{Complete: true}
	n.read(func(o *oracle) { g.Edges, _ = o.peers(tenant, from, to) })
	return g, ctx.Err()
}

func (n *naive) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	return n.countMetrics(tenant, q, tracestore.Span.AdjustedCount), ctx.Err()
}

// countMetrics takes each span for as many calls as count says.
func (n *naive) countMetrics(tenant string, q tracestore.MetricsQuery, count func(tracestore.Span) uint64) tracestore.MetricsAnswer {
	from, to, _ := q.Window()
	c := storequery.NewMetricsCounter(q)
	n.read(func(o *oracle) {
		for _, s := range o.tenant(tenant).spans {
			if s.Start < from || s.Start > to || !c.Wants(s.Resource.Service, s.KindName()) {
				continue
			}
			duration, _ := s.Duration()
			series, _ := c.Series(s.Resource.Service, s.Operation())
			c.AddSpan(series, s.Start, duration, count(s), s.StatusCode == otlpdata.StatusError)
		}
	})
	return c.Answer()
}

// Aggregate examines every second span, or every third and so on.
func (n *naive) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
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

func cut(list []string, limit int) []string {
	if limit == 0 {
		limit = 1000
	}
	return list[:min(limit, len(list))]
}

func TestRightStorePasses(t *testing.T) {
	Store(t, func(testing.TB) Subject { return newNaive() })
}

// The wrong stores. Each breaks one promise of the right one.
type (
	dropsASpan     struct{ *naive }
	storesTwice    struct{ *naive }
	mixesTenants   struct{ *naive }
	ignoresLimit   struct{ *naive }
	ignoresCursor  struct{ *naive }
	limitsFirst    struct{ *naive }
	oldestFirst    struct{ *naive }
	excludesBounds struct{ *naive }
	silentBudget   struct{ *naive }
	ignoresContext struct{ *naive }
	forgetsLate    struct{ *naive }
	unsorted       struct{ *naive }
	callsByMinute  struct{ *naive }
	callsOfAll     struct{ *naive }
	callsLateOnes  struct{ *naive }
	peersByMinute  struct{ *naive }
	peersAnswered  struct{ *naive }
	ratesByMinute  struct{ *naive }
	ratesOfAKind   struct{ *naive }
	ratesOfStored  struct{ *naive }
	roughDurations struct{ *naive }
	newestOnly     struct{ *naive }
	proudOfSamples struct{ *naive }
	scalesCounts   struct{ *naive }
	tearsText      struct{ *naive }
	countsTwice    struct{ *naive }
	selectsAll     struct{ *naive }
	wideColumns    struct{ *naive }
	strayExamples  struct{ *naive }
	asksNobody     struct{ *naive }
	byChance       struct{ *naive }
	tellsTenants   struct{ *naive }
	tellsNobody    struct{ *naive }
)

func (w tellsTenants) Follow(_ string, room int) *tracestore.Feed { return w.naive.Follow("", room) }

func (w tellsNobody) Follow(tenant string, room int) *tracestore.Feed {
	return new(tracestore.Hub).Follow(tenant, room)
}

func (w dropsASpan) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for tr, err := range w.naive.Traces(ctx, tenant, refs) {
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

func (w storesTwice) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for tr, err := range w.naive.Traces(ctx, tenant, refs) {
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
	return w.naive.Consume(ctx, otlpdata.FromTraces(td, otlpdata.Meta{}))
}

func (w ignoresLimit) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	q.Limit = 0
	return w.naive.Find(ctx, q, want)
}

func (w ignoresCursor) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	q.After = tracestore.Cursor{}
	return w.naive.Find(ctx, q, want)
}

// limitsFirst applies the limit below the condition.
func (w limitsFirst) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	below := q
	below.Where = nil
	var found []tracestore.Result
	w.read(func(o *oracle) { found = o.find(below) })
	res, err := w.naive.Find(ctx, q, want)
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
	res, err := w.naive.Find(ctx, q, want)
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

func (w excludesBounds) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if !q.To.IsZero() {
		q.To = q.To.Add(-1)
	}
	return w.naive.Find(ctx, q, want)
}

func (w silentBudget) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	res, err := w.naive.Find(ctx, q, want)
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
	return w.naive.Find(context.WithoutCancel(ctx), q, want)
}

// forgetsLate keeps a trace as its first request made it.
func (w forgetsLate) Consume(ctx context.Context, b *otlpdata.Batch) error {
	late := false
	err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		w.read(func(o *oracle) { late = late || len(o.tenant(b.Meta().Tenant).traces[s.TraceID]) > 0 })
		return nil
	})
	if err != nil || late {
		return err
	}
	return w.naive.Consume(ctx, b)
}

func (w unsorted) Services(ctx context.Context, tenant string) ([]string, error) {
	out, err := w.naive.Services(ctx, tenant)
	slices.Reverse(out)
	return out, err
}

func (w callsByMinute) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	if !from.IsZero() {
		from = from.Truncate(time.Minute)
	}
	return w.naive.Dependencies(ctx, tenant, from, to)
}

func (w callsOfAll) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	g, err := w.naive.Dependencies(ctx, tenant, from, to)
	w.read(func(o *oracle) { _, g.Edges = o.calls(tenant, from, to) })
	for i := range g.Edges {
		g.Edges[i].Calls++ // a duplicate within a request
	}
	return g, err
}

// Dependencies knows only parents that came before their children.
func (w callsLateOnes) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
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
	return tracestore.Graph{Edges: calls.Edges(), Complete: true}, ctx.Err()
}

func (w peersByMinute) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	if !to.IsZero() {
		to = to.Truncate(time.Minute).Add(time.Minute - 1)
	}
	return w.naive.Peers(ctx, tenant, from, to)
}

// Peers knows only answers that came before.
func (w peersAnswered) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	known := newOracle()
	var calls storequery.PeerCounter
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	w.read(func(o *oracle) {
		for _, s := range o.tenant(tenant).spans {
			t := known.tenant(tenant)
			t.traces[s.TraceID] = append(t.traces[s.TraceID], s)
			c := storequery.CallSpanOf(s)
			if ok && c.Peer != "" && c.Start >= first && c.Start <= last && !isAnswered(t.traces[s.TraceID], s.SpanID) {
				calls.AddCall(&c)
			}
		}
	})
	return calls.Graph(), ctx.Err()
}

func (w ratesByMinute) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	if !q.From.IsZero() {
		q.From = q.From.Truncate(time.Minute)
	}
	return w.naive.Metrics(ctx, tenant, q)
}

func (w ratesOfAKind) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	q.Kinds = q.Kinds[:min(len(q.Kinds), 1)]
	return w.naive.Metrics(ctx, tenant, q)
}

// Metrics counts the spans that are stored, and not what they stand for.
func (w ratesOfStored) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	return w.countMetrics(tenant, q, func(tracestore.Span) uint64 { return 1 }), ctx.Err()
}

// roughDurations has two buckets per octave.
func (w roughDurations) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	a, err := w.naive.Metrics(ctx, tenant, q)
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

// Aggregate examines the first spans, and says that there are no others.
func (w newestOnly) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
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

// Aggregate examines a part, and says that it is twice as large as it is.
func (w proudOfSamples) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.mend(ctx, q, a, func(out *tracestore.Aggregate) {
		out.Share = min(2*out.Share, 1)
		if out.Heatmap != nil {
			out.Heatmap.Share = out.Share
		}
		if out.Facets != nil {
			out.Facets.Share = out.Share
		}
	})
}

// mend changes an answer of the right store.
func (n *naive) mend(ctx context.Context, q tracestore.Query, a tracestore.Aggregation, f func(*tracestore.Aggregate)) (tracestore.Aggregate, error) {
	out, err := n.Aggregate(ctx, q, a)
	if err == nil {
		f(&out)
	}
	return out, err
}

func (w scalesCounts) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.mend(ctx, q, a, func(out *tracestore.Aggregate) { out.Spans = uint64(1.5 * float64(out.Spans) / out.Share) })
}

func (w tearsText) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.mend(ctx, q, a, func(out *tracestore.Aggregate) {
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

// Aggregate counts a span as often as it came, also within a request.
func (w countsTwice) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	c, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	w.read(func(o *oracle) {
		for _, s := range o.tenant(q.Tenant).spans {
			for range 1 + o.tenant(q.Tenant).requests[content(s)] {
				c.AddSpan(s)
			}
		}
	})
	return c.Answer(1), ctx.Err()
}

func (w selectsAll) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if s := a.Facets.Selection; s != nil {
		a.Facets.Selection = &tracestore.Selection{Where: s.Where}
	}
	return w.naive.Aggregate(ctx, q, a)
}

// Aggregate makes columns begin with the window.
func (w wideColumns) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.mend(ctx, q, a, func(out *tracestore.Aggregate) {
		if out.Heatmap == nil {
			return
		}
		from, _, _ := q.Window()
		for i := range out.Heatmap.Cells {
			out.Heatmap.Cells[i].Start += from % out.Heatmap.Step
		}
	})
}

func (w strayExamples) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	out, err := w.naive.Aggregate(ctx, q, a)
	q.Where = nil
	all, _ := w.naive.Aggregate(ctx, q, a)
	out.Exemplars = all.Exemplars
	return out, err
}

// Aggregate takes what nobody may ask for as if it had not been asked.
func (w asksNobody) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if a.Check(q) != nil {
		a = tracestore.Aggregation{}
	}
	return w.naive.Aggregate(ctx, q, a)
}

// Aggregate shows other examples every time.
func (w byChance) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	return w.mend(ctx, q, a, func(out *tracestore.Aggregate) {
		rand.Shuffle(len(out.Exemplars), func(i, j int) {
			out.Exemplars[i], out.Exemplars[j] = out.Exemplars[j], out.Exemplars[i]
		})
	})
}

// skipShort leaves out what shows the teeth of the suite: the race detector finds nothing there, and takes minutes.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs without -short: the suite against wrong stores and planners")
	}
}

// TestWrongStoresFail is the reason to believe the suite: each wrong store fails the check of the promise that it breaks.
func TestWrongStoresFail(t *testing.T) {
	skipShort(t)
	byName := make(map[string]check)
	for _, c := range checks() {
		byName[c.name] = c
	}
	for _, w := range []struct {
		check string
		store Subject
	}{
		{"everything in a span comes back", dropsASpan{newNaive()}},
		{"a trace of 10,000 spans", dropsASpan{newNaive()}},
		{"duplicates are shown once", storesTwice{newNaive()}},
		{"tenants are apart", mixesTenants{newNaive()}},
		{"newest first, ties by id, limit last", ignoresLimit{newNaive()}},
		{"newest first, ties by id, limit last", limitsFirst{newNaive()}},
		{"newest first, ties by id, limit last", oldestFirst{newNaive()}},
		{"pages list each trace once", ignoresCursor{newNaive()}},
		{"pages and traces with several matches", ignoresCursor{newNaive()}},
		{"windows include both bounds", excludesBounds{newNaive()}},
		{"a budget is never silent", silentBudget{newNaive()}},
		{"the context ends a query", ignoresContext{newNaive()}},
		{"a trace grows by late spans", forgetsLate{newNaive()}},
		{"catalog", unsorted{newNaive()}},
		{"calls between services", callsByMinute{newNaive()}},
		{"calls between services", callsOfAll{newNaive()}},
		{"calls between services", callsLateOnes{newNaive()}},
		{"calls between services", peersByMinute{newNaive()}},
		{"calls between services", peersAnswered{newNaive()}},
		{"random calls", peersAnswered{newNaive()}},
		{"random calls", callsByMinute{newNaive()}},
		{"rates, errors and durations", ratesByMinute{newNaive()}},
		{"rates, errors and durations", ratesOfAKind{newNaive()}},
		{"rates, errors and durations", ratesOfStored{newNaive()}},
		{"rates, errors and durations", roughDurations{newNaive()}},
		{"random rates, errors and durations", ratesByMinute{newNaive()}},
		{"random rates, errors and durations", ratesOfStored{newNaive()}},
		{"heatmaps, facets and exemplars", newestOnly{newNaive()}},
		{"heatmaps, facets and exemplars", tearsText{newNaive()}},
		{"heatmaps, facets and exemplars", countsTwice{newNaive()}},
		{"heatmaps, facets and exemplars", selectsAll{newNaive()}},
		{"heatmaps, facets and exemplars", wideColumns{newNaive()}},
		{"heatmaps, facets and exemplars", strayExamples{newNaive()}},
		{"heatmaps, facets and exemplars", asksNobody{newNaive()}},
		{"more fields and values than are counted", newestOnly{newNaive()}},
		{"more fields and values than are counted", proudOfSamples{newNaive()}},
		{"more fields and values than are counted", scalesCounts{newNaive()}},
		{"more fields and values than are counted", byChance{newNaive()}},
		{"random aggregates", countsTwice{newNaive()}},
		{"random aggregates", selectsAll{newNaive()}},
		{"random aggregates", strayExamples{newNaive()}},
		{"spans as they are stored", tellsTenants{newNaive()}},
		{"spans as they are stored", tellsNobody{newNaive()}},
	} {
		c, ok := byName[w.check]
		if !ok || !fails(t, c, w.store) {
			t.Errorf("%T passes %q", w.store, w.check)
		}
	}
}

// fails runs one check against a wrong store and reports whether it found it out.
func fails(t *testing.T, c check, store Subject) bool {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(newSuite(r, store))
	}()
	<-done
	return r.Failed()
}

// recorder is a testing.TB whose failures fail nobody.
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

func TestRandomFindsWrongStores(t *testing.T) {
	random := checks()[len(checks())-1]
	for name, store := range map[string]Subject{
		"drops a span": dropsASpan{newNaive()}, "excludes the end": excludesBounds{newNaive()}, "ignores the limit": ignoresLimit{newNaive()},
	} {
		if !fails(t, random, store) {
			t.Errorf("%s: passes random queries", name)
		}
	}
}

// TestModel drives a right store, and one that forgets a request that it acknowledged.
func TestModel(t *testing.T) {
	m := NewModel(t, 1)
	store := newNaive()
	for range 20 {
		m.Write(store)
		m.Ask(store)
	}
	m.Forget(15)
	if m.Written() != 5 {
		t.Errorf("%d requests are remembered, want 5", m.Written())
	}
	store = newNaive()
	m.Replay(store)
	m.AskAll(store)
	for range 20 {
		m.Ask(store)
	}

	wrong := &recorder{TB: t}
	m = NewModel(wrong, 2)
	forgetful := newNaive()
	m.Write(forgetful)
	m.Remember(m.Next())
	m.AskAll(forgetful)
	if !wrong.Failed() {
		t.Error("a store that lost a request passes")
	}
}
