package multistore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// complete adds the spans that other stores have to the traces of a group, and leaves out traces
// that were returned on an earlier page because of spans in another store. For traces in a single
// store, this costs one request for all of them to each of the other stores.
func (f *search) complete(ctx context.Context, group []found) ([]found, error) {
	if len(f.parts) == 1 || len(group) == 0 || f.want == tracestore.WantIDs && !f.query.After.Set {
		return group, nil
	}
	others, err := f.readOthers(ctx, group)
	if err != nil || len(others) == 0 {
		return group, err
	}
	kept := group[:0]
	for _, r := range group {
		pieces := others[r.ID]
		returned, err := f.returnedBefore(ctx, r.ID, pieces)
		if err != nil {
			return nil, err
		}
		if returned {
			continue
		}
		if f.want == tracestore.WantFull && len(pieces) > 0 {
			if r.Spans, err = joinDistinct(r.Spans, pieces); err != nil {
				return nil, err
			}
		}
		kept = append(kept, r)
	}
	if f.want == tracestore.WantSummaries {
		return kept, f.summarize(ctx, kept, others)
	}
	return kept, nil
}

// readOthers reads spans of traces that other stores returned. The memory of the search includes
// them until the next group.
func (f *search) readOthers(ctx context.Context, group []found) (map[otlpdata.TraceID][]*otlpdata.Batch, error) {
	type reply struct {
		traces []tracestore.Trace
		memory *tracestore.Memory
		err    error
	}
	replies := make(map[*part]*reply, len(f.parts))
	var asked []*part
	for _, p := range f.parts {
		if !p.lost {
			asked, replies[p] = append(asked, p), new(reply)
		}
	}
	concurrently(len(asked), func(i int) {
		p := asked[i]
		r := replies[p]
		var refs []tracestore.TraceRef
		for i := range group {
			if group[i].part != p {
				refs = append(refs, tracestore.TraceRef{ID: group[i].ID})
			}
		}
		if r.memory, r.err = tracestore.Reserve(ctx, 0); r.err != nil || len(refs) == 0 {
			return
		}
		r.traces, r.err = p.readAll(refs, r.memory)
	})
	others := make(map[otlpdata.TraceID][]*otlpdata.Batch)
	held := int64(0)
	for _, p := range asked {
		r := replies[p]
		held += r.memory.Held()
		r.memory.Release()
		for _, t := range r.traces {
			others[t.ID] = append(others[t.ID], t.Spans)
		}
		if r.err != nil {
			f.noteError(p, r.err)
		}
	}
	if err := f.memory.Grow(held); err != nil {
		return nil, err
	}
	return others, f.settle(ctx)
}

// readAll returns a store's spans of traces. With an error it also returns the spans that it had
// read before.
func (p *part) readAll(refs []tracestore.TraceRef, memory *tracestore.Memory) (traces []tracestore.Trace, err error) {
	err = p.wait(func() error {
		store, ok := tracestore.As[tracestore.Reader](p.ctx, p.query.Tenant, p.Store)
		if !ok {
			return unsupported(p.Name)
		}
		for t, err := range store.Traces(p.ctx, p.query.Tenant, refs) {
			if err == nil {
				err = memory.Grow(int64(t.Spans.Size()))
			}
			if err != nil {
				return err
			}
			traces = append(traces, t)
		}
		return nil
	})
	return traces, err
}

// noteError records damage. Other errors belong to a failed part; settle records them.
func (f *search) noteError(p *part, err error) {
	if isDamaged(err) {
		f.missing.Add(tracestore.Reason{Kind: tracestore.ReasonDamage, Store: p.Name, Text: err.Error()})
		return
	}
	p.err = err
}

// returnedBefore reports whether a trace that another store has pieces of was returned on an
// earlier page.
func (f *search) returnedBefore(ctx context.Context, id otlpdata.TraceID, pieces []*otlpdata.Batch) (before bool, err error) {
	from, to, ok := f.query.Window()
	if !f.query.After.Set || !ok {
		return false, nil
	}
	where := tracestore.WithContext(ctx, f.query.Where)
	for _, b := range pieces {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			key := tracestore.Cursor{Start: s.Start, ID: id}
			before = before || from <= s.Start && s.Start <= to && compareKeys(key, f.query.After) <= 0 && tracestore.Match(where, s)
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return before, ctx.Err() // Match may be wrong, see tracestore.WithContext
}

// joinDistinct returns the spans of a trace and of further pieces, without duplicates.
func joinDistinct(spans *otlpdata.Batch, pieces []*otlpdata.Batch) (*otlpdata.Batch, error) {
	seen := storequery.NewDedup()
	var parts []*otlpdata.Batch
	for _, b := range append([]*otlpdata.Batch{spans}, pieces...) {
		part, err := distinct(b, seen)
		if err != nil {
			return nil, err
		}
		if part != nil {
			parts = append(parts, part)
		}
	}
	return otlpdata.Concat(parts...)
}

// summarize replaces the summaries of traces that other stores have pieces of.
func (f *search) summarize(ctx context.Context, group []found, others map[otlpdata.TraceID][]*otlpdata.Batch) error {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer memory.Release()
	for i := range group {
		r := &group[i]
		pieces := others[r.ID]
		if len(pieces) == 0 {
			continue
		}
		own, err := r.part.readAll([]tracestore.TraceRef{{ID: r.ID}}, memory)
		if err != nil {
			f.noteError(r.part, err)
			if err := f.settle(ctx); err != nil {
				return err
			}
			if !isDamaged(err) {
				continue // with the summary of the store
			}
		}
		for _, t := range own {
			pieces = append(pieces, t.Spans)
		}
		sum, err := storequery.Summarize(r.ID, pieces...)
		if err != nil {
			return err
		}
		r.Summary = &sum
		memory.Release()
	}
	return nil
}
