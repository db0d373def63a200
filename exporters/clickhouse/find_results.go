package clickhouse

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// results holds what the caller wants of some traces until they are returned.
type results struct {
	want      tracestore.Want
	memory    *tracestore.Memory
	summaries map[otlpdata.TraceID]*tracestore.Summary
	spans     map[otlpdata.TraceID]*otlpdata.Batch
}

// take returns the result of a trace. ok is false if the trace does not exist. Its spans are the
// caller's from then on.
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

// read reads what the caller wants of traces. The caller must release the results.
func (s *search) read(ctx context.Context, hits []hit) (*results, error) {
	r := &results{want: s.want}
	r.memory, _ = tracestore.Reserve(ctx, 0) // nothing always fits
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
		together, err = reader.readTogether(ctx, refs)
	}
	c.limit = s.query.Budget.TraceSpans
	for i := 0; err == nil && !together && i < len(refs); i++ {
		c.spans = 0
		if err = reader.readOne(ctx, refs[i:i+1]); errors.Is(err, errStop) && c.err == nil {
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

// summaryMemory is the approximate number of bytes that it takes to summarize a span, without
// texts.
const summaryMemory = 300

// summaries returns the summaries of the traces that exist. It reads only the columns that it
// needs, except for traces that may contain duplicates. With a DamagedError it returns summaries of
// what can be read.
func (e *exporter) summaries(
	ctx context.Context, tenant string, ids []otlpdata.TraceID,
) (map[otlpdata.TraceID]*tracestore.Summary, error) {
	s := summaryScan{out: make(map[otlpdata.TraceID]*tracestore.Summary, len(ids))}
	s.memory, _ = tracestore.Reserve(ctx, 0) // nothing always fits
	defer s.memory.Release()
	sql := "SELECT trace_id, start, ids, duration, service, name, failed FROM " + e.db.Table("payload") +
		" WHERE " + where.Tenant(tenant) + " AND " + ofTraces(ids) + " ORDER BY tenant, trace_id, start"
	if err := e.eachRow(ctx, sql, s.row); err != nil {
		return nil, err
	}
	s.end()
	var damage error
	for _, id := range s.doubtful {
		sum, err := e.summarize(ctx, tenant, id)
		var damaged *tracestore.DamagedError
		if err != nil && !errors.As(err, &damaged) {
			return nil, err
		}
		if err != nil {
			damage = err
		}
		if sum.Spans > 0 {
			s.out[id] = &sum
		}
	}
	return s.out, damage
}

// summaryScan summarizes traces from rows in the order of trace id and start.
type summaryScan struct {
	memory *tracestore.Memory
	out    map[otlpdata.TraceID]*tracestore.Summary

	id    otlpdata.TraceID // of spans
	spans []tracestore.SummarySpan
	texts map[string]string
	bytes int // of texts
	// Duplicates have the same start, and are equal in all columns.
	same     map[tracestore.SummarySpan]struct{}
	twice    bool
	doubtful []otlpdata.TraceID // traces with spans that may be duplicates

	traceID, ids, service, name string
}

func (s *summaryScan) row(r db.Rows) error {
	var span tracestore.SummarySpan
	var failed uint8
	err := r.Scan(&s.traceID, &span.Start, &s.ids, &span.Duration, &s.service, &s.name, &failed)
	if err == nil && len(s.traceID) != len(s.id) {
		err = errors.New("trace id has a wrong length")
	}
	if err == nil {
		span.ID, span.Parent, err = rows.SplitIDs(s.ids)
	}
	if err != nil {
		return fmt.Errorf("reading summaries: %w", err)
	}
	span.Service, span.Name, span.Failed = s.text(s.service), s.text(s.name), failed != 0
	if string(s.id[:]) != s.traceID {
		s.end()
		copy(s.id[:], s.traceID)
	}
	if n := len(s.spans); n == 0 || s.spans[n-1].Start != span.Start {
		clear(s.same)
	}
	if _, again := s.same[span]; again {
		s.twice = true
	}
	if s.same == nil {
		s.same = make(map[tracestore.SummarySpan]struct{})
	}
	s.same[span] = struct{}{}
	s.spans = append(s.spans, span)
	return s.memory.Resize(int64(len(s.spans)*summaryMemory + s.bytes))
}

// text returns a text, the same for equal texts of a trace.
func (s *summaryScan) text(t string) string {
	known, ok := s.texts[t]
	if !ok {
		if s.texts == nil {
			s.texts = make(map[string]string)
		}
		known, s.texts[t] = t, t
		s.bytes += len(t)
	}
	return known
}

// end ends a trace.
func (s *summaryScan) end() {
	switch {
	case s.twice:
		s.doubtful = append(s.doubtful, s.id)
	case len(s.spans) > 0:
		sum := storequery.SummarizeSpans(s.id, s.spans)
		s.out[s.id] = &sum
	}
	s.spans, s.bytes, s.twice = s.spans[:0], 0, false
	clear(s.same)
	clear(s.texts)
}

// summarize summarizes a trace from its spans, of which duplicates count once.
func (e *exporter) summarize(ctx context.Context, tenant string, id otlpdata.TraceID) (tracestore.Summary, error) {
	var spans []tracestore.SummarySpan
	memory, _ := tracestore.Reserve(ctx, 0) // nothing always fits
	defer memory.Release()
	var out outline
	err := e.eachSpan(ctx, tenant, ofTraces([]otlpdata.TraceID{id}), func(s tracestore.Span) error {
		ns, _ := s.Duration()
		name := s.Operation()
		spans = append(spans, tracestore.SummarySpan{
			ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns, Service: s.Resource.Service,
			Name: out.text(name), Failed: s.StatusCode == otlpdata.StatusError,
		})
		return memory.Grow(int64(summaryMemory + len(name)))
	})
	return storequery.SummarizeSpans(id, spans), err
}
