package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// MergeOptions configure a merge.
type MergeOptions struct {
	// Pace is called after every few thousand rows. It may block to slow the merge down. If it
	// returns an error, the merge stops and returns that error. nil: full speed.
	Pace func() error
	// OnDamage is called for each part of an input that is unreadable. If it returns nil, the merge
	// continues without these rows; otherwise it stops. nil: the merge stops with an error that
	// matches *source.DamageError.
	OnDamage func(*source.DamageError) error

	blockRows int // for tests; replaces targetRows
}

// Merge writes one segment with the rows of several sources. Each source must be a segment, or a
// part of one in its order. path is handled as in Write. Duplicates are removed across inputs, and
// parents are resolved across inputs. Info.Unreadable is the known number of rows that were left
// out because of damage. Info.RowBytes is an estimate.
//
// Merge reads all blocks twice: first to determine what the rows have in common and the order of
// traces, then, mostly sequentially, to convert the rows. The first pass decodes only the cells
// that it needs. Texts of blocks must stay valid after the blocks are closed. Merge needs memory
// for the tables of all inputs, about 80 bytes per trace, a megabyte for each of maxCachedBlocks,
// and the same as Write for the current block. A very long trace takes 40 bytes per row.
func Merge(fsys vfs.FS, path string, inputs []source.Source, meta Meta, opts MergeOptions) (Info, error) {
	m := &merger{opts: opts, tables: rows.NewTableMerger(), info: Info{Meta: meta}}
	info, err := create(fsys, path, func(f vfs.File) (Info, error) { return m.run(f, inputs) })
	if err != nil {
		return Info{}, fmt.Errorf("merging into segment %s: %w", path, err)
	}
	return info, nil
}

// merger performs a merge.
type merger struct {
	opts     MergeOptions
	tables   *rows.TableMerger
	inputs   []input
	blocks   []inputBlock // of all inputs
	analyzer *analyzer
	traces   fragmentTable
	info     Info
	rowsSeen int // number of rows in the first pass

	rows     int // since the last call of Pace
	reported *source.DamageError
	heads    headColumns // scratch: of the current block
}

// input is a source with the translation of its ids.
type input struct {
	source.Source
	ids    *rows.Translation
	states []shapeState // by shape
}

// inputBlock is a block of an input.
type inputBlock struct{ input, number uint32 }

func (m *merger) run(f vfs.File, inputs []source.Source) (Info, error) {
	for _, s := range inputs {
		err := m.addInput(s)
		if err != nil {
			n, _, _ := s.Bounds()
			m.info.Unreadable += n
		}
		if err := m.tolerate(err); err != nil {
			return Info{}, err
		}
	}
	if err := m.firstPass(); err != nil {
		return Info{}, err
	}
	v, err := newVocabulary(m.analyzer)
	if err != nil {
		return Info{}, err
	}
	m.analyzer = nil
	w, err := newWriter(f, v, v.layout.tables, m.info, withDefaults(Options{Level: column.Merge, blockRows: m.opts.blockRows, merge: true}))
	if err != nil {
		return Info{}, err
	}
	w.feeder = newFilterFeeder(w.filters, v.layout)
	if err := m.write(w); err != nil {
		return Info{}, err
	}
	w.info.Unreadable += m.rowsSeen - w.info.Rows - w.info.Duplicates
	return w.finish()
}

// addInput adds the tables and blocks of a source.
func (m *merger) addInput(s source.Source) error {
	tables, err := s.Tables()
	if err != nil {
		return err
	}
	blocks, err := s.Blocks()
	if err != nil {
		return err
	}
	t, err := m.tables.Add(tables)
	if err != nil {
		return &source.DamageError{File: s.Name(), Part: kindTables.String(), Err: err}
	}
	if err := checkPositions(m.tables.Tables()); err != nil {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	for i := range blocks {
		m.blocks = append(m.blocks, inputBlock{uint32(len(m.inputs)), uint32(i)})
	}
	m.inputs = append(m.inputs, input{s, t, make([]shapeState, len(t.Shapes))})
	return nil
}

// tolerate calls OnDamage for damage and returns its result. It returns other errors unchanged.
func (m *merger) tolerate(err error) error {
	if err == nil || m.opts.OnDamage == nil {
		return err
	}
	var d *source.DamageError
	if !errors.As(err, &d) {
		return err
	}
	if d == m.reported { // all rows of a block may fail with the same error
		return nil
	}
	m.reported = d
	return m.opts.OnDamage(d)
}

// pace counts a row and calls Pace every paceRows rows.
func (m *merger) pace() error {
	if m.rows++; m.rows < paceRows || m.opts.Pace == nil {
		return nil
	}
	m.rows = 0
	return m.opts.Pace()
}

// write is the second pass. It writes the rows in their final order.
func (m *merger) write(w *writer) error {
	g := newTraceMerger(m, w)
	defer g.open.close()
	for i := range m.traces.list {
		if err := g.write(&m.traces.list[i]); err != nil {
			return err
		}
	}
	return nil
}

// blockCache keeps the most recently used blocks open, because the next traces often have rows in
// them as well.
type blockCache struct {
	inputs []input
	blocks []inputBlock
	list   []*cachedBlock
	clock  uint64
}

// cachedBlock is an open block. It is not closed while it is in use.
type cachedBlock struct {
	source.Block
	varying varyingCells // nil: only all cells of a row can be read
	number  uint32       // index into the blocks of all inputs
	refs    int
	lastUse uint64
}

// varyingCells is implemented by blocks that can read only the varying cells of a row (those that
// are not source.Hints.Constant), which is faster than reading all of them.
type varyingCells interface {
	VaryingCells(dst []rows.Cell, row int) ([]rows.Cell, error)
}

// cells appends the cells of a row: all of them, or only the varying ones.
func (b *cachedBlock) cells(dst []rows.Cell, row int) (cells []rows.Cell, all bool, err error) {
	if b.varying != nil {
		cells, err = b.varying.VaryingCells(dst, row)
		return cells, false, err
	}
	cells, err = b.Cells(dst, row)
	return cells, true, err
}

// acquire returns an open block, which stays open until release.
func (o *blockCache) acquire(number uint32) (*cachedBlock, error) {
	o.clock++
	for _, b := range o.list {
		if b.number == number {
			b.lastUse = o.clock
			b.refs++
			return b, nil
		}
	}
	at := o.blocks[number]
	opened, err := o.inputs[at.input].Open(context.Background(), int(at.number))
	if err != nil {
		return nil, err
	}
	b := &cachedBlock{Block: opened, number: number, refs: 1, lastUse: o.clock}
	b.varying, _ = opened.(varyingCells)
	if oldest := o.leastRecent(); oldest != nil && len(o.list) >= maxCachedBlocks {
		oldest.Close()
		*oldest = *b
		return oldest, nil
	}
	o.list = append(o.list, b)
	return b, nil
}

// leastRecent returns the least recently used block that is not in use, or nil.
func (o *blockCache) leastRecent() *cachedBlock {
	var found *cachedBlock
	for _, b := range o.list {
		if b.refs == 0 && (found == nil || b.lastUse < found.lastUse) {
			found = b
		}
	}
	return found
}

func (o *blockCache) release(b *cachedBlock) { b.refs-- }

func (o *blockCache) close() {
	for _, b := range o.list {
		b.Close()
	}
	o.list = nil
}
