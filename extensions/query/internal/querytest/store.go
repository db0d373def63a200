package querytest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Store is a store that examines every span for each query. It can fail in the same ways as real
// stores.
type Store struct {
	storequery.WholeTraces

	Spans     *otlpdata.Batch
	Fail      error                         // of each call
	FailAt    int                           // fail only after this many traces
	Hang      bool                          // like FailAt, but wait until the context ends
	Damage    string                        // what Traces cannot read of all requested traces
	Outcome   tracestore.Outcome            // of Find
	OnFind    func(tracestore.Query)        // called by each search
	OnTraces  func([]tracestore.TraceRef)   // called by each request for traces
	OnMetrics func(tracestore.MetricsQuery) // called by each request for metrics
	Read      int                           // number of pieces of traces that were read
}

// ErrStore is an error of a store.
var ErrStore = errors.New("disk on fire")

// NewStore returns a store with spans.
func NewStore(td ptrace.Traces) *Store {
	f := &Store{Spans: otlpdata.FromTraces(td, otlpdata.Meta{})}
	f.Of = f
	return f
}

// each calls visit for each span, together with a batch that contains only this span.
func (f *Store) each(visit func(tracestore.Span, *otlpdata.Batch)) {
	err := tracestore.WalkSpans(f.Spans, func(s tracestore.Span) error {
		b, err := otlpdata.FromOTLP(otlpdata.AppendResourceSpans(nil, s.Resource, s.Scope, s.Raw), otlpdata.Meta{}, otlpdata.Limits{})
		if err == nil {
			visit(s, b)
		}
		return err
	})
	if err != nil {
		panic(err)
	}
}

// broken returns the error that ends a sequence after n traces, or nil.
func (f *Store) broken(ctx context.Context, n int) error {
	if n < f.FailAt {
		return nil
	}
	if f.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Fail
}

// Traces returns each span as a separate piece.
func (f *Store) Traces(ctx context.Context, _ string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	if f.OnTraces != nil {
		f.OnTraces(refs)
	}
	return func(yield func(tracestore.Trace, error) bool) {
		for _, ref := range refs {
			if err := f.broken(ctx, f.Read); err != nil {
				yield(tracestore.Trace{}, err)
				return
			}
			for _, b := range f.Pieces(ref.ID) {
				f.Read++
				if !yield(tracestore.Trace{ID: ref.ID, Spans: b}, nil) {
					return
				}
			}
		}
		if f.Damage != "" {
			yield(tracestore.Trace{}, tracestore.Damaged(f.Damage, nil))
		}
	}
}

// Pieces returns each span of a trace as a separate batch.
func (f *Store) Pieces(id otlpdata.TraceID) (out []*otlpdata.Batch) {
	f.each(func(s tracestore.Span, b *otlpdata.Batch) {
		if s.TraceID == id {
			out = append(out, b)
		}
	})
	return out
}

// Find implements tracestore.Reader.
func (f *Store) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if f.OnFind != nil {
		f.OnFind(q)
	}
	if f.Fail != nil && f.FailAt == 0 {
		return nil, f.Fail
	}
	all := func(yield func(tracestore.Result, error) bool) {
		for n, r := range f.Matches(q) {
			if err := f.broken(ctx, n); err != nil {
				yield(tracestore.Result{}, err)
				return
			}
			if !yield(f.Fill(r, want)) {
				return
			}
		}
	}
	return &tracestore.Results{All: all, Outcome: func() tracestore.Outcome { return f.Outcome }}, nil
}

// Fill adds the content of a trace to a result.
func (f *Store) Fill(r tracestore.Result, want tracestore.Want) (_ tracestore.Result, err error) {
	switch want {
	case tracestore.WantFull:
		r.Spans, err = otlpdata.Concat(f.Pieces(r.ID)...)
	case tracestore.WantSummaries:
		var s tracestore.Summary
		s, err = storequery.Summarize(r.ID, f.Pieces(r.ID)...)
		r.Summary = &s
	}
	return r, err
}

// Matches returns the ids and starts of the traces that match a query, newest first.
func (f *Store) Matches(q tracestore.Query) (found []tracestore.Result) {
	from, to, ok := q.Window()
	newest := make(map[otlpdata.TraceID]uint64)
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) {
		if ok && from <= s.Start && s.Start <= to && tracestore.Match(q.Where, s) {
			newest[s.TraceID] = max(newest[s.TraceID], s.Start)
		}
	})
	for id, start := range newest {
		found = append(found, tracestore.Result{ID: id, Start: start})
	}
	slices.SortFunc(found, func(a, b tracestore.Result) int { return cmp.Compare(b.Start, a.Start) })
	if q.Limit <= 0 {
		return found
	}
	return found[:min(len(found), q.Limit)]
}

// Services implements tracestore.Catalog.
func (f *Store) Services(ctx context.Context, _ string, q tracestore.NameQuery) (names []string, more bool, err error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, false, err
	}
	known := make(map[string]bool)
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) { known[s.Resource.Service] = true })
	names, more = storequery.SelectServices(slices.Sorted(maps.Keys(known)), q)
	return names, more, nil
}

// Dependencies implements tracestore.Edges.
func (f *Store) Dependencies(ctx context.Context, _ string, from, to time.Time) (tracestore.Graph, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.Graph{}, err
	}
	edges, err := storequery.CountCalls(from, to, f.Spans)
	return tracestore.Graph{Edges: edges, Reasons: f.Outcome.Reasons}, err
}

// Peers implements tracestore.Edges.
func (f *Store) Peers(ctx context.Context, _ string, from, to time.Time) (tracestore.Graph, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.Graph{}, err
	}
	return storequery.CountPeers(from, to, f.Spans)
}

// Edges implements tracestore.Edges.
func (f *Store) Edges(ctx context.Context, _ string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.EdgeGraph{}, err
	}
	return storequery.CountEdges(q, f.Spans)
}

// Metrics implements tracestore.Metrics.
func (f *Store) Metrics(ctx context.Context, _ string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.MetricsAnswer{}, err
	}
	if f.OnMetrics != nil {
		f.OnMetrics(q)
	}
	c := storequery.NewMetricsCounter(q)
	f.countCalls(tracestore.Query{From: q.From, To: q.To}, c)
	a := c.Answer()
	a.Reasons = f.Outcome.Reasons
	return a, nil
}

// Baselines implements tracestore.Metrics.
func (f *Store) Baselines(ctx context.Context, _ string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.BaselineAnswer{}, err
	}
	c := storequery.NewBaselineCounter(q)
	f.countCalls(tracestore.Query{From: q.From, To: q.To}, c)
	a := c.Answer()
	a.Reasons = f.Outcome.Reasons
	return a, nil
}

func (f *Store) countCalls(window tracestore.Query, c storequery.DurationCounter) {
	from, to, ok := window.Window()
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) {
		if !ok || s.Start < from || s.Start > to || !c.Wants(s.Resource.Service, s.KindName()) {
			return
		}
		if series, ok := c.Series(s.Resource.Service, s.Operation(), s.KindName()); ok {
			c.AddSpan(series, s.Start, s.End-s.Start, s.AdjustedCount(), s.StatusCode == otlpdata.StatusError)
		}
	})
}

// Operations implements tracestore.Catalog.
func (f *Store) Operations(
	ctx context.Context, _, service, kind string, q tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, err error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, false, err
	}
	known := make(map[tracestore.Operation]bool)
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) {
		if s.Resource.Service == service && (kind == "" || s.KindName() == kind) {
			known[tracestore.Operation{Name: s.Operation(), Kind: s.KindName()}] = true
		}
	})
	ops, more = storequery.SelectOperations(slices.SortedFunc(maps.Keys(known), func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	}), q)
	return ops, more, nil
}

// AttributeKeys returns an error: the store does not list attributes.
func (f *Store) AttributeKeys(context.Context, string, string, int) ([]string, error) {
	return nil, tracestore.ErrUnsupported
}

// AttributeValues is like AttributeKeys.
func (f *Store) AttributeValues(context.Context, string, string, string, int) ([]string, error) {
	return nil, tracestore.ErrUnsupported
}

// Archive is a store that records the spans that it gets.
type Archive struct {
	*Store
	Consumed []*otlpdata.Batch
}

// Consume notes a batch.
func (f *Archive) Consume(_ context.Context, b *otlpdata.Batch) error {
	if f.Fail != nil {
		return f.Fail
	}
	f.Consumed = append(f.Consumed, b)
	return nil
}
