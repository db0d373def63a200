package search

import (
	"context"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// scan counts the rows of a frame that fit. Damage is noted.
func (a *aggregator) scan(ctx context.Context, f *frame, to targets) error {
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

// scanSource counts the rows of some blocks of a frame, which are of one source.
func (a *aggregator) scanSource(ctx context.Context, f *frame, from, end int, to targets) error {
	s, err := a.rowScan(f, f.blocks[from].src, to)
	if err != nil || s == nil {
		return err
	}
	defer s.finish()
	if !distinct(a.sources[s.src]) && (to.heat != nil || to.facets != nil || to.rest != nil) {
		if s.twins, err = s.findTwins(ctx, f.blocks[from:end]); err != nil {
			return err
		}
	}
	for at := from; at < end; at++ {
		if err := s.block(ctx, at); err != nil {
			return err
		}
		a.read += f.blocks[at].info.Rows
	}
	return nil
}

// rowScan reads rows of one source.
type rowScan struct {
	*aggregator
	frame      *frame
	src        int
	window     window
	to         targets
	everywhere bool   // exemplars are picked in every block
	fit        filter // of the query
	chosen     filter // of the selection; without a plan where there is none
	counts     *facetSource
	twins      *twins // nil: there are none

	active  []shapeRows // of the block at hand
	met     []metRow
	grouped []int32
	copied  []int32 // rows that may be chosen
	matched []int32 // that exemplars are picked from
	head    rows.Head
}

// shapeRows is a shape that occurs in the block at hand and may fit.
type shapeRows struct {
	*program
	shape uint32
}

// metRow is a row that its shape does not rule out.
type metRow struct {
	row     int32
	program *program
}

// rowScan returns nil where the tables of the source are damaged.
func (a *aggregator) rowScan(f *frame, src int, to targets) (*rowScan, error) {
	p, err := a.plan(src)
	if err != nil || p == nil {
		return nil, err
	}
	s := &rowScan{aggregator: a, frame: f, src: src, window: f.windows[src], to: to}
	s.fit.plan = p
	if a.choice != nil {
		s.chosen.plan = newPlan(a.choice.where, a.sources[src], p.tables)
	}
	if to.facets != nil {
		s.counts = newFacetSource(to.facets, p)
	}
	return s, nil
}

// finish counts what was kept by number.
func (s *rowScan) finish() {
	if s.counts != nil {
		s.counts.finish()
	}
}

// block counts the rows of a block of the frame. Damage is noted.
func (s *rowScan) block(ctx context.Context, at int) error {
	b := &s.frame.blocks[at]
	if s.frame.asked {
		s.fit.plan.enterUnasked(b.block)
	} else if !s.fit.plan.enter(b.block) {
		return nil
	}
	err := s.open(ctx, s.src, b.block, func(open source.Block) error {
		s.fit.use(ctx, s.fit.plan, open)
		if s.chosen.plan != nil {
			s.chosen.plan.enterUnasked(b.block)
			s.chosen.use(ctx, s.chosen.plan, open)
		}
		if err := s.group(b.info); err != nil {
			return err
		}
		return s.rows(at)
	})
	return s.damage.note(s.sources[s.src], blockName(b.block), b.info.Rows, err)
}

// rows counts the rows that fit. What cannot be read of one shape says nothing about the others.
func (s *rowScan) rows(at int) error {
	if p, ok := s.fit.block.(source.Partial); ok && len(s.grouped) > 0 {
		p.Expect(s.grouped)
	}
	b := &s.frame.blocks[at]
	s.matched = s.matched[:0]
	for i := range s.active {
		err := s.shape(&s.active[i])
		if err = s.damage.note(s.sources[s.src], blockName(b.block), b.info.Rows, err); err != nil {
			return err
		}
	}
	if s.to.picks == nil || len(s.matched) == 0 || !s.picking(at) {
		return nil
	}
	return s.pick()
}

// group finds the rows of the block that their shapes do not rule out, and gives each shape its own.
func (s *rowScan) group(info *source.BlockInfo) error {
	s.active, s.met = s.active[:0], s.met[:0]
	f := &s.fit
	shapes, err := f.block.Shapes()
	if err != nil {
		return err
	}
	timed := !s.window.covers(info)
	if timed {
		if err := f.readStarts(); err != nil {
			return err
		}
	}
	for row, shape := range shapes {
		if int(shape) >= len(f.programs) {
			return errReference
		}
		if f.programs[shape] == &f.never || !s.frame.examines(row) {
			continue
		}
		pr := f.program(shape, anyLength)
		if pr.now == no || timed && !s.window.has(f.starts[row]) {
			continue
		}
		if pr.count++; pr.count == 1 {
			s.active = append(s.active, shapeRows{pr, shape})
		}
		s.met = append(s.met, metRow{int32(row), pr})
	}
	s.scanned += len(s.met)
	s.divideRows()
	return nil
}

// divideRows gives each program its rows.
func (s *rowScan) divideRows() {
	s.grouped = growTo(s.grouped, len(s.met))
	rest := s.grouped
	for _, a := range s.active {
		a.rows, rest = rest[:0:a.count], rest[a.count:]
	}
	for _, m := range s.met {
		m.program.rows = append(m.program.rows, m.row)
	}
}

// shape counts the rows of a shape that fit.
func (s *rowScan) shape(of *shapeRows) error {
	set, err := of.rows, error(nil)
	if of.now != yes {
		if set, err = s.fit.narrow(&of.root, set); err != nil {
			return err
		}
	}
	if s.twins != nil && len(s.twins.of) > 0 {
		if set, err = s.twins.once(&s.fit, set); err != nil {
			return err
		}
	}
	if len(set) == 0 {
		return nil
	}
	if s.to.picks != nil {
		s.matched = append(s.matched, set...)
	}
	return s.count(of.shape, set)
}

// count counts rows of a shape, which fit.
func (s *rowScan) count(shape uint32, set []int32) error {
	failed := s.fit.tables.Shapes[shape].Status == otlpdata.StatusError
	if s.to.heat != nil {
		if err := s.heatRows(set, failed); err != nil {
			return err
		}
	}
	if s.to.facets != nil {
		chosen, err := s.choose(shape, set)
		if err != nil {
			return err
		}
		s.to.facets.add(len(set), failed)
		if err := s.counts.rows(&s.fit, shape, set, chosen); err != nil {
			return err
		}
	}
	if s.to.rest != nil {
		s.to.rest.add(len(set), failed)
	}
	return nil
}

func (s *rowScan) heatRows(set []int32, failed bool) error {
	if err := s.fit.readStarts(); err != nil {
		return err
	}
	if err := s.fit.readEnds(); err != nil {
		return err
	}
	for _, row := range set {
		h := rows.Head{Start: s.fit.starts[row], End: s.fit.ends[row]}
		s.to.heat.AddSpan(h.Start, h.Duration(), failed)
	}
	s.to.heat.add(len(set), failed)
	return nil
}

// choose returns the rows that the selection covers.
func (s *rowScan) choose(shape uint32, set []int32) ([]int32, error) {
	if s.choice == nil {
		return nil, nil
	}
	pr := s.chosen.program(shape, anyLength)
	if pr == nil || pr == &s.chosen.never || pr.now == no {
		return nil, nil
	}
	chosen, err := s.within(s.choice.starts, set)
	if err != nil || pr.now == yes {
		return chosen, err
	}
	return s.chosen.narrow(&pr.root, chosen)
}

// within returns a copy of the rows that start within bounds, valid until the next call.
func (s *rowScan) within(w bounds, set []int32) ([]int32, error) {
	s.copied = append(s.copied[:0], set...)
	if w.from == 0 && w.to == math.MaxUint64 {
		return s.copied, nil
	}
	if err := s.fit.readStarts(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(s.copied, func(row int32) bool { return s.fit.starts[row] < w.from || s.fit.starts[row] > w.to }), nil
}

// covers reports whether all rows of a block start within the window.
func (w window) covers(info *source.BlockInfo) bool {
	for _, s := range w {
		if info.MinStart >= s.from && info.MaxStart <= s.to {
			return true
		}
	}
	return false
}

// growTo returns a list of n elements, in the memory of another where that suffices.
func growTo(list []int32, n int) []int32 {
	if cap(list) < n {
		return make([]int32, n, n+n/4)
	}
	return list[:n]
}
