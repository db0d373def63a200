package clickhouse

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

// Find implements tracestore.Reader. The server selects spans newest first; spans for which it
// cannot decide are read and matched here.
func (e *exporter) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.Where = tracestore.WithContext(ctx, q.Where)
	s := &search{store: e, query: q, want: want, done: make(map[otlpdata.TraceID]struct{})}
	s.condition = e.conditionOf(q, q.Where).OnIDs(onIDs(q.OfTrace))
	s.outcome = tracestore.Unread()
	return &tracestore.Results{All: func(yield func(tracestore.Result, error) bool) { s.results(ctx, yield) }, Outcome: s.ended}, nil
}

// onIDs returns the parts of a condition on the trace that depend on its id alone.
func onIDs(e tracestore.Expr) (parts tracestore.And) {
	all, ok := e.(tracestore.And)
	if !ok {
		all = tracestore.And{e}
	}
	for _, part := range all {
		ids, others := false, false
		for f := range tracestore.Fields(part) {
			ids, others = ids || f.Place == tracestore.TraceID, others || f.Place != tracestore.TraceID
		}
		if ids && !others {
			parts = append(parts, part)
		}
	}
	return parts
}

// conditionOf translates a condition on the spans within the window of a query.
func (e *exporter) conditionOf(q tracestore.Query, c tracestore.Expr) where.Condition {
	from, to, _ := q.Window()
	return where.Build(c, e.db.Table("payload")+" WHERE "+where.Tenant(q.Tenant)+" AND "+where.Window(from, to))
}

// search is a running query.
type search struct {
	store     *exporter
	query     tracestore.Query
	want      tracestore.Want
	condition where.Condition
	from, to  uint64 // bounds of starts, both inclusive
	yield     func(tracestore.Result, error) bool
	memory    *tracestore.Memory
	done      map[otlpdata.TraceID]struct{} // traces that need no further examination
	at        tracestore.Cursor             // position up to which spans were examined
	found     int
	rows      int // size of the next page
	batch     int // number of traces per read
	damage    tracestore.Reasons
	outcome   tracestore.Outcome
}

// ended returns the outcome, including what could not be read.
func (s *search) ended() tracestore.Outcome {
	o := s.outcome
	o.Reasons.Add(s.damage...)
	return o
}

// results runs the search once.
func (s *search) results(ctx context.Context, yield func(tracestore.Result, error) bool) {
	if s.yield != nil {
		return
	}
	s.yield = yield
	s.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	defer s.memory.Release()
	if err := s.run(ctx); err != nil && !errors.Is(err, errStop) {
		s.outcome.Reasons = tracestore.BecauseOf(err)
		yield(tracestore.Result{}, err)
	}
}

// run examines the window in slices, newest first. It returns errStop if the search ends early,
// with the outcome set.
func (s *search) run(ctx context.Context) error {
	var ok bool
	if s.from, s.to, ok = s.query.Window(); ok && !s.condition.Never() {
		if c := s.query.After; c.Set && c.Start <= s.to {
			s.at = c
		}
		if err := s.examineWindow(ctx); err != nil {
			return s.limited(ctx, err)
		}
	}
	s.outcome.Reasons = nil
	s.damage.Add(s.store.missingShards(ctx)...)
	return ctx.Err()
}

// limited ends the search with an outcome if err is a limit of the server.
func (s *search) limited(ctx context.Context, err error) error {
	limit := serverLimit(err)
	if limit == nil || ctx.Err() != nil {
		return err
	}
	s.outcome.Reasons = limit
	if s.at != s.query.After {
		s.outcome.Next = s.at
	}
	return errStop
}

// Sizes of pages. They grow because most searches need only one page. A search for few traces
// begins with fewer rows, so that it stops early if values occur often.
const (
	minPage, maxPage = 256, 1 << 16 // rows
	rowsPerTrace     = 16
)

// Numbers of traces per read, which grow from the first to one of the others. Trace ids are random,
// so a statement for many traces reads most of a small table, and fewer statements are better.
const (
	minBatch     = 4
	fullBatch    = tracesPerStatement // of whole traces
	summaryBatch = 1024               // of summaries, or of nothing
)

// maxBatch returns the maximum number of traces per read.
func (s *search) maxBatch() int {
	if s.want == tracestore.WantFull {
		return fullBatch
	}
	return summaryBatch
}

func (s *search) examineWindow(ctx context.Context) error {
	end := s.to
	if s.at.Set {
		end = min(end, s.at.Start)
	}
	plan, err := s.store.planSlices(ctx, &s.query, s.from, end)
	if err != nil {
		return err
	}
	s.rows, s.batch = minPage, minBatch
	switch {
	case s.query.Limit > 0:
		if s.condition.Always() {
			plan.size = firstOfAll
		}
		s.batch = max(minBatch, min(s.query.Limit, s.maxBatch()))
		s.rows = min(rowsPerTrace*s.query.Limit, minPage)
	case s.want != tracestore.WantIDs: // the caller reads until it has examined enough spans
		s.batch, s.rows = s.maxBatch(), maxPage
		if b := s.query.Budget.Spans; b > 0 {
			s.rows = max(minPage, min(b, maxPage))
		}
	}
	for from, to, ok := plan.next(); ok; from, to, ok = plan.next() {
		before := s.found
		if err := s.examineSlice(ctx, from, to); err != nil {
			return err
		}
		plan.found(s.found-before, s.query.Limit-s.found)
		if from > 0 {
			s.at = tracestore.Cursor{Start: from, Set: true} // the zero id is the last one
		}
	}
	return nil
}

// examineSlice examines all spans that start between two times.
func (s *search) examineSlice(ctx context.Context, from, to uint64) error {
	for {
		p, err := s.page(ctx, from, to)
		if err != nil {
			return err
		}
		if err := s.examine(ctx, p.hits); err != nil || p.last {
			return err
		}
		s.at = p.next
		s.rows = min(4*s.rows, maxPage)
	}
}

// examine examines the traces of a page in batches.
func (s *search) examine(ctx context.Context, hits []hit) error {
	for len(hits) > 0 {
		batch, n := s.nextBatch(hits)
		if len(batch) > 0 {
			if err := s.examineBatch(ctx, batch); err != nil {
				return err
			}
			s.batch = min(2*s.batch, s.maxBatch())
		}
		hits = hits[n:]
	}
	return nil
}

// nextBatch returns the next hits that need to be examined, and the number of hits up to the last
// one. A trace has only one hit, unless it is uncertain whether the first one matches.
func (s *search) nextBatch(hits []hit) (batch []hit, n int) {
	sure := make(map[otlpdata.TraceID]bool)
	for _, h := range hits {
		if len(batch) == s.batch {
			break
		}
		n++
		_, done := s.done[h.id]
		_, skip := s.query.Skip[h.id]
		if done || skip || sure[h.id] {
			continue
		}
		if last := len(batch) - 1; last >= 0 && batch[last].start == h.start && batch[last].id == h.id {
			batch[last].sure = batch[last].sure || h.sure
		} else {
			batch = append(batch, h)
		}
		sure[h.id] = h.sure
	}
	return batch, n
}

// examineBatch emits the traces of a batch that match.
func (s *search) examineBatch(ctx context.Context, batch []hit) error {
	for len(batch) > 0 {
		part := s.withinBudget(batch)
		if len(part) == 0 {
			s.outcome.Next = s.at
			s.outcome.Reasons = tracestore.BudgetSpent(s.outcome.Scanned)
			return errStop
		}
		matched, err := s.verify(ctx, part)
		if err != nil {
			return err
		}
		if matched, err = s.notReturned(ctx, matched); err != nil {
			return err
		}
		if err := s.emitAll(ctx, matched); err != nil {
			return err
		}
		s.at = part[len(part)-1].cursor()
		batch = batch[len(part):]
	}
	return nil
}

// withinBudget returns the hits that may be examined before the budget is exhausted. Each search
// examines at least one.
func (s *search) withinBudget(batch []hit) []hit {
	b := s.query.Budget.Spans
	if b <= 0 {
		return batch
	}
	left := b - s.outcome.Scanned
	if s.outcome.Scanned == 0 {
		left = max(left, 1)
	}
	return batch[:min(len(batch), left)]
}

// hit is a span that the server found.
type hit struct {
	start uint64
	id    otlpdata.TraceID
	sure  bool // the condition holds, and need not be verified
}

func (h hit) cursor() tracestore.Cursor {
	return tracestore.Cursor{Start: h.start, ID: h.id, Set: true}
}

// doneMemory is the approximate memory of a trace that is done, and of a hit.
const doneMemory, hitMemory = 64, 40

// finish records that a trace needs no further examination.
func (s *search) finish(id otlpdata.TraceID) error {
	s.done[id] = struct{}{}
	return s.memory.Grow(doneMemory)
}

// emitAll emits matching traces, with the parts that the caller wants.
func (s *search) emitAll(ctx context.Context, hits []hit) error {
	if s.query.Limit > 0 {
		hits = hits[:min(len(hits), s.query.Limit-s.found)]
	}
	results, err := s.read(ctx, hits)
	if err != nil {
		return err
	}
	defer results.release()
	for _, h := range hits {
		if err := s.finish(h.id); err != nil {
			return err
		}
		r, ok := results.take(h)
		if !ok {
			continue // deleted meanwhile
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !s.yield(r, nil) {
			return errStop
		}
		if s.found++; s.found == s.query.Limit {
			s.outcome.Reasons, s.outcome.Next = nil, h.cursor()
			s.damage.Add(s.store.missingShards(ctx)...)
			return errStop
		}
	}
	return nil
}

var _ tracestore.PathProfiler = (*exporter)(nil)

// ProfilePaths implements tracestore.PathProfiler with searches, and reads the needed parts of the
// found traces.
func (e *exporter) ProfilePaths(
	ctx context.Context, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	return callpath.Profile(ctx, e, q, sel, o)
}
