package memory

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Find implements tracestore.Reader. It ignores spans that are stored after the call, and includes
// traces that are evicted while it runs.
func (e *exporter) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.Where = tracestore.WithContext(ctx, q.Where)
	s := &search{store: e, query: q, want: want, done: make(map[otlpdata.TraceID]struct{})}
	s.outcome = tracestore.Unread()
	s.begin()
	return &tracestore.Results{All: s.results(ctx), Outcome: func() tracestore.Outcome { return s.outcome }}, nil
}

// search is a running query.
type search struct {
	store    *exporter
	query    tracestore.Query
	want     tracestore.Want
	from, to uint64
	scan     scan
	reader   otlpdata.SpanReader
	done     map[otlpdata.TraceID]struct{} // traces that need no further examination
	found    int
	outcome  tracestore.Outcome
}

// begin plans the search and takes the first rows.
func (s *search) begin() {
	var ok bool
	if s.from, s.to, ok = s.query.Window(); !ok {
		return
	}
	end := position{s.to, otlpdata.TraceID(maxID()), math.MaxUint64}
	if c := s.query.After; c.Set && c.Start <= s.to {
		end = position{c.Start, c.ID, 0} // before all rows with that start and trace
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	s.scan = scan{store: s.store, snapshot: s.store.seq}
	if t := s.store.tenants[s.query.Tenant]; t != nil {
		s.scan.begin(planner{t, s.store.seed}.plan(s.query.Where), end)
	}
}

func maxID() (id [16]byte) {
	for i := range id {
		id[i] = math.MaxUint8
	}
	return id
}

func (s *search) results(ctx context.Context) iter.Seq2[tracestore.Result, error] {
	return func(yield func(tracestore.Result, error) bool) {
		if err := s.run(ctx, func(r tracestore.Result) bool { return yield(r, nil) }); err != nil {
			s.outcome.Reasons = tracestore.BecauseOf(err)
			yield(tracestore.Result{}, err)
		}
	}
}

// run examines the candidates, newest first. The first row of a trace that matches is its newest
// match.
func (s *search) run(ctx context.Context, yield func(tracestore.Result) bool) error {
	var last tracestore.Cursor // the key up to which rows were examined
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := s.scan.next()
		if r == nil || r.start < s.from {
			s.outcome.Reasons = nil
			return nil
		}
		if _, done := s.done[r.trace.id]; done {
			continue
		}
		if _, skip := s.query.Skip[r.trace.id]; skip {
			continue
		}
		// All rows with the same key are examined together, because the cursor cannot represent a
		// position between them.
		key := tracestore.Cursor{Start: r.start, ID: r.trace.id, Set: true}
		if b := s.query.Budget.Spans; b > 0 && s.outcome.Scanned >= b && key != last {
			s.outcome.Next = last
			s.outcome.Reasons = tracestore.BudgetSpent(s.outcome.Scanned)
			return nil
		}
		last = key
		more, err := s.examine(ctx, r, yield)
		if err != nil || !more {
			return err
		}
	}
}

// examine yields the trace of a row if the row matches. It returns false after the last result.
func (s *search) examine(ctx context.Context, r *row, yield func(tracestore.Result) bool) (bool, error) {
	ok, err := s.matches(r)
	if err == nil {
		err = ctx.Err() // conditions may be wrong, see tracestore.WithContext
	}
	if err != nil || !ok {
		return true, err
	}
	s.done[r.trace.id] = struct{}{}
	returned, err := s.returnedBefore(r.trace)
	if err == nil {
		err = ctx.Err() // also
	}
	if err != nil || returned {
		return true, err
	}
	res, err := s.result(ctx, r)
	if err != nil {
		return false, err
	}
	if !yield(res) {
		return false, nil
	}
	s.found++
	if s.found == s.query.Limit {
		s.outcome.Reasons = nil
		s.outcome.Next = tracestore.Cursor{Start: r.start, ID: r.trace.id, Set: true}
		return false, nil
	}
	return true, nil
}

// matches evaluates the condition.
func (s *search) matches(r *row) (bool, error) {
	s.outcome.Scanned++
	if s.query.Where == nil {
		return true, nil
	}
	sp, err := s.reader.Read(r.raw)
	if err != nil {
		return false, fmt.Errorf("parsing stored span: %w", err)
	}
	return tracestore.Match(s.query.Where, tracestore.Span{Resource: &r.origin.resource, Scope: &r.origin.scope, Span: sp}), nil
}

// returnedBefore reports whether a trace was returned before the cursor, because it also matches
// there.
func (s *search) returnedBefore(tr *trace) (bool, error) {
	c := s.query.After
	if !c.Set {
		return false, nil
	}
	for _, b := range s.store.blocks(tr, s.scan.snapshot) {
		for i := range b.rows {
			r := &b.rows[i]
			if r.start > s.to || r.compare(position{c.Start, c.ID, 0}) < 0 {
				continue
			}
			if ok, err := s.matches(r); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// summaryMemory is the approximate number of bytes that it takes to summarize a span.
const summaryMemory = 160

// result returns the result for the newest matching row of a trace.
func (s *search) result(ctx context.Context, r *row) (tracestore.Result, error) {
	res := tracestore.Result{ID: r.trace.id, Start: r.start}
	if s.want == tracestore.WantIDs {
		return res, nil
	}
	var pieces []*otlpdata.Batch
	spans, limit := 0, s.query.Budget.TraceSpans
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return res, err
	}
	defer memory.Release() // the spans then belong to the caller
	for b, err := range s.store.batches(ctx, s.query.Tenant, s.store.blocks(r.trace, s.scan.snapshot)) {
		if err == nil {
			err = memory.Grow(int64(b.Size()))
		}
		if err != nil {
			return res, err
		}
		pieces = append(pieces, b)
		if spans += b.Len(); s.want == tracestore.WantFull && limit > 0 && spans > limit {
			break
		}
	}
	if s.want == tracestore.WantFull {
		res.Spans, err = otlpdata.Concat(pieces...)
		return res, err
	}
	if err := memory.Grow(int64(spans) * summaryMemory); err != nil {
		return res, err
	}
	sum, err := storequery.Summarize(r.trace.id, pieces...)
	res.Summary = &sum
	return res, err
}

// scan merges lists of rows, newest first and without duplicates.
type scan struct {
	store    *exporter
	snapshot uint64
	heads    heads
	last     *row
}

// head holds the next rows of one list. list is nil if there are no others.
type head struct {
	list  *list
	rows  []*row // the rest of taken
	taken []*row
	size  int // number of rows to take next
}

// minRows and maxRows are the minimum and maximum number of rows that are taken from a list in one
// step, with the lock held. The number doubles with each access.
const minRows, maxRows = 8, 256

// begin takes the first rows before end. The caller holds the lock.
func (s *scan) begin(src candidates, end position) {
	for _, l := range src.lists {
		h := &head{list: l, size: minRows}
		if h.fill(end) {
			s.heads = append(s.heads, h)
		}
	}
	for _, r := range src.rows {
		if r.compare(end) < 0 {
			s.heads = append(s.heads, &head{rows: []*row{r}})
		}
	}
	heap.Init(&s.heads)
}

// fill takes the rows before a position. The caller holds the lock.
func (h *head) fill(end position) bool {
	if h.list == nil {
		return false
	}
	h.taken = h.list.below(end, h.taken[:0], h.size)
	h.rows = h.taken
	h.size = min(2*h.size, maxRows)
	return len(h.rows) > 0
}

// next returns nil after the last row.
func (s *scan) next() *row {
	for len(s.heads) > 0 {
		h := s.heads[0]
		r := h.rows[0]
		h.rows = h.rows[1:]
		if len(h.rows) > 0 || s.refill(h, r) {
			heap.Fix(&s.heads, 0)
		} else {
			heap.Pop(&s.heads)
		}
		if r == s.last || r.seq > s.snapshot {
			continue
		}
		s.last = r
		return r
	}
	return nil
}

func (s *scan) refill(h *head, last *row) bool {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	return h.fill(last.position())
}

// heads is a heap.Interface with the newest row on top.
type heads []*head

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].rows[0].compare(h[j].rows[0].position()) > 0 }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)        { *h = append(*h, x.(*head)) }

func (h *heads) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
