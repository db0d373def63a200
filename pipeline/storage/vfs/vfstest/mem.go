package vfstest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// ErrCrashed is wrapped by every error of a Mem, its files and its locks after Crash or Kill.
var ErrCrashed = errors.New("file system is gone after a simulated crash")

// Errors for rules and comparisons: a full disk (vfs.NoSpace is true for it) and a broken one.
const (
	ErrNoSpace = syscall.ENOSPC
	ErrIO      = syscall.EIO
)

// unlimited is the quota of a new Mem, in bytes.
const unlimited = 1 << 40

// Mem is a file system in memory that can lose power. The zero Mem is not usable: call NewMem.
type Mem struct {
	mu      sync.Mutex
	root    *node
	dead    bool
	seq     uint64 // last change of a name
	locks   map[*node]bool
	quota   int64
	used    int64
	handles int
}

var _ vfs.FS = (*Mem)(nil)

// NewMem returns an empty file system: it has the root directory and nothing else.
func NewMem() *Mem { return &Mem{root: newDir(), locks: map[*node]bool{}, quota: unlimited} }

// SetQuota limits the bytes written to all files together; a gap before written bytes counts,
// growth by Truncate does not. A write that exceeds the quota is cut at it and fails with
// ErrNoSpace.
func (m *Mem) SetQuota(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quota = bytes
}

// Handles returns the number of open files and held locks, to find leaks.
func (m *Mem) Handles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.handles
}

// do runs one operation on a name under the lock.
func (m *Mem) do(op, name string, f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := error(ErrCrashed)
	if !m.dead {
		err = f()
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// find returns the node of a name.
func (m *Mem) find(name string) (*node, error) {
	n := m.root
	for part := range strings.SplitSeq(path.Clean(name), "/") {
		if part == "" || part == "." {
			continue
		}
		if n.dir == nil {
			return nil, syscall.ENOTDIR
		}
		if n = n.dir.live[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

func (m *Mem) findDir(name string) (*directory, error) {
	n, err := m.find(name)
	if err != nil {
		return nil, err
	}
	if n.dir == nil {
		return nil, syscall.ENOTDIR
	}
	return n.dir, nil
}

// parent returns the directory of a name, and the name's last element.
func (m *Mem) parent(name string) (*directory, string, error) {
	dir, base := path.Split(path.Clean(name))
	if base == "" || base == "." || base == ".." {
		return nil, "", fs.ErrInvalid
	}
	d, err := m.findDir(dir)
	return d, base, err
}

func (m *Mem) findFile(name string) (*node, error) {
	n, err := m.find(name)
	if err == nil && n.dir != nil {
		return nil, syscall.EISDIR
	}
	return n, err
}

// Create implements vfs.FS.
func (m *Mem) Create(name string) (file vfs.File, err error) {
	err = m.do("open", name, func() error {
		d, base, err := m.parent(name)
		if err != nil {
			return err
		}
		if d.live[base] != nil {
			return fs.ErrExist
		}
		file = m.open(m.create(d, base), name, true)
		return nil
	})
	return file, err
}

func (m *Mem) create(d *directory, base string) *node {
	n := &node{}
	d.change(nameChange{seq: m.next(), made: base, node: n})
	return n
}

func (m *Mem) next() uint64 {
	m.seq++
	return m.seq
}

// Open implements vfs.FS.
func (m *Mem) Open(name string) (vfs.File, error) { return m.openExisting(name, false) }

// OpenWrite implements vfs.FS.
func (m *Mem) OpenWrite(name string) (vfs.File, error) { return m.openExisting(name, true) }

func (m *Mem) openExisting(name string, write bool) (file vfs.File, err error) {
	err = m.do("open", name, func() error {
		n, err := m.findFile(name)
		if err == nil {
			file = m.open(n, name, write)
		}
		return err
	})
	return file, err
}

func (m *Mem) open(n *node, name string, write bool) *memFile {
	n.handles++
	m.handles++
	return &memFile{fs: m, node: n, name: name, write: write}
}

// Remove implements vfs.FS.
func (m *Mem) Remove(name string) error {
	return m.do("remove", name, func() error {
		d, base, err := m.parent(name)
		if err != nil {
			return err
		}
		n := d.live[base]
		switch {
		case n == nil:
			return fs.ErrNotExist
		case n.dir != nil && len(n.dir.live) > 0:
			return syscall.ENOTEMPTY
		}
		d.change(nameChange{seq: m.next(), gone: base})
		m.release(n)
		return nil
	})
}

// release frees the space of a file that has no name and no handle. The bytes stay: a power failure
// may undo the removal.
func (m *Mem) release(n *node) {
	if n.names == 0 && n.handles == 0 {
		m.used -= int64(len(n.file.live.data))
	}
}

// Rename implements vfs.FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := error(ErrCrashed)
	if !m.dead {
		err = m.rename(path.Clean(oldName), path.Clean(newName))
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
	}
	return nil
}

func (m *Mem) rename(oldName, newName string) error {
	from, oldBase, err := m.parent(oldName)
	if err != nil {
		return err
	}
	to, newBase, err := m.parent(newName)
	if err != nil {
		return err
	}
	n, replaced := from.live[oldBase], to.live[newBase]
	switch {
	case n == nil:
		return fs.ErrNotExist
	case n == replaced:
		return nil
	case replaced != nil && (replaced.dir != nil || n.dir != nil):
		return fs.ErrExist
	case n.dir != nil && strings.HasPrefix(newName, oldName+"/"):
		return fs.ErrInvalid
	}
	if from == to {
		to.change(nameChange{seq: m.next(), gone: oldBase, made: newBase, node: n})
	} else {
		link := m.next()
		to.change(nameChange{seq: link, made: newBase, node: n})
		from.change(nameChange{seq: m.next(), gone: oldBase, after: link})
	}
	if replaced != nil {
		m.release(replaced)
	}
	return nil
}

// MkdirAll implements vfs.FS. Like the real system it syncs the parent, and the parents of what it
// creates.
func (m *Mem) MkdirAll(dir string) error {
	return m.do("mkdir", dir, func() error {
		parent, n := m.root, m.root
		for part := range strings.SplitSeq(path.Clean(dir), "/") {
			if part == "" || part == "." {
				continue
			}
			parent, n = n, n.dir.live[part]
			if n == nil {
				n = newDir()
				parent.dir.change(nameChange{seq: m.next(), made: part, node: n})
				parent.dir.sync()
			}
			if n.dir == nil {
				return syscall.ENOTDIR
			}
		}
		parent.dir.sync()
		return nil
	})
}

// Mkdir implements vfs.FS.
func (m *Mem) Mkdir(dir string) error {
	err := m.do("mkdir", dir, func() error {
		_, err := m.findDir(path.Dir(path.Clean(dir)))
		return err
	})
	if err != nil {
		return err
	}
	return m.MkdirAll(dir)
}

// ReadDir implements vfs.FS.
func (m *Mem) ReadDir(dir string) (entries []vfs.Entry, err error) {
	err = m.do("open", dir, func() error {
		d, err := m.findDir(dir)
		if err != nil {
			return err
		}
		entries = make([]vfs.Entry, 0, len(d.live))
		for _, name := range slices.Sorted(maps.Keys(d.live)) {
			n := d.live[name]
			entries = append(entries, vfs.Entry{Name: name, Size: n.file.live.size, IsDir: n.dir != nil})
		}
		return nil
	})
	return entries, err
}

// SyncDir implements vfs.FS.
func (m *Mem) SyncDir(dir string) error {
	return m.do("sync", dir, func() error {
		d, err := m.findDir(dir)
		if err == nil {
			d.sync()
		}
		return err
	})
}

// Lock implements vfs.FS.
func (m *Mem) Lock(name string) (lock vfs.Lock, err error) {
	err = m.do("lock", name, func() error {
		d, base, err := m.parent(name)
		if err != nil {
			return err
		}
		n := d.live[base]
		switch {
		case n == nil:
			n = m.create(d, base)
		case n.dir != nil:
			return syscall.EISDIR
		case m.locks[n]:
			return vfs.ErrLocked
		}
		m.locks[n] = true
		lock = &memLock{file: m.open(n, name, true)}
		return nil
	})
	return lock, err
}

// Free implements vfs.FS.
func (m *Mem) Free(dir string) (free int64, err error) {
	err = m.do("statfs", dir, func() error {
		_, err := m.findDir(dir)
		free = max(0, m.quota-m.used)
		return err
	})
	if err != nil {
		return 0, err
	}
	return free, nil
}
