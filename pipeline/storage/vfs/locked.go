package vfs

import (
	"cmp"
	"path"
)

// Locked returns the files of a directory that its owner has locked, through fsys. While the lock
// file is not in place, all methods fail with an error that wraps ErrMoved: the name of the
// directory then refers to nothing, or to files of another process. The directory itself and its
// parents are never created. Files opened for writing are in place only while the lock is.
func Locked(fsys FS, dir string, lock Lock) FS { return &locked{fsys, path.Clean(dir), lock} }

type locked struct {
	fs   FS
	dir  string
	lock Lock
}

// lockedFile is a file that is opened for writing.
type lockedFile struct {
	File
	lock Lock
}

func (f lockedFile) InPlace() error { return cmp.Or(f.File.InPlace(), f.lock.InPlace()) }

func (l *locked) open(name string, open func(string) (File, error)) (File, error) {
	if err := l.lock.InPlace(); err != nil {
		return nil, err
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return lockedFile{f, l.lock}, nil
}

func (l *locked) Create(name string) (File, error) { return l.open(name, l.fs.Create) }

func (l *locked) OpenWrite(name string) (File, error) { return l.open(name, l.fs.OpenWrite) }

func (l *locked) Open(name string) (File, error) {
	if err := l.lock.InPlace(); err != nil {
		return nil, err
	}
	return l.fs.Open(name)
}

func (l *locked) Rename(oldName, newName string) error {
	if err := l.lock.InPlace(); err != nil {
		return err
	}
	return l.fs.Rename(oldName, newName)
}

func (l *locked) Remove(name string) error {
	if err := l.lock.InPlace(); err != nil {
		return err
	}
	return l.fs.Remove(name)
}

func (l *locked) MkdirAll(dir string) error {
	if dir = path.Clean(dir); dir == l.dir || dir == path.Dir(dir) {
		return l.lock.InPlace()
	}
	if err := l.MkdirAll(path.Dir(dir)); err != nil {
		return err
	}
	return l.fs.Mkdir(dir)
}

func (l *locked) Mkdir(dir string) error {
	if err := l.lock.InPlace(); err != nil {
		return err
	}
	return l.fs.Mkdir(dir)
}

func (l *locked) ReadDir(dir string) ([]Entry, error) {
	if err := l.lock.InPlace(); err != nil {
		return nil, err
	}
	return l.fs.ReadDir(dir)
}

func (l *locked) SyncDir(dir string) error {
	if err := l.lock.InPlace(); err != nil {
		return err
	}
	return l.fs.SyncDir(dir)
}

func (l *locked) Lock(name string) (Lock, error) {
	if err := l.lock.InPlace(); err != nil {
		return nil, err
	}
	return l.fs.Lock(name)
}

func (l *locked) Free(dir string) (int64, error) {
	if err := l.lock.InPlace(); err != nil {
		return 0, err
	}
	return l.fs.Free(dir)
}
