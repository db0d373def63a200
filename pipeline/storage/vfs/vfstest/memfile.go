package vfstest

import (
	"io"
	"io/fs"
	"syscall"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// memFile is an open file of a Mem.
type memFile struct {
	fs     *Mem
	node   *node
	name   string
	write  bool
	closed bool // guarded by fs.mu
}

func (f *memFile) Name() string { return f.name }

// do runs one operation on the file under the lock of the file system.
func (f *memFile) do(op string, change func(c *content) error) error {
	return f.fs.do(op, f.name, func() error {
		if f.closed {
			return fs.ErrClosed
		}
		return change(&f.node.file)
	})
}

// doWrite is like do, for operations that fail on a file opened for reading.
func (f *memFile) doWrite(op string, change func(c *content) error) error {
	return f.do(op, func(c *content) error {
		if !f.write {
			return syscall.EBADF
		}
		return change(c)
	})
}

func (f *memFile) ReadAt(p []byte, off int64) (n int, err error) {
	atEnd := false
	err = f.do("read", func(c *content) error {
		if off < 0 {
			return fs.ErrInvalid
		}
		if len(p) > 0 {
			var end error
			n, end = c.live.readAt(p, off)
			atEnd = end != nil
		}
		return nil
	})
	if err == nil && atEnd {
		return n, io.EOF // bare, as readers expect it
	}
	return n, err
}

func (f *memFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.doWrite("write", func(c *content) error {
		if off < 0 {
			return fs.ErrInvalid
		}
		before := int64(len(c.live.data))
		// Overwriting needs no capacity.
		n = int(min(int64(len(p)), max(0, before+max(0, f.fs.quota-f.fs.used)-off)))
		c.write(p[:n], off)
		f.fs.used += int64(len(c.live.data)) - before
		if n < len(p) {
			return ErrNoSpace
		}
		return nil
	})
	return n, err
}

func (f *memFile) Size() (size int64, err error) {
	err = f.do("stat", func(c *content) error {
		size = c.live.size
		return nil
	})
	return size, err
}

func (f *memFile) Truncate(size int64) error {
	return f.doWrite("truncate", func(c *content) error {
		if size < 0 {
			return fs.ErrInvalid
		}
		before := int64(len(c.live.data))
		c.truncate(size)
		f.fs.used += int64(len(c.live.data)) - before
		return nil
	})
}

func (f *memFile) Sync() error {
	return f.do("sync", func(c *content) error {
		c.sync()
		return nil
	})
}

// failSync makes the unsynced bytes doubtful, for an Injector that fails Sync.
func (f *memFile) failSync() {
	// A crashed file system has nothing left to lose.
	_ = f.do("sync", func(c *content) error {
		c.failSync()
		return nil
	})
}

func (f *memFile) InPlace() error {
	return f.do("stat", func(*content) error {
		if n, err := f.fs.find(f.name); err != nil || n != f.node {
			return vfs.ErrMoved
		}
		return nil
	})
}

func (f *memFile) Close() error {
	return f.do("close", func(*content) error {
		f.shut()
		return nil
	})
}

func (f *memFile) shut() {
	f.closed = true
	f.node.handles--
	f.fs.handles--
	f.fs.release(f.node)
}

// memLock is a held lock: an open file, and an entry in the locks of the Mem.
type memLock struct{ file *memFile }

func (l *memLock) InPlace() error { return l.file.InPlace() }

func (l *memLock) Close() error {
	return l.file.do("unlock", func(*content) error {
		delete(l.file.fs.locks, l.file.node)
		l.file.shut()
		return nil
	})
}
