package segment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/vfs"
)

// MergeOptions say how segments are merged.
type MergeOptions struct {
	// Pace is called after every few thousand rows, for the caller to wait or to give up: an error ends the merge, which returns it. nil
	// goes on at full speed.
	Pace func() error
	// OnDamage is told of each part of an input that cannot be read. It returns nil to go on without those rows, or an error to give up.
	// nil gives up: the error of Merge then matches *source.DamageError.
	OnDamage func(*source.DamageError) error

	blockRows int // for tests: instead of targetRows
}

// Merge makes one segment of several sources, each of which is a segment, or part of one in its order. It does so as Write does: the same
// holds of the name path, of duplicates, which are found across the inputs, and of what is counted. Parents are looked for in all inputs.
// Info.Unreadable are rows that were left out because they are damaged, as far as is known how many they were. Info.RowBytes is an
// estimate.
//
// All blocks are read twice: first for what the rows share and for the order of the traces, then, mostly one after the other, for the
// rows. It takes about 80 bytes of memory per trace, the tables of all inputs, a megabyte for each of maxOpenBlocks, and as much as Write
// for the block at hand. A trace of very many rows takes 40 bytes for each of them.
func Merge(fsys vfs.FS, path string, inputs []source.Source, meta Meta, opts MergeOptions) (Info, error) {
	m := &merger{opts: opts, union: newUnion(), info: Info{Meta: meta}}
	info, err := create(fsys, path, func(f vfs.File) (Info, error) { return m.run(f, inputs) })
	if err != nil {
		return Info{}, fmt.Errorf("merge into segment %s: %w", path, err)
	}
	return info, nil
}

// merger makes a segment of sources.
type merger struct {
	opts    MergeOptions
	union   *union
	inputs  []input
	blocks  []inputBlock // of all inputs
	planner *planner
	traces  fragmentTable
	info    Info
	seen    int // rows of the first pass

	rows int // since the last Pace
	told *source.DamageError
	// Scratch of the row at hand.
	head  rows.Head
	cells []rows.Cell
	bytes []byte
}

// input is a source and its vocabulary.
type input struct {
	source.Source
	translation *translation
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
	if err := m.survey(); err != nil {
		return Info{}, err
	}
	w, err := newWriter(f, m.planner, m.info, withDefaults(Options{Level: column.Merge, blockRows: m.opts.blockRows, merge: true}))
	if err != nil {
		return Info{}, err
	}
	m.planner = nil
	if err := m.write(w); err != nil {
		return Info{}, err
	}
	w.info.Unreadable += m.seen - w.info.Rows - w.info.Duplicates
	return w.finish()
}

// addInput takes in the vocabulary of a source.
func (m *merger) addInput(s source.Source) error {
	tables, err := s.Tables()
	if err != nil {
		return err
	}
	blocks, err := s.Blocks()
	if err != nil {
		return err
	}
	t, err := m.union.add(tables)
	if err != nil {
		return &source.DamageError{File: s.Name(), Part: kindTables.String(), Err: err}
	}
	if err := checkPositions(m.union.tables); err != nil {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	for i := range blocks {
		m.blocks = append(m.blocks, inputBlock{uint32(len(m.inputs)), uint32(i)})
	}
	m.inputs = append(m.inputs, input{s, t})
	return nil
}

// tolerate returns nil for damage with which the caller of Merge wants to go on.
func (m *merger) tolerate(err error) error {
	var d *source.DamageError
	if m.opts.OnDamage == nil || !errors.As(err, &d) {
		return err
	}
	if d == m.told { // all rows of a block may fail for one reason
		return nil
	}
	m.told = d
	return m.opts.OnDamage(d)
}

// pace counts a row.
func (m *merger) pace() error {
	if m.rows++; m.rows < paceRows || m.opts.Pace == nil {
		return nil
	}
	m.rows = 0
	return m.opts.Pace()
}

// survey is the first pass: what the rows share, and where those of each trace are.
func (m *merger) survey() error {
	m.planner = newPlanner(m.union.tables)
	m.planner.borrowed, m.planner.largest = true, maxMergedDictionary
	m.traces = fragmentTable{traceTable: newTraceTable(m.union.tables)}
	for i := range m.blocks {
		if err := m.surveyBlock(uint32(i)); err != nil {
			return err
		}
	}
	m.union.forget()
	m.planner.finish()
	m.traces.sort()
	return nil
}

func (m *merger) surveyBlock(number uint32) error {
	of := &m.inputs[m.blocks[number].input]
	b, err := of.Open(context.Background(), int(m.blocks[number].number))
	if err != nil {
		var d *source.DamageError
		if errors.As(err, &d) {
			m.info.Unreadable += d.Rows
		}
		return m.tolerate(err)
	}
	defer b.Close()
	for row := range b.Len() {
		if err := m.surveyRow(b, number, row); err != nil {
			return err
		}
		if err := m.pace(); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) surveyRow(b source.Block, number uint32, row int) error {
	of := &m.inputs[m.blocks[number].input]
	h := &m.head
	err := b.Head(row, h)
	if err == nil {
		m.bytes, err = m.readCells(m.bytes[:0], b, row, of.translation, h)
	}
	if err != nil {
		return m.lose(err)
	}
	cells, ok := m.planner.add(h, m.bytes)
	if !ok {
		return fmt.Errorf("BUG: row %d of block %d of %s is not what its shape says", row, m.blocks[number].number, of.Name())
	}
	if m.seen++; m.seen > math.MaxInt32 {
		return fmt.Errorf("%w: more than %d rows", ErrTooLarge, math.MaxInt32)
	}
	bytes := headBytes + len(m.bytes)
	m.info.RowBytes += int64(bytes)
	m.traces.add(h, number, row, bytes, cells)
	return nil
}

// lose counts a row that cannot be read.
func (m *merger) lose(err error) error {
	m.info.Unreadable++
	return m.tolerate(err)
}

// readCells appends the cells of a row as they are encoded, and makes its head one of the union.
func (m *merger) readCells(dst []byte, b source.Block, row int, t *translation, h *rows.Head) ([]byte, error) {
	var err error
	if m.cells, err = b.Cells(m.cells[:0], row); err != nil {
		return dst, err
	}
	return t.translate(dst, h, m.cells), nil
}

// write is the second pass: the rows in their final order.
func (m *merger) write(w *writer) error {
	g := newJoiner(m, w)
	defer g.open.close()
	for i := range m.traces.list {
		if err := g.write(&m.traces.list[i]); err != nil {
			return err
		}
	}
	return nil
}
