package mark

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

const suffix = ".mark"

// Dir is the folder of the marks of one store. It is made with the first mark.
type Dir struct {
	FS   vfs.FS
	Path string
}

// Damaged is a file that is no mark any more.
type Damaged struct {
	Path   string
	Number uint64 // that its name says
	Err    error
}

// File returns the path of the mark with a number.
func (d Dir) File(number uint64) string {
	return path.Join(d.Path, fmt.Sprintf("%016x%s", number, suffix))
}

// Load reads all marks in the order of their numbers, makes their names durable, and removes what was left unfinished. Files that are
// damaged are reported; one of a newer version is an error that matches [ErrNewer].
func (d Dir) Load() (marks []*Mark, damaged []Damaged, err error) {
	entries, there, err := d.list()
	if err != nil || !there {
		return nil, nil, err
	}
	for _, e := range entries {
		if e.IsDir || !strings.HasSuffix(e.Name, vfs.TempSuffix) {
			continue
		}
		if err := d.FS.Remove(path.Join(d.Path, e.Name)); err != nil {
			return nil, nil, fmt.Errorf("removing an unfinished deletion: %w", err)
		}
	}
	if marks, damaged, err = d.readAll(entries); err != nil {
		return nil, nil, err
	}
	if err := d.FS.SyncDir(d.Path); err != nil {
		return nil, nil, fmt.Errorf("syncing the deletions: %w", err)
	}
	return marks, damaged, nil
}

// Look reads the marks as Load does, and changes nothing: a program may be using the folder. It fails with fs.ErrNotExist if a mark was removed
// meanwhile.
func (d Dir) Look() (marks []*Mark, damaged []Damaged, err error) {
	entries, _, err := d.list()
	if err != nil {
		return nil, nil, err
	}
	return d.readAll(entries)
}

// list returns what is in the folder, if there is one.
func (d Dir) list() (entries []vfs.Entry, there bool, err error) {
	entries, err = d.FS.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("listing deletions: %w", err)
	}
	return entries, true, nil
}

func (d Dir) readAll(entries []vfs.Entry) (marks []*Mark, damaged []Damaged, err error) {
	for _, e := range entries {
		if e.IsDir || !strings.HasSuffix(e.Name, suffix) {
			continue
		}
		name := path.Join(d.Path, e.Name)
		m, err := d.read(name, e.Size)
		if errors.Is(err, errDamaged) {
			number, _ := strconv.ParseUint(strings.TrimSuffix(e.Name, suffix), 16, 64)
			damaged = append(damaged, Damaged{name, number, err})
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading the deletion %s: %w", name, err)
		}
		marks = append(marks, m)
	}
	return marks, damaged, nil
}

// read reads a file. Its name has the number of the mark.
func (d Dir) read(name string, size int64) (*Mark, error) {
	if size > maxSize {
		return nil, errDamaged
	}
	b, err := vfs.ReadFile(d.FS, name, maxSize)
	if err != nil {
		return nil, err
	}
	m, err := Decode(b)
	if err == nil && d.File(m.Number) != name {
		return nil, errDamaged
	}
	return m, err
}

// ErrInDoubt is matched by the error of Write for a mark that may be there at the next start: it could neither be made durable nor taken back.
var ErrInDoubt = errors.New("it may be in force all the same")

// Write makes a mark durable. After an error that does not match [ErrInDoubt] it is not there.
func (d Dir) Write(m *Mark) error {
	b, err := m.Append(nil)
	if err != nil {
		return err
	}
	if err := d.FS.MkdirAll(d.Path); err != nil {
		return fmt.Errorf("making the folder of deletions: %w", err)
	}
	err = vfs.WriteFileAtomic(d.FS, d.File(m.Number), b)
	if err == nil {
		return nil
	}
	if undo := cmp.Or(d.Remove(m.Number), d.FS.SyncDir(d.Path)); undo != nil {
		return fmt.Errorf("writing a deletion: %w, and taking it back failed, too (%w): %w", err, undo, ErrInDoubt)
	}
	return fmt.Errorf("writing a deletion: %w", err)
}

// Remove deletes a mark. It is not durable on return: the mark may come back with a power cut.
func (d Dir) Remove(number uint64) error {
	if err := d.FS.Remove(d.File(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a deletion: %w", err)
	}
	return nil
}
