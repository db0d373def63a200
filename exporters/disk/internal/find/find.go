package find

import (
	"container/heap"
	"context"
	"fmt"
	"runtime"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Finder finds traces. Safe for concurrent use.
type Finder struct{ store *scan.Store }

var (
	_ tracestore.Reader   = (*Finder)(nil)
	_ tracestore.Outliner = (*Finder)(nil)
)

// NewFinder returns a Finder for a store.
func New(s *scan.Store) *Finder { return &Finder{s} }

// Find implements tracestore.Reader. It sees what was stored before it was called.
func (f *Finder) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &search{query: q, want: want, outcome: tracestore.Outcome{Reason: tracestore.ReasonUnread}}
	if s.setBounds() {
		s.session = f.store.Begin()
		// The lease must not lead to s, or s would never be unreachable.
		runtime.AddCleanup(s, (*scan.Lease).Release, s.session.Lease)
	}
	return &tracestore.Results{All: s.results(ctx), Outcome: func() tracestore.Outcome { return s.outcome }}, nil
}

// search is one query under way.
type search struct {
	session       *scan.Session // nil where no span can match, and when the search has ended
	ended         bool
	query         tracestore.Query
	want          tracestore.Want
	from, to      uint64 // the window
	newestKey     uint64 // the greatest start that the key of a result can have
	compiled      *scan.Query
	plans         []*scan.Plan // by source
	pending       pendingBlocks
	pendingBlocks []int // by source: its blocks in unread, once it is listed
	matches       matchLists
	examiner      examiner
	reader        *traceReader
	batch         []match                       // that are yielded next
	done          map[otlpdata.TraceID]struct{} // traces that need not be looked at any more
	found         int
	outcome       tracestore.Outcome
}

// bound works out the bounds on starts. It is false where nothing lies within them.
func (s *search) setBounds() bool {
	var ok bool
	if s.from, s.to, ok = s.query.Window(); !ok {
		return false
	}
	s.newestKey = s.to
	if c := s.query.After; c.Set {
		start := c.Start
		if c.ID.IsZero() { // nothing of this start is behind it
			if start == 0 {
				return false
			}
			start--
		}
		s.newestKey = min(s.newestKey, start)
	}
	return s.from <= s.newestKey
}

func (s *search) results(ctx context.Context) func(yield func(tracestore.Result, error) bool) {
	return func(yield func(tracestore.Result, error) bool) {
		if s.ended {
			return
		}
		defer s.end()
		if err := s.run(ctx, func(r tracestore.Result) bool { return yield(r, nil) }); err != nil {
			s.outcome.Reason = err.Error()
			yield(tracestore.Result{}, err)
		}
	}
}

// complete sets the outcome of a search that went over everything it had to.
func (s *search) complete() {
	s.outcome.Reason = ""
	if s.session != nil {
		s.outcome.Reason = s.session.DamageReason()
	}
	s.outcome.Complete = s.outcome.Reason == ""
}

// forget lets go of everything but the outcome, which the caller may keep.
func (s *search) end() {
	if s.session != nil {
		s.session.Lease.Release()
	}
	*s = search{outcome: s.outcome, ended: true}
}

// run goes over the matches, newest first: the first match of a trace is its newest.
func (s *search) run(ctx context.Context, yield func(tracestore.Result) bool) error {
	if s.session != nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	for {
		batch, err := s.nextBatch(ctx)
		if err != nil || len(batch) == 0 {
			return err
		}
		if more, err := s.yieldBatch(ctx, batch, yield); err != nil || !more {
			return err
		}
	}
}

// gather returns the next matches of traces that were not listed before; none at the end. It waits for the first one only: the others are
// those that are known without looking further.
func (s *search) nextBatch(ctx context.Context) ([]match, error) {
	room := maxPrefetch
	if s.query.Limit > 0 {
		room = min(room, s.query.Limit-s.found)
	}
	s.batch = s.batch[:0]
	for len(s.batch) == 0 || len(s.batch) < room && s.ready() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, ok, err := s.next(ctx)
		if err != nil || !ok {
			return nil, err
		}
		if _, done := s.done[m.trace]; done {
			continue
		}
		s.done[m.trace] = struct{}{}
		listed, err := s.listedBefore(ctx, m.trace)
		if err != nil {
			return nil, err
		}
		if !listed {
			s.batch = append(s.batch, m)
		}
	}
	return s.batch, nil
}

// give yields the traces of matches. It returns false when that was the last result.
func (s *search) yieldBatch(ctx context.Context, batch []match, yield func(tracestore.Result) bool) (bool, error) {
	if err := s.prefetch(ctx, batch); err != nil {
		return false, err
	}
	for _, m := range batch {
		res, err := s.result(ctx, m)
		if err != nil {
			return false, err
		}
		if !yield(res) {
			s.outcome.Reason = scan.JoinReasons(s.outcome.Reason, s.session.DamageReason())
			return false, nil
		}
		if s.found++; s.found == s.query.Limit {
			s.complete()
			s.outcome.Next = tracestore.Cursor{Start: m.start, ID: m.trace, Set: true}
			return false, nil
		}
	}
	return true, nil
}

// readAhead reads what the caller wants of all traces of a batch.
func (s *search) prefetch(ctx context.Context, batch []match) error {
	if len(batch) < 2 || s.want != tracestore.WantFull && s.want != tracestore.WantSummaries {
		return nil
	}
	ids := make([]otlpdata.TraceID, len(batch))
	for i := range batch {
		ids[i] = batch[i].trace
	}
	if s.want == tracestore.WantSummaries {
		return s.reader.prefetchHeads(ctx, ids)
	}
	return s.reader.prefetch(ctx, ids)
}

// prepare lists the blocks that may hold spans within the bounds.
func (s *search) prepare(ctx context.Context) error {
	s.compiled = scan.Compile(s.query)
	s.plans = make([]*scan.Plan, len(s.session.Sources))
	s.done = make(map[otlpdata.TraceID]struct{})
	s.reader = newTraceReader(s.session, s.query.Tenant)
	s.examiner.limit = maxMatches
	if n := s.query.Limit; n > 0 && n < maxMatches/2 {
		s.examiner.limit = max(minMatches, 2*n)
	}
	s.pendingBlocks = make([]int, len(s.session.Sources))
	for src := range s.session.Sources {
		if rows, oldest, newest := s.session.Sources[src].Bounds(); rows > 0 && newest >= s.from && oldest <= s.newestKey {
			s.pending = append(s.pending, pendingBlock{src: src, block: wholeSource, newest: min(newest, s.newestKey)})
		}
	}
	heap.Init(&s.pending)
	return ctx.Err()
}

// wholeSource stands for all blocks of a source, which are listed when their turn has come: most searches end before that of old sources.
const wholeSource = -1

// list replaces a source by its blocks that may hold spans within the bounds.
func (s *search) listBlocks(src int) error {
	blocks, err := s.session.Blocks(src)
	if err != nil {
		return err
	}
	for i := range blocks {
		if b := &blocks[i]; b.Rows > 0 && b.MaxStart >= s.from && b.MinStart <= s.newestKey {
			heap.Push(&s.pending, pendingBlock{src: src, block: i, info: b, newest: min(b.MaxStart, s.newestKey)})
			s.pendingBlocks[src]++
		}
	}
	return nil
}

// plan returns the plan for a source, and nil where its tables are damaged.
func (s *search) plan(src int) (*scan.Plan, error) {
	if s.plans[src] != nil {
		return s.plans[src], nil
	}
	t, err := s.session.Tables(src)
	if err != nil || t == nil {
		return nil, err
	}
	s.plans[src] = scan.NewPlan(s.compiled, s.session.Sources[src], t)
	return s.plans[src], nil
}

// next returns the next match. It examines the blocks that may hold a newer one before.
func (s *search) next(ctx context.Context) (match, bool, error) {
	for len(s.pending) > 0 && !s.ready() {
		if err := ctx.Err(); err != nil {
			return match{}, false, err
		}
		if s.budgetSpent() {
			return match{}, false, nil
		}
		u := heap.Pop(&s.pending).(pendingBlock)
		if err := s.visit(ctx, u); err != nil {
			return match{}, false, err
		}
	}
	if len(s.matches) == 0 {
		s.complete()
		return match{}, false, nil
	}
	return s.matches.next(), true, nil
}

// ready reports whether the next match is known: no block can hold a newer one.
func (s *search) ready() bool {
	return len(s.matches) > 0 && (len(s.pending) == 0 || s.pending[0].newest < s.matches[0][0].start)
}

// visit examines a block. With the last one of a source its plan goes: it would keep the source's tables in memory.
func (s *search) visit(ctx context.Context, u pendingBlock) error {
	if u.block == wholeSource {
		return s.listBlocks(u.src)
	}
	s.pendingBlocks[u.src]--
	if err := s.examine(ctx, u); err != nil {
		return err
	}
	if s.pendingBlocks[u.src] == 0 {
		s.plans[u.src] = nil
	}
	return nil
}

// exhausted reports whether the budget has run out. At least all spans of the newest start are examined, so that who goes on from
// Outcome.Next gets to the end.
func (s *search) budgetSpent() bool {
	b, newest := s.query.Budget.Spans, s.pending[0].newest
	if b <= 0 || s.outcome.Scanned < b || newest >= s.newestKey {
		return false
	}
	s.outcome.Next = tracestore.Cursor{Start: newest + 1, Set: true}
	s.outcome.Reason = scan.JoinReasons(
		fmt.Sprintf("stopped after examining %d spans; narrow the search or the time range", s.outcome.Scanned), s.session.DamageReason())
	return true
}

// result reads what the caller wants of a trace.
func (s *search) result(ctx context.Context, m match) (tracestore.Result, error) {
	r := tracestore.Result{ID: m.trace, Start: m.start}
	var err error
	switch s.want {
	case tracestore.WantFull:
		r.Spans, err = s.reader.whole(ctx, m.trace, s.query.Budget.TraceSpans)
	case tracestore.WantSummaries:
		r.Summary, err = s.reader.summary(ctx, m.trace)
	}
	return r, err
}
