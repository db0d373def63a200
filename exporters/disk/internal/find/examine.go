package find

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Bounds on the length of a block's list of matches, which is normally twice the limit of the
// query.
const minMatches, maxMatches = 32, 1024

// examiner examines blocks. Its memory is reused from block to block.
type examiner struct {
	filter     scan.Filter
	ids        *traceCondition // condition on the trace, tested with its id alone; nil: all traces
	ruledOut   int             // rows of the block that ids rules out
	byID       bool            // ids rules out lastTrace
	traces     *traceFilter    // nil: all traces
	traceKnown bool            // lastTrace is set
	lastTrace  otlpdata.TraceID
	lastMay    bool // result of traces for lastTrace
	limit      int
	active     []*scan.Program // programs with candidates
	candidates []candidate
	grouped    []int32 // rows of all candidates, grouped by program
	sorted     []uint64
	matched    []int32
	byStart    rowHeap // matching rows
	seen       map[otlpdata.TraceID]struct{}
}

// candidate is a row that its program does not rule out.
type candidate struct {
	start   uint64
	row     int32
	program *scan.Program
}

// examine opens a block that may match and lists its newest matches.
func (s *search) examine(ctx context.Context, u pendingBlock) error {
	p, err := s.plan(u.src)
	if err != nil || p == nil || !p.EnterBlock(u.block) {
		return err
	}
	err = s.session.OpenBlock(ctx, u.src, u.block, func(b source.Block) error {
		s.examiner.filter.SetBlock(ctx, p, b)
		return s.examineRows(u)
	})
	if err == nil {
		return nil
	}
	return s.session.NoteDamage(u.src, scan.BlockPart(u.block), u.info.Rows, err)
}

func (s *search) examineRows(u pendingBlock) error {
	x := &s.examiner
	x.traces, x.traceKnown = s.traceFilter, false
	// Most blocks that are opened for a rare value do not have it. If the whole block lies within
	// the bounds, start times are only needed for matches.
	timed := u.info.MinStart < s.from || u.info.MaxStart > u.newest
	if err := x.collect(s.from, u.newest, timed); err != nil {
		return err
	}
	if !u.again {
		s.outcome.Scanned += x.ruledOut
	}
	oldest := s.from // of the rows to examine now
	if b := s.query.Budget.Spans; b > 0 && len(x.candidates) > max(1, b-s.outcome.Scanned) {
		if err := x.addStarts(); err != nil {
			return err
		}
		oldest = max(oldest, x.nthNewestStart(max(1, b-s.outcome.Scanned)))
	}
	if err := s.evaluate(u, oldest); err != nil {
		return err
	}
	if len(x.matched) == 0 && oldest == s.from {
		s.outcome.Scanned += len(x.candidates)
		return nil
	}
	return s.keepNewest(u, oldest)
}

// evaluate finds the rows that match. If the cells of one shape cannot be read, the others are
// still evaluated.
func (s *search) evaluate(u pendingBlock, oldest uint64) error {
	x := &s.examiner
	if p, ok := x.filter.Block.(source.Partial); ok && len(x.grouped) > 0 {
		p.Expect(x.grouped)
	}
	x.matched = x.matched[:0]
	for _, pr := range x.active {
		err := x.evaluate(pr, oldest > s.from, oldest)
		if err = s.session.NoteDamage(u.src, scan.BlockPart(u.block), u.info.Rows, err); err != nil {
			return err
		}
	}
	return nil
}

// keepNewest makes a list of the newest matches, and puts the block back if it has older rows.
func (s *search) keepNewest(u pendingBlock, oldest uint64) error {
	x := &s.examiner
	if err := x.addStarts(); err != nil {
		return err
	}
	list, oldest, err := s.newestMatches(oldest)
	if len(list) > 0 {
		heap.Push(&s.matches, list)
		err = errors.Join(err, s.session.Memory.Grow(int64(len(list))*matchMemory))
	}
	if err != nil {
		return err
	}
	left := false
	for i := range x.candidates {
		if x.candidates[i].start >= oldest {
			s.outcome.Scanned++
		} else {
			left = true
		}
	}
	if left {
		u.newest, u.again = oldest-1, true
		heap.Push(&s.pending, u)
		s.blocksLeft[u.src]++
	}
	return nil
}

// collect finds the rows that their programs do not rule out. With timed, rows that start outside
// of the bounds are left out.
func (x *examiner) collect(from, to uint64, timed bool) error {
	x.active, x.candidates, x.ruledOut = x.active[:0], x.candidates[:0], 0
	shapes, err := x.filter.Block.Shapes()
	if err != nil {
		return err
	}
	var pr *scan.Program
	for row, shape := range shapes {
		if row == 0 || shape != shapes[row-1] {
			if pr = x.filter.Plan.Program(shape, scan.AnyDuration); pr == nil {
				return scan.ErrReference
			}
		}
		if pr.RuledOut() { // the most frequent case
			continue
		}
		start := uint64(0)
		if timed {
			if err := x.filter.LoadStarts(); err != nil {
				return err
			}
			if start = x.filter.Starts[row]; start < from || start > to {
				continue
			}
		}
		if x.ids != nil || x.traces != nil {
			if may, err := x.mayMatchTrace(row); err != nil {
				return err
			} else if !may {
				if x.byID {
					x.ruledOut++
				}
				continue
			}
		}
		if pr.Count++; pr.Count == 1 {
			x.active = append(x.active, pr)
		}
		x.candidates = append(x.candidates, candidate{start, int32(row), pr})
	}
	x.group()
	return nil
}

// mayMatchTrace reports whether the trace of a row may match.
func (x *examiner) mayMatchTrace(row int) (bool, error) {
	id, err := traceIDOf(x.filter.Block, row)
	if err == nil && (!x.traceKnown || id != x.lastTrace) {
		x.lastTrace, x.traceKnown = id, true
		x.byID = x.ids != nil && !x.ids.mayHold(&traceFacts{id: &x.lastTrace, longest: math.MaxUint64})
		if x.lastMay = !x.byID; x.lastMay && x.traces != nil {
			var decided bool
			if x.lastMay, decided = x.traces.mayMatch(id); x.lastMay && !decided {
				x.lastMay, err = x.mayMatchRows(row, id)
			}
		}
	}
	return x.lastMay, err
}

// mayMatchRows is like mayMatchTrace, for a trace whose rows are all in the block and adjacent. row
// is one of them. It is for segments without bounds of traces.
func (x *examiner) mayMatchRows(row int, id otlpdata.TraceID) (bool, error) {
	f := &x.filter
	if err := errors.Join(f.LoadStarts(), f.LoadEnds()); err != nil {
		return false, err
	}
	from, to := row, row+1
	for ; from > 0; from-- {
		if before, err := traceIDOf(f.Block, from-1); err != nil || before != id {
			break
		}
	}
	for ; to < len(f.Starts); to++ {
		if after, err := traceIDOf(f.Block, to); err != nil || after != id {
			break
		}
	}
	start, end := uint64(math.MaxUint64), uint64(0)
	for i := from; i < to; i++ {
		h := rows.Head{Start: f.Starts[i], End: f.Ends[i]}
		if h.Start == 0 || h.Start+h.Duration() < h.Start {
			return true, nil
		}
		start, end = min(start, h.Start), max(end, h.Start+h.Duration())
	}
	return x.traces.condition.mayHold(&traceFacts{shortest: end - start, longest: end - start}), nil
}

// addStarts sets the start times of the candidates.
func (x *examiner) addStarts() error {
	if err := x.filter.LoadStarts(); err != nil {
		return err
	}
	for i := range x.candidates {
		c := &x.candidates[i]
		c.start = x.filter.Starts[c.row]
	}
	return nil
}

// group sets the rows of each program.
func (x *examiner) group() {
	n := len(x.candidates)
	x.grouped = slices.Grow(x.grouped[:0], n)[:n]
	rest := x.grouped
	for _, pr := range x.active {
		pr.Rows, rest = rest[:0:pr.Count], rest[pr.Count:]
	}
	for i := range x.candidates {
		pr := x.candidates[i].program
		pr.Rows = append(pr.Rows, x.candidates[i].row)
	}
}

// nthNewestStart returns the start of the n-th newest candidate, or 0 if there are no more than n.
func (x *examiner) nthNewestStart(n int) uint64 {
	if len(x.candidates) <= n {
		return 0
	}
	x.sorted = x.sorted[:0]
	for i := range x.candidates {
		x.sorted = append(x.sorted, x.candidates[i].start)
	}
	slices.Sort(x.sorted)
	return x.sorted[len(x.sorted)-n]
}

// evaluate appends the matching rows of a program to matched. With bounded, rows that start before
// oldest are left out.
func (x *examiner) evaluate(pr *scan.Program, bounded bool, oldest uint64) error {
	set := pr.Rows
	if bounded {
		set = slices.DeleteFunc(set, func(row int32) bool { return x.filter.Starts[row] < oldest })
	}
	if !pr.MatchesAll() {
		var err error
		if set, err = x.filter.Narrow(pr, set); err != nil {
			return err
		}
	}
	x.matched = append(x.matched, set...)
	return nil
}

// newestMatches returns the newest matches, each trace once, and the start of the oldest rows that
// were considered. Older rows remain to be examined.
func (s *search) newestMatches(oldest uint64) ([]match, uint64, error) {
	x := &s.examiner
	if x.seen == nil {
		x.seen = make(map[otlpdata.TraceID]struct{})
	}
	clear(x.seen)
	x.byStart = x.byStart[:0]
	for _, row := range x.matched {
		x.byStart = append(x.byStart, rowStart{x.filter.Starts[row], row})
	}
	heap.Init(&x.byStart)
	var list []match
	for last := uint64(0); len(x.byStart) > 0; {
		row := x.byStart[0]
		if len(list) >= x.limit && row.start != last {
			oldest = last
			break
		}
		last = row.start
		x.byStart.drop()
		id, err := traceIDOf(x.filter.Block, int(row.row))
		if err != nil {
			return list, oldest, err
		}
		m := match{row.start, id}
		if _, seen := x.seen[m.trace]; seen || !m.isAfter(s.query.After) {
			continue
		}
		x.seen[m.trace] = struct{}{}
		if _, done := s.done[m.trace]; !done {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b match) int { return b.compare(a) })
	return list, oldest, nil
}

// traceIDOf returns the trace id of a row.
func traceIDOf(b source.Block, row int) (otlpdata.TraceID, error) {
	if p, ok := b.(source.Partial); ok {
		return p.TraceID(row)
	}
	var h rows.Head
	err := b.Head(row, &h)
	return h.TraceID, err
}
