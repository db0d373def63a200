package tombstone

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

// Dir is the folder that holds the tombstones of a store. The first Write creates it.
type Dir struct {
	FS   vfs.FS
	Path string
}

// Damaged is a tombstone file that cannot be decoded.
type Damaged struct {
	Path   string
	Number uint64 // from the file name
	Err    error
}

// File returns the path of the tombstone with the given number.
func (d Dir) File(number uint64) string {
	return path.Join(d.Path, fmt.Sprintf("%016x%s", number, suffix))
}

// Load reads all tombstones in the order of their numbers. It removes unfinished files and syncs
// the folder. Damaged files are returned separately. If a file has a later format version, the
// error matches [ErrNewer].
func (d Dir) Load() (tombstones []*Tombstone, damaged []Damaged, err error) {
	entries, exists, err := d.list()
	if err != nil || !exists {
		return nil, nil, err
	}
	for _, e := range entries {
		if e.IsDir || !strings.HasSuffix(e.Name, vfs.TempSuffix) {
			continue
		}
		if err := d.FS.Remove(path.Join(d.Path, e.Name)); err != nil {
			return nil, nil, fmt.Errorf("removing unfinished deletion file: %w", err)
		}
	}
	if tombstones, damaged, err = d.readAll(entries); err != nil {
		return nil, nil, err
	}
	if err := d.FS.SyncDir(d.Path); err != nil {
		return nil, nil, fmt.Errorf("syncing the deletions folder: %w", err)
	}
	return tombstones, damaged, nil
}

// LoadReadOnly is like Load but changes nothing, so that it is safe while another process uses the
// folder. The error matches fs.ErrNotExist if a tombstone was removed in the meantime.
func (d Dir) LoadReadOnly() (tombstones []*Tombstone, damaged []Damaged, err error) {
	entries, _, err := d.list()
	if err != nil {
		return nil, nil, err
	}
	return d.readAll(entries)
}

// list returns the entries of the folder, if the folder exists.
func (d Dir) list() (entries []vfs.Entry, exists bool, err error) {
	entries, err = d.FS.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("listing deletions: %w", err)
	}
	return entries, true, nil
}

func (d Dir) readAll(entries []vfs.Entry) (tombstones []*Tombstone, damaged []Damaged, err error) {
	for _, e := range entries {
		if e.IsDir || !strings.HasSuffix(e.Name, suffix) {
			continue
		}
		name := path.Join(d.Path, e.Name)
		t, err := d.read(name, e.Size)
		if errors.Is(err, errDamaged) {
			number, _ := strconv.ParseUint(strings.TrimSuffix(e.Name, suffix), 16, 64)
			damaged = append(damaged, Damaged{name, number, err})
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading deletion file %s: %w", name, err)
		}
		tombstones = append(tombstones, t)
	}
	return tombstones, damaged, nil
}

// read reads one file and checks that its name matches its number.
func (d Dir) read(name string, size int64) (*Tombstone, error) {
	if size > maxFileSize {
		return nil, errDamaged
	}
	b, err := vfs.ReadFile(d.FS, name, maxFileSize)
	if err != nil {
		return nil, err
	}
	t, err := Decode(b)
	if err == nil && d.File(t.Number) != name {
		return nil, errDamaged
	}
	return t, err
}

// ErrInDoubt matches an error of Write after which the tombstone may or may not be found at the
// next start: it could be neither made durable nor removed.
var ErrInDoubt = errors.New("deletion may have taken effect despite the error")

// Write makes a tombstone durable. After an error that does not match [ErrInDoubt] the tombstone
// does not exist.
func (d Dir) Write(t *Tombstone) error {
	b, err := t.Append(nil)
	if err != nil {
		return err
	}
	if err := d.FS.MkdirAll(d.Path); err != nil {
		return fmt.Errorf("creating the deletions folder: %w", err)
	}
	err = vfs.WriteFileAtomic(d.FS, d.File(t.Number), b)
	if err == nil {
		return nil
	}
	if undo := cmp.Or(d.Remove(t.Number), d.FS.SyncDir(d.Path)); undo != nil {
		return fmt.Errorf("writing deletion file: %w; removing it failed too: %w; %w", err, undo, ErrInDoubt)
	}
	return fmt.Errorf("writing deletion file: %w", err)
}

// Remove removes a tombstone. The removal is not durable on return: after a power failure the
// tombstone may exist again.
func (d Dir) Remove(number uint64) error {
	if err := d.FS.Remove(d.File(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing deletion file: %w", err)
	}
	return nil
}
