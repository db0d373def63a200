package clickhouse

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// results holds the requested parts of some traces until they are returned.
type results struct {
	want      tracestore.Want
	memory    *tracestore.Memory
	summaries map[otlpdata.TraceID]*tracestore.Summary
	spans     map[otlpdata.TraceID]*otlpdata.Batch
}

// take returns the result of a trace. ok is false if the trace does not exist. Its spans then
// belong to the caller.
func (r *results) take(h hit) (out tracestore.Result, ok bool) {
	out = tracestore.Result{ID: h.id, Start: h.start}
	switch r.want {
	case tracestore.WantSummaries:
		out.Summary, ok = r.summaries[h.id]
	case tracestore.WantFull:
		out.Spans, ok = r.spans[h.id]
		if ok {
			delete(r.spans, h.id)
			_ = r.memory.Grow(-int64(out.Spans.Size())) // cannot fail
		}
	default:
		ok = true
	}
	return out, ok
}

func (r *results) release() { r.memory.Release() }

// read reads the requested parts of traces. The caller must release the results.
func (s *search) read(ctx context.Context, hits []hit) (*results, error) {
	r := &results{want: s.want}
	r.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	if len(hits) == 0 {
		return r, nil
	}
	var err error
	switch s.want {
	case tracestore.WantSummaries:
		ids := make([]otlpdata.TraceID, len(hits))
		for i, h := range hits {
			ids[i] = h.id
		}
		if err = r.memory.Grow(int64(len(hits)) * resultMemory); err == nil {
			r.summaries, err = s.store.summaries(ctx, s.query.Tenant, ids)
			err = s.noteDamage(err)
		}
	case tracestore.WantFull:
		err = s.readSpans(ctx, r, hits)
	}
	if err != nil {
		r.release()
	}
	return r, err
}

// readSpans reads whole traces: together, or one by one if they are large.
func (s *search) readSpans(ctx context.Context, r *results, hits []hit) error {
	r.spans = make(map[otlpdata.TraceID]*otlpdata.Batch, len(hits))
	c := traceCollector{out: r, pieces: make(map[otlpdata.TraceID][]*otlpdata.Batch)}
	reader := s.store.reader(s.query.Tenant, c.add)
	refs := make([]tracestore.TraceRef, len(hits))
	for i, h := range hits {
		refs[i].ID = h.id
	}
	together := false
	var err error
	if len(refs) > 1 {
		_, together, err = reader.readTogether(ctx, refs)
	}
	c.limit = s.query.Budget.TraceSpans
	for i := 0; err == nil && !together && i < len(refs); i++ {
		c.spans = 0
		if _, err = reader.readOne(ctx, refs[i:i+1]); errors.Is(err, errStop) && c.err == nil {
			err = nil
		}
	}
	if err == nil {
		err = c.concat()
	}
	if c.err != nil {
		return c.err
	}
	if err != nil {
		return err
	}
	return s.noteDamage(reader.damage)
}

// traceCollector collects the pieces of traces.
type traceCollector struct {
	limit  int // number of needed spans of a trace that is read alone; 0: all
	spans  int // of the trace that is read alone
	out    *results
	pieces map[otlpdata.TraceID][]*otlpdata.Batch
	err    error
}

// add adds a piece, and returns false to end the read.
func (c *traceCollector) add(t tracestore.Trace, _ error) bool {
	if c.err = c.out.memory.Grow(int64(t.Spans.Size())); c.err != nil {
		return false
	}
	c.pieces[t.ID] = append(c.pieces[t.ID], t.Spans)
	c.spans += t.Spans.Len()
	return c.limit <= 0 || c.spans <= c.limit
}

// concat joins the pieces of each trace.
func (c *traceCollector) concat() error {
	for id, pieces := range c.pieces {
		b, err := otlpdata.Concat(pieces...)
		if err != nil {
			return err
		}
		c.out.spans[id] = b
	}
	return nil
}

// resultMemory is the approximate number of bytes of a summary.
const resultMemory = 1 << 10
