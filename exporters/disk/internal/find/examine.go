package find

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// match is a span that matches, by its place in the order of results.
type match struct {
	start uint64
	trace otlpdata.TraceID
}

// compare is above 0 where m comes after o in time.
func (m match) compare(o match) int {
	return cmp.Or(cmp.Compare(m.start, o.start), bytes.Compare(m.trace[:], o.trace[:]))
}

// behind reports whether m comes behind a cursor in the order of results.
func (m match) isAfter(c tracestore.Cursor) bool {
	return !c.Set || m.compare(match{c.Start, c.ID}) < 0
}

// unreadBlock is a block whose rows up to a start were not examined yet.
type pendingBlock struct {
	src, block int
	info       *source.BlockInfo
	newest     uint64
}

// unread is a heap of blocks with the newest on top.
type pendingBlocks []pendingBlock

func (u pendingBlocks) Len() int           { return len(u) }
func (u pendingBlocks) Less(i, j int) bool { return u[i].newest > u[j].newest }
func (u pendingBlocks) Swap(i, j int)      { u[i], u[j] = u[j], u[i] }
func (u *pendingBlocks) Push(x any)        { *u = append(*u, x.(pendingBlock)) }

func (u *pendingBlocks) Pop() any {
	last := len(*u) - 1
	x := (*u)[last]
	*u = (*u)[:last]
	return x
}

// lists is a heap of what blocks have in store, the newest match on top. No list is empty.
type matchLists [][]match

func (l matchLists) Len() int           { return len(l) }
func (l matchLists) Less(i, j int) bool { return l[i][0].compare(l[j][0]) > 0 }
func (l matchLists) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *matchLists) Push(x any)        { *l = append(*l, x.([]match)) }

func (l *matchLists) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return x
}

// next removes and returns the newest match.
func (l *matchLists) next() match {
	top := (*l)[0]
	m := top[0]
	if (*l)[0] = top[1:]; len(top) > 1 {
		heap.Fix(l, 0)
	} else {
		heap.Pop(l)
	}
	return m
}

// The length of the list that a block leaves behind: twice what the caller asks for, within these bounds.
const minMatches, maxMatches = 32, 1024

// examiner is the memory that is used for one block after the other.
type examiner struct {
	filter     scan.Filter
	limit      int
	active     []*scan.Program // that have candidates
	candidates []candidate
	grouped    []int32 // rows of all candidates, those of one program together
	sorted     []uint64
	matched    []int32
	byStart    rowHeap // those that match
	seen       map[otlpdata.TraceID]struct{}
}

// candidate is a row that a program does not rule out.
type candidate struct {
	start   uint64
	row     int32
	program *scan.Program
}

// examine opens a block, unless it cannot match, and makes a list of its newest matches.
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
	// Most blocks that are opened for a rare value do not have it. Their starts are not needed where all of them lie within the bounds.
	timed := u.info.MinStart < s.from || u.info.MaxStart > u.newest
	if err := x.collect(s.from, u.newest, timed); err != nil {
		return err
	}
	oldest := s.from // of what is examined now
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

// evaluate finds the rows that match. What cannot be read of one shape says nothing about the others.
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

// keep makes a list of the newest matches, and leaves what is older for later.
func (s *search) keepNewest(u pendingBlock, oldest uint64) error {
	x := &s.examiner
	if err := x.addStarts(); err != nil {
		return err
	}
	list, oldest, err := s.newestMatches(oldest)
	if len(list) > 0 {
		heap.Push(&s.matches, list)
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
		u.newest = oldest - 1
		heap.Push(&s.pending, u)
		s.pendingBlocks[u.src]++
	}
	return nil
}

// collect collects the rows that a program does not rule out. If they are timed, those out of bounds are left out.
func (x *examiner) collect(from, to uint64, timed bool) error {
	x.active, x.candidates = x.active[:0], x.candidates[:0]
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
		if pr.RuledOut() { // so are most
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
		if pr.Count++; pr.Count == 1 {
			x.active = append(x.active, pr)
		}
		x.candidates = append(x.candidates, candidate{start, int32(row), pr})
	}
	x.group()
	return nil
}

// time gives the candidates their starts.
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

// group gives each program its rows.
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

// cut returns the least start of the n newest candidates, 0 where there are no more than n.
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

// evaluate adds the rows of a program that match. If these are bounded, they are not older than a start.
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

// newest makes a list of the newest matches, each trace once. They are not older than the start that it returns; what is older is still
// to be looked at.
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

// traceOf returns the trace of a row.
func traceIDOf(b source.Block, row int) (otlpdata.TraceID, error) {
	if p, ok := b.(source.Partial); ok {
		return p.TraceID(row)
	}
	var h rows.Head
	err := b.Head(row, &h)
	return h.TraceID, err
}

// startOf is a row by its start.
type rowStart struct {
	start uint64
	row   int32
}

// rowHeap is a heap of rows with the newest on top.
type rowHeap []rowStart

func (r rowHeap) Len() int           { return len(r) }
func (r rowHeap) Less(i, j int) bool { return r[i].start > r[j].start }
func (r rowHeap) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *rowHeap) Push(x any)        { *r = append(*r, x.(rowStart)) }

func (r *rowHeap) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

// drop removes the newest row.
func (r *rowHeap) drop() {
	last := len(*r) - 1
	(*r)[0] = (*r)[last]
	if *r = (*r)[:last]; last > 0 {
		heap.Fix(r, 0)
	}
}
