package directory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Version is the version of the layout that this program writes, and the newest that it reads.
const Version = 1

// Dir is an open folder. Only one process has it open. Methods other than Close may be called concurrently.
type Dir struct {
	fs   vfs.FS
	path string
	lock io.Closer
}

const (
	formatFile    = "FORMAT"
	formatLine    = "tracing span store, version %d\n"
	lockFile      = "LOCK"
	reserveFile   = "reserve"
	logDir        = "log"
	segmentDir    = "seg"
	quarantineDir = "quarantine"
	maxFormatFile = 1 << 10
)

// Open makes the folder if it is missing, locks it, checks its version and removes what an earlier process left unfinished. It fails when
// another process uses the folder, or when a newer program wrote it.
func Open(fsys vfs.FS, name string) (*Dir, error) {
	d := &Dir{fs: fsys, path: name}
	if err := fsys.MkdirAll(name); err != nil {
		return nil, fmt.Errorf("making the folder of the span store: %w", err)
	}
	lock, err := fsys.Lock(d.in(lockFile))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, fmt.Errorf("the span store in %s is in use by another process; stop that, or give this one a data_dir of its own: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("locking the span store: %w", err)
	}
	d.lock = lock
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
			return fmt.Errorf("making the folders of the span store: %w", err)
		}
	}
	return d.settle()
}

func (d *Dir) checkFormat() error {
	b, err := vfs.ReadFile(d.fs, d.in(formatFile), maxFormatFile)
	if errors.Is(err, fs.ErrNotExist) {
		return vfs.WriteFileAtomic(d.fs, d.in(formatFile), fmt.Appendf(nil, formatLine, Version))
	}
	if err != nil {
		return fmt.Errorf("reading the version of the span store: %w", err)
	}
	var v int
	if _, err := fmt.Sscanf(string(b), formatLine, &v); err != nil || v < 1 {
		return fmt.Errorf("%s does not say which version of a span store this is: is %s the right folder?", d.in(formatFile), d.path)
	}
	if v > Version {
		return fmt.Errorf("the span store in %s has version %d, and this program reads up to version %d: run the newer program, or give this one another data_dir",
			d.path, v, Version)
	}
	return nil
}

// settle removes unfinished files and makes all names durable.
func (d *Dir) settle() error {
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
			return fmt.Errorf("listing the span store: %w", err)
		}
		for _, e := range entries {
			if e.IsDir || !strings.HasSuffix(e.Name, vfs.TempSuffix) {
				continue
			}
			if err := d.fs.Remove(d.in(sub, e.Name)); err != nil {
				return fmt.Errorf("removing an unfinished file: %w", err)
			}
		}
		// A name that the killed process made and did not sync is seen now, and must not be relied on before it is durable: the log of
		// a segment would go, and a power cut then take the segment.
		if err := d.fs.SyncDir(d.in(sub)); err != nil {
			return fmt.Errorf("syncing the folders of the span store: %w", err)
		}
	}
	return nil
}

// days lists the folders of segments.
func (d *Dir) days() ([]string, error) {
	entries, err := d.fs.ReadDir(d.in(segmentDir))
	if err != nil {
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

// Path returns the path of a segment. Make its folder with [Dir.MakeDay] before it is written.
func (d *Dir) Path(s Segment) string { return d.in(segmentDir, s.String()) }

// MakeDay makes the folder that a segment belongs in.
func (d *Dir) MakeDay(s Segment) error {
	if err := d.fs.MkdirAll(d.in(segmentDir, s.Day)); err != nil {
		return fmt.Errorf("making a folder for segments: %w", err)
	}
	return nil
}

// Stage returns the path at which a segment is written that shall not be there yet when its file is complete. [Dir.Publish] gives it its
// name, [Dir.Discard] removes it, and so does the next start.
func (d *Dir) Stage(s Segment) string { return d.Path(s) + vfs.TempSuffix }

// Publish gives a staged segment its name, for good. After an error the file may have either name: remove both.
func (d *Dir) Publish(s Segment) error {
	err := d.fs.Rename(d.Stage(s), d.Path(s))
	if err == nil {
		err = d.fs.SyncDir(d.in(segmentDir, s.Day))
	}
	if err != nil {
		return fmt.Errorf("giving the segment %s its name: %w", s, err)
	}
	return nil
}

// Discard removes a staged segment, if there is one.
func (d *Dir) Discard(s Segment) error {
	if err := d.fs.Remove(d.Stage(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an unfinished segment: %w", err)
	}
	return nil
}

// Remove deletes a segment.
func (d *Dir) Remove(s Segment) error {
	if err := d.fs.Remove(d.Path(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting a segment: %w", err)
	}
	err := d.fs.SyncDir(d.in(segmentDir, s.Day))
	if errors.Is(err, fs.ErrNotExist) { // it was the last one of its day, and an attempt before got this far
		err = d.fs.SyncDir(d.in(segmentDir))
	}
	if err != nil {
		return fmt.Errorf("deleting a segment: %w", err)
	}
	return nil
}

// RemoveEmptyDays deletes the folders of days whose segments are gone. It must not run between MakeDay and the first write to the folder.
func (d *Dir) RemoveEmptyDays() error {
	days, err := d.days()
	if err != nil {
		return err
	}
	for _, day := range days {
		entries, err := d.fs.ReadDir(d.in(segmentDir, day))
		if err == nil && len(entries) == 0 {
			err = d.fs.Remove(d.in(segmentDir, day))
		}
		if err != nil {
			return fmt.Errorf("deleting the folder of a day: %w", err)
		}
	}
	return nil
}

// Log returns the folder of the log.
func (d *Dir) Log() string { return d.in(logDir) }

// Quarantine moves a file that cannot be read to where it is in nobody's way, for whoever wants to save what is in it. It returns the new
// path.
func (d *Dir) Quarantine(name string) (string, error) {
	to := d.in(quarantineDir, path.Base(name))
	if err := d.fs.Rename(name, to); err != nil {
		return "", fmt.Errorf("moving %s to the quarantine: %w", name, err)
	}
	if err := d.fs.SyncDir(d.in(quarantineDir)); err != nil {
		return "", fmt.Errorf("moving %s to the quarantine: %w", name, err)
	}
	return to, d.fs.SyncDir(path.Dir(name))
}

// Free returns how many bytes may still be written to the disk.
func (d *Dir) Free() (int64, error) { return d.fs.Free(d.path) }

// Close gives the folder free for other processes.
func (d *Dir) Close() error { return d.lock.Close() }

// QuarantineDir returns the folder for files that cannot be read.
func (d *Dir) QuarantineDir() string { return d.in(quarantineDir) }

// markSuffix ends the name of a file in the quarantine that says what is wrong with a log.
const markSuffix = ".damage.txt"

// Mark notes, durably, that a log is damaged, and how.
func (d *Dir) Mark(epoch uint64, text string) error {
	name := d.in(quarantineDir, fmt.Sprintf("%016x%s", epoch, markSuffix))
	if err := vfs.WriteFileAtomic(d.fs, name, []byte(text)); err != nil {
		return fmt.Errorf("noting the damage of a log: %w", err)
	}
	return nil
}

// Marked reports whether a log was marked, or may have been: where that cannot be found out, its files are better kept.
func (d *Dir) Marked(epoch uint64) bool {
	f, err := d.fs.Open(d.in(quarantineDir, fmt.Sprintf("%016x%s", epoch, markSuffix)))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	f.Close() // opened for reading: Close has nothing to report
	return true
}
