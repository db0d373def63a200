package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// ErrTooLarge is wrapped by ReadFile when the file exceeds the caller's limit.
var ErrTooLarge = errors.New("file too large")

// TempSuffix is the suffix of files that WriteFileAtomic has not completed. Such files found at
// start can be removed.
const TempSuffix = ".tmp"

// WriteFileAtomic makes name hold data, durably. After an error or a crash at any time, name holds
// its old or its new content, or is missing if it was missing before. There must be one writer per
// name at a time.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	tmp := name + TempSuffix
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", name, err)
	}
	err := writeSynced(fsys, tmp, data)
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		fsys.Remove(tmp) // free the space; the next write retries
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// RemoveDurably removes a file, which may be missing. It also makes an earlier removal durable.
func RemoveDurably(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

func writeSynced(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ReadFile returns the content of a file of at most limit bytes.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close() // opened for reading: Close has nothing to report
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if size > limit {
		return nil, fmt.Errorf("read %s: %w: %d bytes, limit %d", name, ErrTooLarge, size, limit)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), data); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// NoSpace reports whether err means that the volume, or the user's quota, is full: a temporary
// condition.
func NoSpace(err error) bool { return isNoSpace(err) }
