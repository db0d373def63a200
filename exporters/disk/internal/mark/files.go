package mark

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/vfs"
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
	entries, err := d.FS.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing deletions: %w", err)
	}
	for _, e := range entries {
		name := path.Join(d.Path, e.Name)
		switch {
		case e.IsDir:
		case strings.HasSuffix(e.Name, vfs.TempSuffix):
			if err := d.FS.Remove(name); err != nil {
				return nil, nil, fmt.Errorf("removing an unfinished deletion: %w", err)
			}
		case strings.HasSuffix(e.Name, suffix):
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
	}
	if err := d.FS.SyncDir(d.Path); err != nil {
		return nil, nil, fmt.Errorf("syncing the deletions: %w", err)
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

// Write makes a mark durable. After an error it may be there or not.
func (d Dir) Write(m *Mark) error {
	b, err := m.Append(nil)
	if err != nil {
		return err
	}
	if err := d.FS.MkdirAll(d.Path); err != nil {
		return fmt.Errorf("making the folder of deletions: %w", err)
	}
	if err := vfs.WriteFileAtomic(d.FS, d.File(m.Number), b); err != nil {
		return fmt.Errorf("writing a deletion: %w", err)
	}
	return nil
}

// Remove deletes a mark.
func (d Dir) Remove(number uint64) error {
	if err := d.FS.Remove(d.File(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a deletion: %w", err)
	}
	return nil
}
