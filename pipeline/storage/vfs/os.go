package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// Files hold traces, which are private: only the owner may read them.
const (
	filePerm = 0o600
	dirPerm  = 0o750
)

// OS returns the file system of the machine.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

func (osFS) OpenWrite(name string) (File, error) { return openOS(name, os.O_RDWR) }

func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) ReadDir(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(found))
	for _, e := range found {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the names were read
		}
		if err != nil {
			return nil, err
		}
		entry := Entry{Name: e.Name(), IsDir: e.IsDir()}
		if !entry.IsDir {
			entry.Size = info.Size()
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// MkdirAll syncs the parent even if dir exists: an earlier process may have died between creating
// dir and making it durable.
func (f osFS) MkdirAll(dir string) error {
	err := f.Mkdir(dir)
	if parent := path.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := f.MkdirAll(parent); err != nil {
			return err
		}
		err = f.Mkdir(dir)
	}
	return err
}

func (f osFS) Mkdir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: dir, Err: errNotDir}
	case err == nil:
		err = f.SyncDir(path.Dir(dir))
		if errors.Is(err, fs.ErrPermission) {
			return nil // without permission to read the parent, this process did not create dir
		}
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.Mkdir(dir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.SyncDir(path.Dir(dir))
}

func (osFS) SyncDir(dir string) error { return syncDir(dir) }

func (osFS) Lock(name string) (Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close() // err has the reason
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return osFile{f}, nil // closing the file releases the lock
}

func (osFS) Free(dir string) (int64, error) {
	free, err := freeBytes(dir)
	if err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return free, nil
}

// osFile adds the methods of File that os.File lacks.
type osFile struct{ *os.File }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, filePerm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Sync() error { return syncFile(f.File) }

func (f osFile) InPlace() error {
	open, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) || err == nil && !os.SameFile(open, named) {
		return &fs.PathError{Op: "stat", Path: f.Name(), Err: ErrMoved}
	}
	return nil
}
