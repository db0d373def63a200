package directory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Version is the layout version that this program writes, and the latest one that it reads.
const Version = 1

// Dir is an open folder. Methods other than Close may be called concurrently.
type Dir struct {
	fs   vfs.FS // fails while the lock is not in place
	disk vfs.FS
	path string
	lock vfs.Lock

	formatDamage *FormatDamage
	list         list
	filling      sync.RWMutex // held for reading by WithDay, and for writing while empty days are removed
}

const (
	lockFile      = "LOCK"
	reserveFile   = "reserve"
	logDir        = "log"
	segmentDir    = "seg"
	quarantineDir = "quarantine"
)

// Open creates the folder if it is missing, locks it, checks its version, and removes unfinished
// files of an earlier process. It fails if another process uses the folder, or if its version is
// newer.
func Open(fsys vfs.FS, name string) (*Dir, error) {
	d := &Dir{fs: fsys, disk: fsys, path: name}
	if err := fsys.MkdirAll(name); err != nil {
		return nil, fmt.Errorf("creating the span store folder: %w", err)
	}
	lock, err := fsys.Lock(d.in(lockFile))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, fmt.Errorf("span store %s is in use by another process; stop that process or configure another data_dir: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("locking the span store: %w", err)
	}
	d.lock, d.fs = lock, vfs.Locked(fsys, name, lock)
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func (d *Dir) in(elem ...string) string { return path.Join(append([]string{d.path}, elem...)...) }

// prepare checks the version before it changes anything.
func (d *Dir) prepare() error {
	if err := d.checkFormat(); err != nil {
		return err
	}
	for _, sub := range []string{logDir, segmentDir, quarantineDir} {
		if err := d.fs.MkdirAll(d.in(sub)); err != nil {
			return fmt.Errorf("creating the span store folders: %w", err)
		}
	}
	if err := d.removeUnfinished(); err != nil {
		return err
	}
	return d.loadList()
}

// removeUnfinished removes unfinished files and makes all file names durable.
func (d *Dir) removeUnfinished() error {
	dirs, err := d.days()
	if err != nil {
		return err
	}
	for i := range dirs {
		dirs[i] = path.Join(segmentDir, dirs[i])
	}
	for _, sub := range append(dirs, "", segmentDir, logDir) {
		entries, err := d.fs.ReadDir(d.in(sub))
		if err != nil {
			return fmt.Errorf("listing the files of the span store: %w", err)
		}
		for _, e := range entries {
			if e.IsDir || !strings.HasSuffix(e.Name, vfs.TempSuffix) {
				continue
			}
			if err := d.fs.Remove(d.in(sub, e.Name)); err != nil {
				return fmt.Errorf("removing unfinished file: %w", err)
			}
		}
		// A name that a killed process created but did not sync is visible now, but may be lost in
		// a power failure. It must be durable before the store relies on it, for example before it
		// removes the log of a segment.
		if err := d.fs.SyncDir(d.in(sub)); err != nil {
			return fmt.Errorf("syncing the span store folders: %w", err)
		}
	}
	return nil
}

// days lists the folders of segments. It returns none if another program deleted their parent
// folder.
func (d *Dir) days() ([]string, error) {
	entries, err := d.fs.ReadDir(d.in(segmentDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing segments: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir {
			out = append(out, e.Name)
		}
	}
	return out, nil
}

// Segments lists the segments by day and name.
func (d *Dir) Segments() ([]Segment, error) {
	days, err := d.days()
	if err != nil {
		return nil, err
	}
	var out []Segment
	for _, day := range days {
		entries, err := d.fs.ReadDir(d.in(segmentDir, day))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since its name was read
		}
		if err != nil {
			return nil, fmt.Errorf("listing segments: %w", err)
		}
		for _, e := range entries {
			if s, ok := parseSegment(day, e.Name); ok && !e.IsDir {
				s.Size = e.Size
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// Path returns the path of a segment. Write to it within [Dir.WithDay].
func (d *Dir) Path(s Segment) string { return d.in(segmentDir, s.String()) }

// WithDay creates the folder of a segment and calls write, which writes files there. Meanwhile, the
// folder is not removed even if it is empty.
func (d *Dir) WithDay(s Segment, write func() error) error {
	d.filling.RLock()
	defer d.filling.RUnlock()
	if err := d.fs.MkdirAll(d.in(segmentDir, s.Day)); err != nil {
		return fmt.Errorf("creating a folder for segments: %w", err)
	}
	return write()
}

// StagingPath returns the path for writing a segment that must not become visible when its file is
// complete. [Dir.Publish] renames it to its final path. [Dir.Discard] removes it, and so does the
// next start.
func (d *Dir) StagingPath(s Segment) string { return d.Path(s) + vfs.TempSuffix }

// Publish renames a staged segment to its final path and makes the name durable. After an error the
// file may have either name, and the caller has to remove both.
func (d *Dir) Publish(s Segment) error {
	err := d.fs.Rename(d.StagingPath(s), d.Path(s))
	if err == nil {
		err = d.fs.SyncDir(d.in(segmentDir, s.Day))
	}
	if err != nil {
		return fmt.Errorf("publishing segment %s: %w", s, err)
	}
	return nil
}

// Discard removes a staged segment, if it exists.
func (d *Dir) Discard(s Segment) error {
	if err := d.fs.Remove(d.StagingPath(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing unfinished segment %s: %w", s, err)
	}
	return nil
}

// Remove deletes a segment.
func (d *Dir) Remove(s Segment) error {
	if err := d.unlist(s.String()); err != nil {
		return err
	}
	if err := d.fs.Remove(d.Path(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting segment %s: %w", s, err)
	}
	err := d.fs.SyncDir(d.in(segmentDir, s.Day))
	if errors.Is(err, fs.ErrNotExist) { // an earlier attempt already removed the folder of the day
		err = d.fs.SyncDir(d.in(segmentDir))
	}
	if err != nil {
		return fmt.Errorf("deleting segment %s: %w", s, err)
	}
	return nil
}

// RemoveEmptyDays removes the folders of days without segments. It does nothing while [Dir.WithDay]
// runs.
func (d *Dir) RemoveEmptyDays() error {
	if !d.filling.TryLock() {
		return nil
	}
	defer d.filling.Unlock()
	days, err := d.days()
	if err != nil {
		return err
	}
	for _, day := range days {
		entries, err := d.fs.ReadDir(d.in(segmentDir, day))
		if err == nil && len(entries) == 0 {
			err = d.fs.Remove(d.in(segmentDir, day))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // something else may remove it
			return fmt.Errorf("removing an empty day folder: %w", err)
		}
	}
	return nil
}

// Log returns the folder of the log.
func (d *Dir) Log() string { return d.in(logDir) }

// Quarantine moves an unreadable file to the quarantine, where it is kept for manual recovery. It
// returns the new path, which has a number after the name if the quarantine has a file of that
// name.
func (d *Dir) Quarantine(name string) (string, error) {
	to, err := d.freeName(path.Base(name))
	if err == nil {
		err = d.unlist(strings.TrimPrefix(name, d.in(segmentDir)+"/"))
	}
	if err == nil {
		err = d.fs.Rename(name, to)
	}
	if err == nil {
		err = d.fs.SyncDir(d.in(quarantineDir))
	}
	if err != nil {
		return "", fmt.Errorf("moving %s to quarantine: %w", name, err)
	}
	return to, d.fs.SyncDir(path.Dir(name))
}

// freeName returns an unused path in the quarantine.
func (d *Dir) freeName(base string) (string, error) {
	entries, err := d.Quarantined()
	if err != nil {
		return "", err
	}
	name := base
	for n := 1; slices.ContainsFunc(entries, func(e vfs.Entry) bool { return e.Name == name }); n++ {
		name = fmt.Sprintf("%s.%d", base, n)
	}
	return d.in(quarantineDir, name), nil
}

// FS returns the file system through which all files in the folder are accessed. Its methods fail
// while InPlace does.
func (d *Dir) FS() vfs.FS { return d.fs }

// InPlace returns an error that wraps vfs.ErrMoved if the path no longer refers to the folder that
// was opened.
func (d *Dir) InPlace() error {
	err := d.lock.InPlace()
	if errors.Is(err, vfs.ErrMoved) && !d.has(lockFile) && d.has(formatFile) {
		return fmt.Errorf("%s was deleted (%w), so another process could use the folder; restart the process", d.in(lockFile), err)
	}
	if errors.Is(err, vfs.ErrMoved) {
		return fmt.Errorf("%s is not the folder that this process opened (%w); "+
			"move the folder back, or restart the process to open the current folder", d.path, err)
	}
	return err
}

// has reports whether a file with this name exists at the path of the folder, even if another
// folder has taken its place.
func (d *Dir) has(name string) bool {
	f, err := d.disk.Open(d.in(name))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	f.Close() // opened for reading: the error of Close is irrelevant
	return true
}

// Free returns the number of bytes that can still be written to the disk.
func (d *Dir) Free() (int64, error) { return d.fs.Free(d.path) }

// Close releases the lock of the folder.
func (d *Dir) Close() error { return d.lock.Close() }

// QuarantineDir returns the folder for unreadable files.
func (d *Dir) QuarantineDir() string { return d.in(quarantineDir) }

// damageSuffix is the suffix of files in the quarantine that describe the damage of a log, or a
// missing segment.
const damageSuffix = ".damage.txt"

// MarkDamaged records durably that a log is damaged, with a description.
func (d *Dir) MarkDamaged(epoch uint64, text string) error {
	return d.mark(fmt.Sprintf("%016x", epoch), text)
}

// MarkMissing records durably that the file of a segment is missing, with a description.
func (d *Dir) MarkMissing(s Segment, text string) error { return d.mark(path.Base(s.String()), text) }

func (d *Dir) mark(file, text string) error {
	if err := vfs.WriteFileAtomic(d.fs, d.in(quarantineDir, file+damageSuffix), []byte(text)); err != nil {
		return fmt.Errorf("recording damage to %s: %w", file, err)
	}
	return nil
}

// Lost returns the last epoch of the log or segment whose lost spans are described in a quarantine
// note with the given file name. It returns false for other files, and for notes that no spans are
// lost.
func (d *Dir) Lost(name string) (epoch uint64, ok bool) {
	s, ok := ParseNote(name)
	if _, segment := ParseQuarantined(strings.TrimSuffix(name, damageSuffix)); segment || !ok {
		return s.Last, ok
	}
	epoch = s.Last
	f, err := d.fs.Open(d.in(quarantineDir, name))
	if err != nil {
		return epoch, !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close() // opened for reading: the error of Close is irrelevant
	nothing := fmt.Appendf(nil, "log %016x: 0 acknowledged spans are lost", epoch)
	head := make([]byte, len(nothing))
	_, err = f.ReadAt(head, 0)
	return epoch, err != nil || !bytes.Equal(head, nothing)
}

// IsMarkedDamaged reports whether a log was marked as damaged. It also returns true if it cannot
// tell, so that the files of the log are kept.
func (d *Dir) IsMarkedDamaged(epoch uint64) bool {
	f, err := d.fs.Open(d.in(quarantineDir, fmt.Sprintf("%016x%s", epoch, damageSuffix)))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	f.Close() // opened for reading: the error of Close is irrelevant
	return true
}
