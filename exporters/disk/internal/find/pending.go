package find

import (
	"container/heap"
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// prepare adds the sources that may have spans within the bounds to pending.
func (s *search) prepare(ctx context.Context) error {
	s.compiled = scan.Compile(s.query)
	s.plans = make([]*scan.Plan, len(s.session.Sources))
	s.done = make(map[otlpdata.TraceID]struct{})
	s.reader = newTraceReader(s.session, s.query.Tenant)
	if dependsOn(s.query.OfTrace, tracestore.TraceID) {
		s.examiner.ids = &traceCondition{expr: s.query.OfTrace}
	}
	s.filtered = !dependsOn(s.query.OfTrace, tracestore.TraceDuration, tracestore.RootService, tracestore.RootName)
	s.examiner.limit = maxMatches
	if n := s.query.Limit; n > 0 && n < maxMatches/2 {
		s.examiner.limit = max(minMatches, 2*n)
	}
	s.blocksLeft = make([]int, len(s.session.Sources))
	s.unreadable = make([]bool, len(s.session.Sources))
	for src := range s.session.Sources {
		if rows, oldest, newest := s.session.Sources[src].Bounds(); rows > 0 && newest >= s.from && oldest <= s.newestKey {
			s.pending = append(s.pending, pendingBlock{src: src, block: wholeSource, newest: min(newest, s.newestKey)})
		}
	}
	heap.Init(&s.pending)
	if err := s.session.Memory.Grow(searchMemory); err != nil {
		return err
	}
	return ctx.Err()
}

// wholeSource stands for all blocks of a source. They are listed when the search reaches the
// source; most searches end before old sources.
const wholeSource = -1

// listBlocks replaces a source in pending by its blocks that may have spans within the bounds.
func (s *search) listBlocks(src int) error {
	if s.compiled.Excludes(s.session.Sources[src]) {
		return nil
	}
	blocks, err := s.session.Blocks(src)
	if err != nil {
		return err
	}
	if err := s.session.Memory.Grow(int64(len(blocks)) * blockMemory); err != nil {
		return err
	}
	for i := range blocks {
		if b := &blocks[i]; b.Rows > 0 && b.MaxStart >= s.from && b.MinStart <= s.newestKey {
			heap.Push(&s.pending, pendingBlock{src: src, block: i, info: b, newest: min(b.MaxStart, s.newestKey)})
			s.blocksLeft[src]++
		}
	}
	return nil
}

// plan returns the plan for a source, or nil if its vocabulary is damaged.
func (s *search) plan(src int) (*scan.Plan, error) {
	if s.plans[src] != nil || s.unreadable[src] {
		return s.plans[src], nil
	}
	t, err := s.session.Tables(src)
	if err != nil || t == nil {
		s.unreadable[src] = true
		return nil, err
	}
	if err := s.session.Memory.Grow(scan.PlanMemory(t)); err != nil {
		return nil, err
	}
	s.plans[src] = scan.NewPlan(s.compiled, s.session.Sources[src], t)
	return s.plans[src], nil
}

// next returns the next match. It first examines all blocks that may have a newer one.
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
	if err := ctx.Err(); err != nil { // conditions may be wrong, see tracestore.WithContext
		return match{}, false, err
	}
	if len(s.matches) == 0 {
		s.complete()
		return match{}, false, nil
	}
	_ = s.session.Memory.Grow(-matchMemory) // cannot fail
	return s.matches.next(), true, nil
}

// ready reports whether the next match is known, because no pending block can have a newer one.
func (s *search) ready() bool {
	return len(s.matches) > 0 && (len(s.pending) == 0 || s.pending[0].newest < s.matches[0][0].start)
}

// visit examines a block. After the last block of a source it drops the plan, which keeps the
// vocabulary of the source in memory.
func (s *search) visit(ctx context.Context, u pendingBlock) error {
	if u.block == wholeSource {
		return s.listBlocks(u.src)
	}
	s.blocksLeft[u.src]--
	if s.traceFilter == nil || s.traceFilter.hasBlock(u.src, u.block) {
		if err := s.examine(ctx, u); err != nil {
			return err
		}
	}
	if s.blocksLeft[u.src] == 0 {
		s.dropPlan(u.src)
	}
	return nil
}

func (s *search) dropPlan(src int) {
	if p := s.plans[src]; p != nil {
		s.plans[src] = nil
		_ = s.session.Memory.Grow(-scan.PlanMemory(p.Tables)) // cannot fail
	}
}

// budgetSpent reports whether the budget is used up. At least all spans with the newest start are
// examined first, so that continuing at Outcome.Next always makes progress.
func (s *search) budgetSpent() bool {
	b, newest := s.query.Budget.Spans, s.pending[0].newest
	if b <= 0 || s.outcome.Scanned < b || newest >= s.newestKey {
		return false
	}
	s.outcome.Next = tracestore.Cursor{Start: newest + 1, Set: true}
	s.outcome.Reasons = append(tracestore.BudgetSpent(s.outcome.Scanned), s.session.DamageReasons()...)
	return true
}
