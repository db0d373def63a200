package segment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Input is a set of rows under one vocabulary that does not change while it is written.
type Input struct {
	Tables *rows.Tables
	Rows   int
	// Row returns the i-th row, in the order of arrival. It is called several times, and what it returns is kept until Write returns.
	Row func(i int) []byte
}

// Options say how a segment is written.
type Options struct {
	// Level is how hard blocks are compressed; zero is column.Flush.
	Level column.Level

	merge bool // rows are read from segments: they are gone when their block is written

	// For tests: instead of targetRows; sections are not compressed.
	blockRows int
	plain     bool
}

// ErrTooLarge is matched by the error of Write for rows that do not fit a segment: their number, or the length of a section.
var ErrTooLarge = errors.New("too large for a segment")

// Write makes the segment of the rows of in under the name path. It writes to the name with [vfs.TempSuffix], syncs the file, renames it
// and syncs the directory, so that after nil the segment is there for good, and after a crash at any time it is there completely or not
// at all. After an error neither name is there, unless removing them failed too; the caller may try again.
//
// Duplicates are left out, and so are rows that cannot be read; the Info counts both. Write takes about 8 bytes of memory per row, 60
// per trace, and some megabytes for the block at hand. A trace of very many rows takes 40 bytes for each of them.
func Write(fsys vfs.FS, path string, in Input, meta Meta, opts Options) (Info, error) {
	info, err := create(fsys, path, func(f vfs.File) (Info, error) { return writeTo(f, in, meta, withDefaults(opts)) })
	if err != nil {
		return Info{}, fmt.Errorf("write segment %s: %w", path, err)
	}
	return info, nil
}

// create makes a file of what write writes, completely or not at all.
func create(fsys vfs.FS, name string, write func(vfs.File) (Info, error)) (Info, error) {
	tmp := name + vfs.TempSuffix
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Info{}, err
	}
	f, err := fsys.Create(tmp)
	if err != nil {
		return Info{}, err
	}
	info, err := write(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		fsys.Remove(tmp) // to give space back; left-overs are also removed at start
		return Info{}, err
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		fsys.Remove(name) // what is not there for good must not be taken for it
		return Info{}, err
	}
	return info, nil
}

func withDefaults(o Options) Options {
	o.Level = cmp.Or(o.Level, column.Flush)
	o.blockRows = cmp.Or(o.blockRows, targetRows)
	return o
}

// output is the file that is written, front to back.
type output struct {
	file vfs.File
	at   int64
}

func (o *output) write(b []byte) error {
	n, err := o.file.WriteAt(b, o.at)
	o.at += int64(n)
	return err
}

func writeTo(f vfs.File, in Input, meta Meta, opts Options) (Info, error) {
	if in.Rows > math.MaxInt32 {
		return Info{}, fmt.Errorf("%w: %d rows", ErrTooLarge, in.Rows)
	}
	s := newSurvey(in)
	s.run()
	s.info.Meta = meta
	v, err := newVocabulary(s.planner)
	if err != nil {
		return Info{}, err
	}
	w, err := newWriter(f, v, in.Tables, s.info, opts)
	if err != nil {
		return Info{}, err
	}
	w.mover = newMover(v, s.planner, w.stripes)
	s.planner = nil // what it remembers is needed no more
	g := newGatherer(in)
	for i := range s.order.list {
		t := &s.order.list[i]
		if err := g.write(w, s.order.rowsOf(t), t); err != nil {
			return Info{}, err
		}
	}
	return w.finish()
}

// gatherer gives the rows of traces to a writer, in order and without duplicates.
type gatherer struct {
	in         Input
	duplicates *duplicates
	keys       []rowKey
	fetched    [][]byte // some rows
}

func newGatherer(in Input) *gatherer {
	g := &gatherer{in: in}
	g.duplicates = newDuplicates(g)
	return g
}

// readRow implements rowSource.
func (g *gatherer) readRow(number uint32, h *rows.Head, dst []rows.Cell) (*rows.Tables, []rows.Cell, error) {
	t := g.in.Tables
	cells, err := rows.ReadHead(g.in.Row(int(number)), h)
	if err != nil {
		return t, dst, err
	}
	dst, err = t.ReadCells(cells, t.Shapes[h.Shape].Columns, dst)
	return t, dst, err
}

// write gives the rows of a trace to a writer.
func (g *gatherer) write(w *writer, list []uint32, t *trace) error {
	if err := g.sort(list); err != nil {
		return err
	}
	w.info.Duplicates += len(list) - len(g.keys)
	if err := w.room(len(g.keys), int(t.bytes), int(t.cells)); err != nil {
		return err
	}
	w.begin(g.keys)
	var h rows.Head
	for from := 0; from < len(g.keys); from += together {
		for i, b := range g.fetch(g.keys[from:min(from+together, len(g.keys))]) {
			cells, err := rows.ReadHead(b, &h)
			if err != nil {
				return err
			}
			if err := w.add(from+i, &h, len(b), cells); err != nil {
				return err
			}
		}
	}
	return nil
}

// sort fills keys with those of a trace's rows.
func (g *gatherer) sort(list []uint32) error {
	g.keys = g.keys[:0]
	for _, row := range list {
		g.keys = append(g.keys, rowKey{row: row})
	}
	var h rows.Head
	for from := 0; from < len(g.keys); from += together {
		keys := g.keys[from:min(from+together, len(g.keys))]
		for i, b := range g.fetch(keys) {
			if _, err := rows.ReadHead(b, &h); err != nil {
				return err
			}
			keys[i] = keyOf(&h, keys[i].row)
		}
	}
	g.keys = sorted(g.keys, g.duplicates)
	return nil
}

// sorted brings the rows of a trace into order, without duplicates.
func sorted(keys []rowKey, d *duplicates) []rowKey {
	sortKeys(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i].twins(&keys[i-1]) {
			return d.drop(keys)
		}
	}
	return keys
}

// fetch returns rows. They lie far apart: to look for all before the first is read lets the processor wait for several at a time.
func (g *gatherer) fetch(keys []rowKey) [][]byte {
	g.fetched = g.fetched[:0]
	for i := range keys {
		g.fetched = append(g.fetched, g.in.Row(int(keys[i].row)))
	}
	return g.fetched
}
