// Package vfs is the file system interface for every component that keeps data.
//
//	span store     log      sending queue
//	     |          |             |
//	     +----------+-------------+
//	                |
//	             vfs.FS  ................  vfstest.Inject: fails chosen operations, counts all
//	                |
//	       +--------+---------+
//	       |                  |
//	   vfs.OS()          vfstest.Mem
//	   the machine       memory; forgets at a crash what was not synced
//
// The contract includes what a power failure may lose:
//
//   - Bytes and size of a file are durable once File.Sync has returned nil. Before that, any subset
//     of the written sectors may be on the disk, in any order, with the old or the new size.
//   - The name of a file (its creation, rename or removal) is durable once FS.SyncDir of its
//     directory has returned nil, whether or not the file itself was synced.
//   - After a failed Sync the state of the unsynced bytes stays unknown: a later Sync of the same
//     file may return nil although they are lost. After a failed Sync, rewrite the bytes to
//     another file.
//
// A crash of the process loses nothing that was written.
package vfs

import (
	"errors"
	"io"
)

// ErrLocked is wrapped by FS.Lock when this or another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// ErrMoved is wrapped by the method InPlace of files and locks.
var ErrMoved = errors.New("moved, deleted or replaced by another process")

// FS is a file system. Names are full paths with slashes on every operating system. Errors name the
// operation and the file and wrap the errors of package io/fs (fs.ErrNotExist, fs.ErrExist) where
// these apply. All methods may be called concurrently.
type FS interface {
	// Create creates an empty file and opens it for reading and writing. It fails with fs.ErrExist
	// if the name exists.
	Create(name string) (File, error)
	// Open opens an existing file for reading; writes to the returned File fail.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	// Rename gives a file a new name and replaces the file that had it. Within one directory this
	// is atomic, also across a power failure. After a power failure during a move between
	// directories, the file may have both names; sync the new directory, then the old one.
	Rename(oldName, newName string) error
	// Remove deletes a file or an empty directory. Open handles of the file stay usable on Linux
	// and macOS; on Windows, Remove fails while there are any, so close them first.
	Remove(name string) error
	// MkdirAll creates a directory and its missing parents, and makes their names durable. An
	// existing directory is not an error.
	MkdirAll(dir string) error
	// Mkdir is like MkdirAll, but fails with fs.ErrNotExist if the parent does not exist.
	Mkdir(dir string) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(dir string) ([]Entry, error)
	// SyncDir makes all earlier creations, renames and removals in a directory durable (its own
	// entries, not those of subdirectories).
	SyncDir(dir string) error
	// Lock acquires an exclusive lock on a file without waiting: if it is held, the error wraps
	// ErrLocked. The file is created if missing and stays when the lock is released, by Close of
	// the result or by the end of the process.
	Lock(name string) (Lock, error)
	// Free returns how many bytes a user without privileges may still write to the volume that
	// holds dir.
	Free(dir string) (int64, error)
}

// Lock is a held lock. Both methods may be called concurrently.
type Lock interface {
	// InPlace is like File.InPlace for the locked file. While it returns nil, no other process can
	// hold a lock with the same name.
	InPlace() error
	// Close releases the lock.
	Close() error
}

// File is an open file. All methods but Close may be called concurrently.
type File interface {
	// ReadAt follows io.ReaderAt: a short read returns an error, io.EOF at the end of the file.
	io.ReaderAt
	// WriteAt writes at any offset and extends the file as needed; gaps read as zeros. When the
	// disk is full, it writes what fits and returns that number and an error for which NoSpace is
	// true.
	io.WriterAt
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate sets the length in bytes. Growth reads as zeroes and reserves no space.
	Truncate(size int64) error
	// Sync makes the bytes and the size durable; see the package comment for a failed Sync.
	Sync() error
	// InPlace returns an error that wraps ErrMoved if the name that the file was opened with no
	// longer refers to it, because the file or a directory above it was renamed, removed or
	// replaced. It returns nil if the file is in place or if that cannot be determined.
	InPlace() error
	// Close releases the handle. It makes nothing durable.
	Close() error
	// Name returns the name that the file was opened with.
	Name() string
}

// Entry is one name in a directory.
type Entry struct {
	Name  string // last element of the path
	Size  int64  // length in bytes; 0 for a directory
	IsDir bool
}
