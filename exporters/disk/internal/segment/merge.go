package segment

import (
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
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
// rows. The first pass reads no more cells than it needs. Texts of blocks must stay valid when these are closed. It takes about 80 bytes of
// memory per trace, the tables of all inputs, a megabyte for each of maxOpenBlocks, and as much as Write for the block at hand. A trace of
// very many rows takes 40 bytes for each of them.
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

	rows  int // since the last Pace
	told  *source.DamageError
	heads headParts // scratch: of the block at hand
}

// input is a source and its vocabulary.
type input struct {
	source.Source
	*translation
	met []metShape // by shape
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
	v, err := newVocabulary(m.planner)
	if err != nil {
		return Info{}, err
	}
	m.planner = nil
	w, err := newWriter(f, v, v.layout.tables, m.info, withDefaults(Options{Level: column.Merge, blockRows: m.opts.blockRows, merge: true}))
	if err != nil {
		return Info{}, err
	}
	w.filters = newRowFilters(w.stripes, v.layout)
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
	m.inputs = append(m.inputs, input{s, t, make([]metShape, len(t.shapes))})
	return nil
}

// tolerate returns nil for damage with which the caller of Merge wants to go on.
func (m *merger) tolerate(err error) error {
	if err == nil || m.opts.OnDamage == nil {
		return err
	}
	var d *source.DamageError
	if !errors.As(err, &d) {
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
