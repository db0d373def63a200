package tombstone

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Suffixes of the two files of a tombstone. Either is enough.
const (
	suffix     = ".mark"
	copySuffix = ".copy"
)

// Dir is the folder that holds the tombstones of a store. The first Write creates it.
type Dir struct {
	FS   vfs.FS
	Path string
}

// Damaged is a tombstone with a file that cannot be decoded or is missing.
type Damaged struct {
	Number uint64 // from the file name
	Paths  []string
	Err    error
	// Restored reports that the other file of the tombstone is sound: nothing is lost.
	Restored bool
}

// File returns the path of the first file of the tombstone with the given number.
func (d Dir) File(number uint64) string { return d.name(number, suffix) }

func (d Dir) name(number uint64, suffix string) string {
	return path.Join(d.Path, fmt.Sprintf("%016x%s", number, suffix))
}

// Load reads all tombstones in the order of their numbers. It removes unfinished files, restores
// damaged files from their copies, and syncs the folder. Damaged files are returned separately. If
// a file has a later format version, the error matches [ErrNewer].
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
	for i := range damaged {
		d.restore(&damaged[i], tombstones)
	}
	if err := d.FS.SyncDir(d.Path); err != nil {
		return nil, nil, fmt.Errorf("syncing the deletions folder: %w", err)
	}
	return tombstones, damaged, nil
}

// restore rewrites the damaged file of a tombstone from the sound one. An error becomes part of
// the description of the damage: the next Load retries.
func (d Dir) restore(f *Damaged, tombstones []*Tombstone) {
	if !f.Restored {
		return
	}
	i := slices.IndexFunc(tombstones, func(t *Tombstone) bool { return t.Number == f.Number })
	b, err := tombstones[i].Append(nil)
	if err == nil {
		err = vfs.WriteFileAtomic(d.FS, f.Paths[0], b)
	}
	f.Err = errors.Join(f.Err, err)
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

// readAll reads the tombstones whose files are in a list of entries, which is sorted.
func (d Dir) readAll(entries []vfs.Entry) (tombstones []*Tombstone, damaged []Damaged, err error) {
	var p pair
	finish := func() {
		if p.sound != nil {
			tombstones = append(tombstones, p.sound)
		}
		if f, ok := p.damage(d); ok {
			damaged = append(damaged, f)
		}
	}
	for _, e := range entries {
		stem, ext := strings.TrimSuffix(e.Name, path.Ext(e.Name)), path.Ext(e.Name)
		if e.IsDir || ext != suffix && ext != copySuffix {
			continue
		}
		if stem != p.stem {
			finish()
			p = pair{stem: stem}
		}
		name := path.Join(d.Path, e.Name)
		t, err := d.read(name, e.Size)
		switch {
		case errors.Is(err, errDamaged):
			p.bad = append(p.bad, name)
		case err != nil:
			return nil, nil, fmt.Errorf("reading deletion file %s: %w", name, err)
		default:
			p.sound, p.first = t, p.first || ext == suffix
		}
	}
	finish()
	return tombstones, damaged, nil
}

// pair is what is known of the two files of a tombstone.
type pair struct {
	stem  string
	sound *Tombstone // from a file that can be decoded, nil if there is none
	first bool       // the first file is sound
	bad   []string   // files that cannot be decoded
}

// damage describes what is wrong. ok is false if nothing is. A missing copy is no damage: the
// deletion is durable without it.
func (p *pair) damage(d Dir) (f Damaged, ok bool) {
	number, _ := strconv.ParseUint(p.stem, 16, 64)
	f = Damaged{Number: number, Paths: p.bad, Err: errDamaged, Restored: p.sound != nil}
	if len(p.bad) == 0 && p.sound != nil && !p.first {
		f.Paths, f.Err = []string{d.File(number)}, errMissing
	}
	return f, len(f.Paths) > 0
}

var errMissing = errors.New("deletion file is missing")

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
	if err == nil && d.name(t.Number, path.Ext(name)) != name {
		return nil, errDamaged
	}
	return t, err
}

// ErrInDoubt matches an error of Write after which the tombstone may or may not be found at the
// next start: it could be neither made durable nor removed.
var ErrInDoubt = errors.New("deletion may have taken effect despite the error")

// Write makes a tombstone durable. It writes two files, so that damage to one of them does not make
// deleted spans visible again. After an error that does not match [ErrInDoubt] the tombstone
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
		vfs.WriteFileAtomic(d.FS, d.name(t.Number, copySuffix), b) // the deletion is durable without it
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
	for _, name := range []string{d.name(number, copySuffix), d.File(number)} {
		if err := d.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing deletion file: %w", err)
		}
	}
	return nil
}

// Move moves the files of a tombstone to another folder, durably. It creates the folder.
func (d Dir) Move(number uint64, to Dir) error {
	err := d.FS.MkdirAll(to.Path)
	for _, ext := range []string{suffix, copySuffix} {
		if err == nil {
			err = d.FS.Rename(d.name(number, ext), to.name(number, ext))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err = cmp.Or(err, d.FS.SyncDir(to.Path), d.FS.SyncDir(d.Path)); err != nil {
		return fmt.Errorf("moving deletion file to %s: %w", to.Path, err)
	}
	return nil
}

// MoveAll moves the files of all tombstones to another folder, durably.
func (d Dir) MoveAll(to Dir) error {
	entries, _, err := d.list()
	for _, e := range entries {
		if number, bad := strconv.ParseUint(strings.TrimSuffix(e.Name, path.Ext(e.Name)), 16, 64); err == nil && bad == nil {
			err = d.Move(number, to)
		}
	}
	return err
}
