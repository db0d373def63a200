package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// unlocked is the lock of a folder that was opened read-only.
type unlocked struct{}

func (unlocked) InPlace() error { return nil }

func (unlocked) Close() error { return nil }

// OpenReadOnly opens the folder of a store for tools that only read it, possibly while a process
// uses it. It takes no lock and changes nothing. Listed files may no longer exist when they are
// opened. The error matches fs.ErrNotExist if there is no store; newer versions fail as in [Open].
func OpenReadOnly(fsys vfs.FS, name string) (*Dir, error) {
	d := &Dir{fs: fsys, path: name, lock: unlocked{}}
	damage, err := d.readFormat()
	if err != nil {
		return nil, fmt.Errorf("opening span store %s: %w", name, err)
	}
	if damage != nil {
		d.formatDamage = &FormatDamage{File: d.in(formatFile), Err: damage}
	}
	return d, nil
}

// ReserveSize returns the size of the reserve in bytes, 0 if there is none.
func (d *Dir) ReserveSize() (int64, error) {
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return 0, fmt.Errorf("listing the files of the span store: %w", err)
	}
	for _, e := range entries {
		if e.Name == reserveFile {
			return e.Size, nil
		}
	}
	return 0, nil
}

// Quarantined lists the files in the quarantine.
func (d *Dir) Quarantined() ([]vfs.Entry, error) {
	entries, err := d.fs.ReadDir(d.QuarantineDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the quarantine: %w", err)
	}
	return entries, nil
}

// ParseSegment parses the name of a segment within the folder of segments, as String returns it.
func ParseSegment(name string) (Segment, bool) {
	return parseSegment(path.Dir(name), path.Base(name))
}

// ParseQuarantined parses the name of a segment in the quarantine. It does not contain the day.
func ParseQuarantined(name string) (Segment, bool) {
	const anyDay = "20000101"
	s, ok := parseSegment(anyDay, name)
	s.Day = ""
	return s, ok
}

// ParseNote returns the segment, without its day, that a note in the quarantine is about. For a
// note about a log, it is the segment that a flush of the log would write.
func ParseNote(name string) (Segment, bool) {
	stem, ok := strings.CutSuffix(name, damageSuffix)
	if !ok {
		return Segment{}, false
	}
	if s, ok := ParseQuarantined(stem); ok {
		return s, true
	}
	epoch, err := strconv.ParseUint(stem, 16, 64)
	return Segment{First: epoch, Last: epoch}, err == nil
}

// Restore moves the file of a segment from the quarantine back to its folder, durably.
func (d *Dir) Restore(s Segment) error {
	from, to := d.in(quarantineDir, path.Base(s.String())), d.Path(s)
	err := d.WithDay(s, func() error { return d.fs.Rename(from, to) })
	if err == nil {
		err = d.fs.SyncDir(path.Dir(to))
	}
	if err == nil {
		err = d.fs.SyncDir(path.Dir(from))
	}
	if err != nil {
		return fmt.Errorf("moving %s out of quarantine: %w", from, err)
	}
	return nil
}
