package query

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

// fakeStore answers from a slice, by looking at every span. It can also fail in the ways that stores do.
type fakeStore struct {
	spans      *otlpdata.Batch
	fail       error                       // of every call
	failAt     int                         // fail only after so many traces
	hang       bool                        // like failAt, but until the context ends
	outcome    tracestore.Outcome          // of Find
	asked      func(tracestore.Query)      // told of every search
	refs       func([]tracestore.TraceRef) // told of every request for traces
	askedRates func(tracestore.MetricsQuery)
	read       int // pieces of traces that were taken
}

var errStore = errors.New("disk on fire")

func newFakeStore(td ptrace.Traces) *fakeStore {
	return &fakeStore{spans: otlpdata.FromTraces(td, otlpdata.Meta{}), outcome: tracestore.Outcome{Complete: true}}
}

// each calls visit with every span, and with the span as a batch of its own.
func (f *fakeStore) each(visit func(tracestore.Span, *otlpdata.Batch)) {
	err := tracestore.WalkSpans(f.spans, func(s tracestore.Span) error {
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

// broken returns the error that ends a sequence after n traces, if there is to be one.
func (f *fakeStore) broken(ctx context.Context, n int) error {
	if n < f.failAt {
		return nil
	}
	if f.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.fail
}

// Traces returns every span as a piece of its own.
func (f *fakeStore) Traces(ctx context.Context, _ string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	if f.refs != nil {
		f.refs(refs)
	}
	return func(yield func(tracestore.Trace, error) bool) {
		for _, ref := range refs {
			if err := f.broken(ctx, f.read); err != nil {
				yield(tracestore.Trace{}, err)
				return
			}
			for _, b := range f.pieces(ref.ID) {
				f.read++
				if !yield(tracestore.Trace{ID: ref.ID, Spans: b}, nil) {
					return
				}
			}
		}
	}
}

func (f *fakeStore) pieces(id otlpdata.TraceID) (out []*otlpdata.Batch) {
	f.each(func(s tracestore.Span, b *otlpdata.Batch) {
		if s.TraceID == id {
			out = append(out, b)
		}
	})
	return out
}

func (f *fakeStore) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if f.asked != nil {
		f.asked(q)
	}
	if f.fail != nil && f.failAt == 0 {
		return nil, f.fail
	}
	all := func(yield func(tracestore.Result, error) bool) {
		for n, r := range f.matches(q) {
			if err := f.broken(ctx, n); err != nil {
				yield(tracestore.Result{}, err)
				return
			}
			if !yield(f.fill(r, want)) {
				return
			}
		}
	}
	return &tracestore.Results{All: all, Outcome: func() tracestore.Outcome { return f.outcome }}, nil
}

// fill adds what is wanted of a trace.
func (f *fakeStore) fill(r tracestore.Result, want tracestore.Want) (_ tracestore.Result, err error) {
	switch want {
	case tracestore.WantFull:
		r.Spans, err = otlpdata.Concat(f.pieces(r.ID)...)
	case tracestore.WantSummaries:
		var s tracestore.Summary
		s, err = storequery.Summarize(r.ID, f.pieces(r.ID)...)
		r.Summary = &s
	}
	return r, err
}

func (f *fakeStore) matches(q tracestore.Query) (found []tracestore.Result) {
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

func (f *fakeStore) Services(ctx context.Context, _ string) ([]string, error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) { names[s.Resource.Service] = true })
	return slices.Sorted(maps.Keys(names)), nil
}

func (f *fakeStore) Dependencies(ctx context.Context, _ string, from, to time.Time) (tracestore.Graph, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.Graph{}, err
	}
	edges, err := storequery.CountCalls(from, to, f.spans)
	return tracestore.Graph{Edges: edges, Complete: f.outcome.Complete, Reason: f.outcome.Reason}, err
}

func (f *fakeStore) Peers(ctx context.Context, _ string, from, to time.Time) (tracestore.Graph, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.Graph{}, err
	}
	return storequery.CountPeers(from, to, f.spans)
}

func (f *fakeStore) Metrics(ctx context.Context, _ string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.MetricsAnswer{}, err
	}
	if f.askedRates != nil {
		f.askedRates(q)
	}
	c := storequery.NewMetricsCounter(q)
	from, to, ok := q.Window()
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) {
		if !ok || s.Start < from || s.Start > to || !c.Wants(s.Resource.Service, s.KindName()) {
			return
		}
		if series, room := c.Series(s.Resource.Service, s.Operation()); room {
			c.AddSpan(series, s.Start, s.End-s.Start, s.AdjustedCount(), s.StatusCode == otlpdata.StatusError)
		}
	})
	a := c.Answer()
	a.Complete, a.Reason = f.outcome.Complete, f.outcome.Reason
	return a, nil
}

func (f *fakeStore) Operations(ctx context.Context, _, service, kind string) ([]tracestore.Operation, error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, err
	}
	ops := make(map[tracestore.Operation]bool)
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) {
		if s.Resource.Service == service && (kind == "" || s.KindName() == kind) {
			ops[tracestore.Operation{Name: s.Operation(), Kind: s.KindName()}] = true
		}
	})
	return slices.SortedFunc(maps.Keys(ops), func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	}), nil
}

// fakeArchive is a store that remembers what it was given.
type fakeArchive struct {
	*fakeStore
	took []*otlpdata.Batch
}

func (f *fakeArchive) Consume(_ context.Context, b *otlpdata.Batch) error {
	if f.fail != nil {
		return f.fail
	}
	f.took = append(f.took, b)
	return nil
}
