package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// unlocked is the lock of a folder that was not locked.
type unlocked struct{}

func (unlocked) Close() error { return nil }

// Look returns the folder of a store for tools that read it, perhaps while a program uses it. It takes no lock and changes nothing: what is
// listed may be gone when it is opened. It fails with fs.ErrNotExist where there is no store, and as Open does for newer versions.
func Look(fsys vfs.FS, name string) (*Dir, error) {
	d := &Dir{fs: fsys, path: name, lock: unlocked{}}
	f, err := fsys.Open(d.in(formatFile))
	if err != nil {
		return nil, fmt.Errorf("looking for a span store in %s: %w", name, err)
	}
	return d, errors.Join(f.Close(), d.checkFormat())
}

// ReserveSize returns the length of the reserve; 0 where there is none.
func (d *Dir) ReserveSize() (int64, error) {
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return 0, fmt.Errorf("listing the span store: %w", err)
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

// Parse reads the name of a segment within the folder of segments, as String writes it.
func Parse(name string) (Segment, bool) {
	return parseSegment(path.Dir(name), path.Base(name))
}

// Restore moves a file of the quarantine back to where the segment of that name belongs. Both names are durable.
func (d *Dir) Restore(s Segment) error {
	if err := d.MakeDay(s); err != nil {
		return err
	}
	from, to := d.in(quarantineDir, path.Base(s.String())), d.Path(s)
	err := d.fs.Rename(from, to)
	if err == nil {
		err = d.fs.SyncDir(path.Dir(to))
	}
	if err == nil {
		err = d.fs.SyncDir(path.Dir(from))
	}
	if err != nil {
		return fmt.Errorf("moving %s out of the quarantine: %w", from, err)
	}
	return nil
}
