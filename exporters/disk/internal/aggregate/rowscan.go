package aggregate

import (
	"context"
	"math"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// scan counts the matching rows of a sample. Damage is recorded.
func (a *aggregation) scan(ctx context.Context, f *blockSample, to targets) error {
	if to.facets != nil {
		defer to.facets.finishNumbers()
	}
	for from := 0; from < len(f.blocks); {
		end := from + 1
		for end < len(f.blocks) && f.blocks[end].src == f.blocks[from].src {
			end++
		}
		if err := a.scanSource(ctx, f, from, end, to); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// scanSource counts the matching rows of the blocks from..end of a sample, which belong to one
// source.
func (a *aggregation) scanSource(ctx context.Context, f *blockSample, from, end int, to targets) error {
	for from < end {
		whole, err := a.segmentEnd(f, from)
		switch {
		case err != nil:
		case whole > from:
			err = a.countSegment(ctx, f, from, whole, to)
		default:
			whole = end
			err = a.scanBlocks(ctx, f, from, end, to)
		}
		if err != nil {
			return err
		}
		from = whole
	}
	return nil
}

// scanBlocks is like scanSource, but counts a segment range by range.
func (a *aggregation) scanBlocks(ctx context.Context, f *blockSample, from, end int, to targets) error {
	s, err := a.rowScan(f, f.blocks[from].src, to)
	if err != nil || s == nil {
		return err
	}
	defer s.finish()
	defer func() { _ = a.session.Memory.Grow(-s.memory) }() // cannot fail
	if !scan.IsDeduplicated(a.session.Sources[s.src]) && (to.heat != nil || to.facets != nil || to.groups != nil || to.rest != nil) {
		if s.duplicates, err = s.findDuplicates(ctx, f.blocks[from:end]); err != nil {
			return err
		}
	}
	for at := from; at < end; {
		next, err := a.rangeEnd(f, at)
		switch {
		case err != nil:
		case next > at:
			err = s.countRange(ctx, at, next)
		default:
			err = s.spreadBlock(ctx, at)
			next = at + 1
		}
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}

// spreadBlock counts the rows of a block, and records by how many spans each total has grown.
func (s *rowScan) spreadBlock(ctx context.Context, at int) error {
	totals := s.to.totals()
	before := make([]uint64, len(totals))
	for i, t := range totals {
		before[i] = t.spans
	}
	if err := s.block(ctx, at); err != nil {
		return err
	}
	n := s.sample.blocks[at].info.Rows
	for i, t := range totals {
		t.spread.add(int(t.spans-before[i]), s.sample.examined(n))
	}
	s.agg.rowsRead += n
	return nil
}

// rowScan reads rows of one source.
type rowScan struct {
	agg             *aggregation
	sample          *blockSample
	src             int
	window          scan.Window
	to              targets
	everywhere      bool        // pick exemplars in every block, because blocks are read for them only
	filter          scan.Filter // of the query
	selectionFilter scan.Filter // of the selection; its Plan is nil if there is no selection
	counts          *facetSource
	groups          *groupSource
	duplicates      *duplicates // nil: the source has none
	memory          int64       // bytes reserved for counts and the plan of the selection

	active     []shapeRows // shapes with candidates in the open block
	candidates []candidate
	grouped    []int32
	selectable []int32 // scratch: rows that may be selected
	matched    []int32 // matching rows
	head       rows.Head
}

// shapeRows is a shape with candidates in the open block.
type shapeRows struct {
	program *scan.Program
	shape   uint32
}

// candidate is a row that its program does not rule out.
type candidate struct {
	row     int32
	program *scan.Program
}

// rowScan returns a rowScan, or nil if the vocabulary of the source is damaged.
func (a *aggregation) rowScan(f *blockSample, src int, to targets) (*rowScan, error) {
	p, err := a.plan(src)
	if err != nil || p == nil {
		return nil, err
	}
	s := &rowScan{agg: a, sample: f, src: src, window: f.windows[src], to: to, everywhere: to.rest != nil}
	s.filter.Plan = p
	s.memory = scanMemory(p, to.facets != nil, a.selection != nil)
	if to.groups != nil {
		s.memory += groupMemory(p) + int64(to.groups.counter.PartMemory())
	}
	if err := a.session.Memory.Grow(s.memory); err != nil {
		return nil, err
	}
	if a.selection != nil {
		s.selectionFilter.Plan = scan.NewPlan(a.selection.where, a.session.Sources[src], p.Tables)
	}
	if to.facets != nil {
		s.counts = newFacetSource(to.facets, p)
	}
	if to.groups != nil {
		s.groups = newGroupSource(to.groups, p)
	}
	return s, nil
}

// scanMemory returns the approximate size in bytes of the counters by number, and of the plan of a
// selection.
func scanMemory(p *scan.Plan, facets, selection bool) (bytes int64) {
	if selection {
		bytes += scan.PlanMemory(p.Tables)
	}
	if facets {
		const ofShape = 8 + int64(unsafe.Sizeof(facetShape{}))
		bytes += int64(len(p.Tables.Shapes))*ofShape + int64(len(p.Tables.Columns))*int64(unsafe.Sizeof(facetColumn{})) +
			int64(len(p.Tables.Resources))*int64(unsafe.Sizeof(counts{}))
	}
	return bytes
}

// groupMemory returns the approximate size in bytes of a groupSource.
func groupMemory(p *scan.Plan) int64 {
	const ofShape, ofResource = 8 + int64(unsafe.Sizeof(groupShape{})), valueSize
	return maxGroupsKept + int64(len(p.Tables.Shapes))*ofShape + int64(len(p.Tables.Columns))*int64(unsafe.Sizeof(groupColumn{})) +
		int64(len(p.Tables.Resources))*ofResource
}

// finish adds the counts by number to the facets and groups.
func (s *rowScan) finish() {
	if s.counts != nil {
		s.counts.finish()
	}
	if s.groups != nil {
		s.groups.finish()
	}
}

// block counts the rows of a block of the sample. Damage is recorded.
func (s *rowScan) block(ctx context.Context, at int) error {
	b := &s.sample.blocks[at]
	if s.sample.hintsChecked {
		s.filter.Plan.EnterBlockUnchecked(b.block)
	} else if !s.filter.Plan.EnterBlock(b.block) {
		return nil
	}
	err := s.agg.session.OpenBlock(ctx, s.src, b.block, func(open source.Block) error {
		s.filter.SetBlock(ctx, s.filter.Plan, open)
		if s.selectionFilter.Plan != nil {
			s.selectionFilter.Plan.EnterBlockUnchecked(b.block)
			s.selectionFilter.SetBlock(ctx, s.selectionFilter.Plan, open)
		}
		if err := s.collect(b.info); err != nil {
			return err
		}
		return s.rows(at)
	})
	return s.agg.session.NoteDamage(s.src, scan.BlockPart(b.block), b.info.Rows, err)
}

// rows counts the rows that match. If the cells of one shape cannot be read, the others are counted
// anyway.
func (s *rowScan) rows(at int) error {
	b := &s.sample.blocks[at]
	note := func(err error) error {
		if err == nil {
			return nil
		}
		return s.agg.session.NoteDamage(s.src, scan.BlockPart(b.block), b.info.Rows, err)
	}
	s.expect(s.grouped)
	s.matched = s.matched[:0]
	for i := range s.active {
		if err := note(s.narrow(s.active[i].program)); err != nil {
			return err
		}
		s.matched = append(s.matched, s.active[i].program.Rows...)
	}
	if len(s.matched) < len(s.grouped) {
		s.expect(s.matched)
	}
	if s.counts != nil {
		if err := note(s.countColumns()); err != nil {
			return err
		}
	}
	for i := range s.active {
		if of := &s.active[i]; len(of.program.Rows) > 0 {
			if err := note(s.count(of.shape, of.program.Rows)); err != nil {
				return err
			}
		}
	}
	if s.to.picks == nil || len(s.matched) == 0 || !s.shouldPick(at) {
		return nil
	}
	return s.pick()
}

// expect announces the rows whose cells will be read.
func (s *rowScan) expect(list []int32) {
	if p, ok := s.filter.Block.(source.Partial); ok && len(list) > 0 {
		p.Expect(list)
	}
}

// narrow removes the rows of a program that do not match, or all if they cannot be read.
func (s *rowScan) narrow(p *scan.Program) error {
	set, err := p.Rows, error(nil)
	if !p.MatchesAll() {
		set, err = s.filter.Narrow(p, set)
	}
	if err == nil && s.duplicates != nil && len(s.duplicates.keys) > 0 {
		set, err = s.duplicates.dropRepeated(&s.filter, set)
	}
	if p.Rows = set; err != nil {
		p.Rows = nil
	}
	return err
}

// countColumns counts the cells of the facets if all rows of the block match.
func (s *rowScan) countColumns() error {
	s.counts.byColumn = false
	if len(s.matched) < s.filter.Block.Len() {
		return nil
	}
	return s.counts.countColumns(s.filter.Block, s.active)
}

// collect finds the rows that their programs do not rule out.
func (s *rowScan) collect(info *source.BlockInfo) error {
	s.active, s.candidates = s.active[:0], s.candidates[:0]
	f := &s.filter
	shapes, err := f.Block.Shapes()
	if err != nil {
		return err
	}
	timed := !s.window.Covers(info)
	if timed {
		if err := f.LoadStarts(); err != nil {
			return err
		}
	}
	for row, shape := range shapes {
		if int(shape) >= len(f.Plan.Tables.Shapes) {
			return scan.ErrReference
		}
		if f.Plan.NeverMatches(shape) || !s.sample.examines(row) {
			continue
		}
		pr := f.Plan.Program(shape, scan.AnyDuration)
		if pr.RuledOut() || timed && !s.window.Contains(f.Starts[row]) {
			continue
		}
		if pr.Count++; pr.Count == 1 {
			s.active = append(s.active, shapeRows{pr, shape})
		}
		s.candidates = append(s.candidates, candidate{int32(row), pr})
	}
	s.agg.scanned += len(s.candidates)
	s.group()
	return nil
}

// group sets the rows of each program.
func (s *rowScan) group() {
	s.grouped = growTo(s.grouped, len(s.candidates))
	rest := s.grouped
	for _, a := range s.active {
		a.program.Rows, rest = rest[:0:a.program.Count], rest[a.program.Count:]
	}
	for _, m := range s.candidates {
		m.program.Rows = append(m.program.Rows, m.row)
	}
}

// count counts rows of a shape that match.
func (s *rowScan) count(shape uint32, set []int32) error {
	failed := s.filter.Plan.Tables.Shapes[shape].Status == otlpdata.StatusError
	if s.to.heat != nil {
		if err := s.heatRows(set, failed); err != nil {
			return err
		}
	}
	if s.to.facets != nil {
		chosen, err := s.selectRows(shape, set)
		if err != nil {
			return err
		}
		s.to.facets.total.add(len(set), failed)
		if err := s.counts.rows(&s.filter, shape, set, chosen); err != nil {
			return err
		}
	}
	if s.to.groups != nil {
		s.to.groups.total.add(len(set), failed)
		if err := s.groups.rows(&s.filter, shape, set); err != nil {
			return err
		}
	}
	if s.to.rest != nil {
		s.to.rest.add(len(set), failed)
	}
	return nil
}

func (s *rowScan) heatRows(set []int32, failed bool) error {
	if err := s.filter.LoadStarts(); err != nil {
		return err
	}
	if err := s.filter.LoadEnds(); err != nil {
		return err
	}
	for _, row := range set {
		h := rows.Head{Start: s.filter.Starts[row], End: s.filter.Ends[row]}
		s.to.heat.counter.AddSpan(h.Start, h.Duration(), failed)
	}
	s.to.heat.total.add(len(set), failed)
	return nil
}

// selectRows returns the rows that match the selection.
func (s *rowScan) selectRows(shape uint32, set []int32) ([]int32, error) {
	if s.agg.selection == nil {
		return nil, nil
	}
	pr := s.selectionFilter.Plan.Program(shape, scan.AnyDuration)
	if pr == nil || pr.RuledOut() {
		return nil, nil
	}
	chosen, err := s.within(s.agg.selection.starts, set)
	if err != nil || pr.MatchesAll() {
		return chosen, err
	}
	return s.selectionFilter.Narrow(pr, chosen)
}

// within returns the rows that start within a range. The result is valid until the next call.
func (s *rowScan) within(w scan.Range, set []int32) ([]int32, error) {
	s.selectable = append(s.selectable[:0], set...)
	if w.From == 0 && w.To == math.MaxUint64 {
		return s.selectable, nil
	}
	if err := s.filter.LoadStarts(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(s.selectable, func(row int32) bool { return s.filter.Starts[row] < w.From || s.filter.Starts[row] > w.To }), nil
}

// growTo returns a list of n elements and reuses the memory of list if possible.
func growTo(list []int32, n int) []int32 {
	if cap(list) < n {
		return make([]int32, n, n+n/4)
	}
	return list[:n]
}
