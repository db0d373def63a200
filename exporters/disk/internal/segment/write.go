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

// Input is a set of rows with one vocabulary (the definitions that the rows refer to). It must not
// change while it is written.
type Input struct {
	Tables *rows.Tables
	Rows   int
	// Row returns row i, in the order of arrival. It is called several times per row, and its
	// results are retained until Write returns.
	Row func(i int) []byte
}

// Options configure Write.
type Options struct {
	// Level is the compression level of blocks. Default: column.Flush.
	Level column.Level

	merge bool // rows are read from segments and not valid after their block is written

	// For tests: blockRows replaces targetRows; plain disables compression of sections.
	blockRows int
	plain     bool
}

// ErrTooLarge matches errors about too many rows or too large sections for a segment.
var ErrTooLarge = errors.New("too large for a segment")

// Write writes the rows of in to a segment file at path. It writes to path with [vfs.TempSuffix],
// syncs the file, renames it and syncs the directory. When it returns nil the segment is durable;
// after a crash at any time it exists completely or not at all. After an error, neither file exists
// unless removing it failed as well; the caller may retry.
//
// Write leaves out duplicates and unreadable rows; Info has their numbers. It needs about 8 bytes
// of memory per row, 60 bytes per trace, and a few megabytes for the current block. A very long
// trace takes 40 bytes per row.
func Write(fsys vfs.FS, path string, in Input, meta Meta, opts Options) (Info, error) {
	info, err := create(fsys, path, func(f vfs.File) (Info, error) { return writeTo(f, in, meta, withDefaults(opts)) })
	if err != nil {
		return Info{}, fmt.Errorf("writing segment %s: %w", path, err)
	}
	return info, nil
}

// create creates a file with the output of write, completely or not at all.
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
		fsys.Remove(tmp) // frees space; otherwise removed at the next start
		return Info{}, err
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		fsys.Remove(name) // must not be used if it is not durable
		return Info{}, err
	}
	return info, nil
}

func withDefaults(o Options) Options {
	o.Level = cmp.Or(o.Level, column.Flush)
	o.blockRows = cmp.Or(o.blockRows, targetRows)
	return o
}

// output is a file that is written sequentially.
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
	s := newFlushScan(in)
	s.run()
	s.info.Meta = meta
	v, err := newVocabulary(s.analyzer)
	if err != nil {
		return Info{}, err
	}
	w, err := newWriter(f, v, in.Tables, s.info, opts)
	if err != nil {
		return Info{}, err
	}
	w.converter = newFlushConverter(v, s.analyzer, w.filters)
	s.analyzer = nil // frees its memory
	g := newTraceSorter(in)
	for i := range s.order.list {
		t := &s.order.list[i]
		if err := g.write(w, s.order.rowsOf(t), t); err != nil {
			return Info{}, err
		}
	}
	return w.finish()
}

// traceSorter passes the rows of traces to a writer, sorted and without duplicates.
type traceSorter struct {
	in         Input
	duplicates *duplicates
	keys       []rowKey
	fetched    [][]byte // rows of the current batch
}

func newTraceSorter(in Input) *traceSorter {
	g := &traceSorter{in: in}
	g.duplicates = newDuplicates(g)
	return g
}

// readRow implements rowLookup.
func (g *traceSorter) readRow(number uint32, h *rows.Head, dst []rows.Cell) (*rows.Tables, []rows.Cell, error) {
	t := g.in.Tables
	cells, err := rows.ReadHead(g.in.Row(int(number)), h)
	if err != nil {
		return t, dst, err
	}
	dst, err = t.ReadCells(cells, t.Shapes[h.Shape].Columns, dst)
	return t, dst, err
}

// write passes the rows of a trace to a writer.
func (g *traceSorter) write(w *writer, list []uint32, t *trace) error {
	if err := g.sort(list); err != nil {
		return err
	}
	w.info.Duplicates += len(list) - len(g.keys)
	if err := w.reserve(len(g.keys), int(t.bytes), int(t.cells)); err != nil {
		return err
	}
	w.beginTrace(g.keys)
	var h rows.Head
	for from := 0; from < len(g.keys); from += batchRows {
		for i, b := range g.fetch(g.keys[from:min(from+batchRows, len(g.keys))]) {
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

// sort fills keys with the sorted keys of the rows of a trace.
func (g *traceSorter) sort(list []uint32) error {
	g.keys = g.keys[:0]
	for _, row := range list {
		g.keys = append(g.keys, rowKey{row: row})
	}
	var h rows.Head
	for from := 0; from < len(g.keys); from += batchRows {
		keys := g.keys[from:min(from+batchRows, len(g.keys))]
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

// sorted returns the keys of the rows of a trace in order, without duplicates.
func sorted(keys []rowKey, d *duplicates) []rowKey {
	sortKeys(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i].mayDuplicate(&keys[i-1]) {
			return d.drop(keys)
		}
	}
	return keys
}

// fetch returns the rows of keys. It looks up all of them before the first is decoded, so that
// cache misses overlap.
func (g *traceSorter) fetch(keys []rowKey) [][]byte {
	g.fetched = g.fetched[:0]
	for i := range keys {
		g.fetched = append(g.fetched, g.in.Row(int(keys[i].row)))
	}
	return g.fetched
}
