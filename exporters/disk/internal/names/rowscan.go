package names

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// maxScannedBlocks is the maximum number of blocks that are read for one list of names in rows,
// newest first. With blocks of 4096 rows, these have 8 million spans. Names of older spans may be
// missing.
const maxScannedBlocks = 2048

// maxNameRows is the maximum number of rows that are read for one list of operations.
const maxNameRows = 1 << 17

// rowBlock is a block that may have rows of the shapes.
type rowBlock struct {
	src, block int
	info       *source.BlockInfo
	newest     uint64
}

// shapeScan visits the rows of some shapes, block by block.
type shapeScan struct {
	session *scan.Session
	wanted  [][]*wantedShape // by source and shape; nil: not visited
	spare   []wantedShape
	left    int // number of rows in blocks that may still be opened; 0 or less: a limit was reached
}

// wantedShape is a shape whose rows are visited.
type wantedShape struct {
	tables    *rows.Tables
	shape     *rows.Shape
	positions []int // cells with one field to look at, by index in Shape.Columns
	encoded   []int // cells with several encoded fields to look at, by the same index
}

func newShapeScan(s *scan.Session) *shapeScan {
	return &shapeScan{session: s, wanted: make([][]*wantedShape, len(s.Sources)), left: math.MaxInt}
}

// want adds a shape of a source.
func (s *shapeScan) want(src int, t *rows.Tables, shape uint32) *wantedShape {
	if s.wanted[src] == nil {
		s.wanted[src] = make([]*wantedShape, len(t.Shapes))
	}
	w := s.wanted[src][shape]
	if w == nil {
		const atOnce = 64 // sources may have thousands of shapes
		if len(s.spare) == 0 {
			s.spare = make([]wantedShape, atOnce)
		}
		w, s.spare = &s.spare[0], s.spare[1:]
		w.tables, w.shape = t, &t.Shapes[shape]
		s.wanted[src][shape] = w
	}
	return w
}

// wants returns nil if the rows of a shape are not visited.
func (s *shapeScan) wants(src int, shape uint32) *wantedShape {
	if wanted := s.wanted[src]; int(shape) < len(wanted) {
		return wanted[shape]
	}
	return nil
}

// run calls visit for the rows of the shapes until it returns false or a limit is reached. Damage
// is recorded.
func (s *shapeScan) run(ctx context.Context, visit func(w *wantedShape, b source.Block, row int) (bool, error)) error {
	blocks, err := s.blocks()
	if err != nil {
		return err
	}
	more := true
	for _, u := range blocks[:min(maxScannedBlocks, len(blocks))] {
		if s.left <= 0 {
			return nil
		}
		s.left -= u.info.Rows
		err := s.session.OpenBlock(ctx, u.src, u.block, func(b source.Block) (err error) {
			more, err = s.rows(u, b, visit)
			return err
		})
		if err = s.session.NoteDamage(u.src, scan.BlockPart(u.block), u.info.Rows, err); err != nil || !more {
			return err
		}
	}
	if len(blocks) > maxScannedBlocks {
		s.left = 0
	}
	return nil
}

func (s *shapeScan) rows(u rowBlock, b source.Block, visit func(w *wantedShape, b source.Block, row int) (bool, error)) (bool, error) {
	shapes, err := b.Shapes()
	if err != nil {
		return true, err
	}
	for row, shape := range shapes {
		w := s.wants(u.src, shape)
		if w == nil {
			continue
		}
		more, err := visit(w, b, row)
		if err != nil {
			err = s.session.NoteDamage(u.src, scan.BlockPart(u.block), u.info.Rows, err)
		}
		if err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

// blocks returns the blocks that may have rows of the shapes, newest first.
func (s *shapeScan) blocks() ([]rowBlock, error) {
	var out []rowBlock
	var shapes []source.BlockShape // scratch
	for src, wanted := range s.wanted {
		if wanted == nil {
			continue
		}
		blocks, err := s.session.Blocks(src)
		if err != nil {
			return nil, err
		}
		for i := range blocks {
			b := &blocks[i]
			var known bool
			shapes, known = s.session.Sources[src].BlockShapes(shapes[:0], i)
			if !known || slices.ContainsFunc(shapes, func(sh source.BlockShape) bool { return s.wants(src, sh.Shape) != nil }) {
				out = append(out, rowBlock{src: src, block: i, info: b, newest: b.MaxStart})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b rowBlock) int { return cmp.Compare(b.newest, a.newest) })
	return out, nil
}
