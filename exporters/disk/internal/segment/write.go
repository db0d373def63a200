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
	"github.com/tracing-backend/tracing/pipeline/vfs"
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
// Duplicates are left out, and so are rows that cannot be read; the Info counts both. Write takes about 30 bytes of memory per row, 50
// per trace, and some megabytes for the block at hand.
func Write(fsys vfs.FS, path string, in Input, meta Meta, opts Options) (Info, error) {
	info, err := write(fsys, path, in, meta, opts)
	if err != nil {
		return Info{}, fmt.Errorf("write segment %s: %w", path, err)
	}
	return info, nil
}

func write(fsys vfs.FS, name string, in Input, meta Meta, opts Options) (Info, error) {
	tmp := name + vfs.TempSuffix
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Info{}, err
	}
	f, err := fsys.Create(tmp)
	if err != nil {
		return Info{}, err
	}
	info, err := writeTo(f, in, meta, opts)
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
	v, err := newVocabulary(s.planner)
	if err != nil {
		return Info{}, err
	}
	w := newWriter(f, s, v, withDefaults(opts))
	w.info.Meta = meta
	if err := w.writeBlocks(); err != nil {
		return Info{}, err
	}
	if err := w.writeSections(); err != nil {
		return Info{}, err
	}
	w.info.Size = w.out.at
	return w.info, nil
}
