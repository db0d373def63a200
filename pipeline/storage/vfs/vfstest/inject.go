package vfstest

import (
	"math/bits"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Injector is a file system that counts its operations and makes some of them fail. To fail or
// crash at each operation of a scenario in turn, run it once, take Count, and rerun it for every n
// below Count with a Rule that skips n.
type Injector struct {
	fs    vfs.FS
	rules []*Rule

	mu     sync.Mutex
	counts [len(opNames)]int
}

var _ vfs.FS = (*Injector)(nil)

// Inject wraps a file system with rules. All rules that apply to an operation are counted and their
// hooks run, in order; the first with an Err makes it fail.
func Inject(fsys vfs.FS, rules ...*Rule) *Injector { return &Injector{fs: fsys, rules: rules} }

// Count returns how many operations of these kinds there were, failed ones included.
func (i *Injector) Count(kinds Op) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	sum := 0
	for k, n := range i.counts {
		if kinds&(1<<k) != 0 {
			sum += n
		}
	}
	return sum
}

// fault counts an operation and returns the rule that fails it, or nil.
func (i *Injector) fault(op Op, names ...string) *Rule {
	i.mu.Lock()
	i.counts[bits.TrailingZeros32(uint32(op))]++
	i.mu.Unlock()
	var failing *Rule
	for _, r := range i.rules {
		if !r.applies(op, names...) {
			continue
		}
		if r.Hook != nil {
			r.Hook()
		}
		if failing == nil && r.Err != nil {
			failing = r
		}
	}
	return failing
}

// check is like fault, for operations that either happen completely or not at all.
func (i *Injector) check(op Op, names ...string) error {
	if r := i.fault(op, names...); r != nil {
		return r.failure(op, names[0])
	}
	return nil
}

func (i *Injector) open(op Op, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	if err := i.check(op, name); err != nil {
		return nil, err
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return &injectedFile{file: f, fs: i}, nil
}

// Create implements vfs.FS.
func (i *Injector) Create(name string) (vfs.File, error) { return i.open(OpCreate, name, i.fs.Create) }

// Open implements vfs.FS.
func (i *Injector) Open(name string) (vfs.File, error) { return i.open(OpOpen, name, i.fs.Open) }

// OpenWrite implements vfs.FS.
func (i *Injector) OpenWrite(name string) (vfs.File, error) {
	return i.open(OpOpenWrite, name, i.fs.OpenWrite)
}

// Rename implements vfs.FS.
func (i *Injector) Rename(oldName, newName string) error {
	if err := i.check(OpRename, oldName, newName); err != nil {
		return err
	}
	return i.fs.Rename(oldName, newName)
}

// Remove implements vfs.FS.
func (i *Injector) Remove(name string) error {
	if err := i.check(OpRemove, name); err != nil {
		return err
	}
	return i.fs.Remove(name)
}

// MkdirAll implements vfs.FS.
func (i *Injector) MkdirAll(dir string) error {
	if err := i.check(OpMkdirAll, dir); err != nil {
		return err
	}
	return i.fs.MkdirAll(dir)
}

// Mkdir implements vfs.FS.
func (i *Injector) Mkdir(dir string) error {
	if err := i.check(OpMkdir, dir); err != nil {
		return err
	}
	return i.fs.Mkdir(dir)
}

// ReadDir implements vfs.FS.
func (i *Injector) ReadDir(dir string) ([]vfs.Entry, error) {
	if err := i.check(OpReadDir, dir); err != nil {
		return nil, err
	}
	return i.fs.ReadDir(dir)
}

// SyncDir implements vfs.FS.
func (i *Injector) SyncDir(dir string) error {
	if err := i.check(OpSyncDir, dir); err != nil {
		return err
	}
	return i.fs.SyncDir(dir)
}

// Lock implements vfs.FS. Operations of the lock are not counted.
func (i *Injector) Lock(name string) (vfs.Lock, error) {
	if err := i.check(OpLock, name); err != nil {
		return nil, err
	}
	return i.fs.Lock(name)
}

// Free implements vfs.FS.
func (i *Injector) Free(dir string) (int64, error) {
	if err := i.check(OpFree, dir); err != nil {
		return 0, err
	}
	return i.fs.Free(dir)
}

// injectedFile is an open file of an Injector.
type injectedFile struct {
	file vfs.File
	fs   *Injector
}

func (f *injectedFile) Name() string { return f.file.Name() }

func (f *injectedFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.check(OpRead, f.Name()); err != nil {
		return 0, err
	}
	return f.file.ReadAt(p, off)
}

func (f *injectedFile) WriteAt(p []byte, off int64) (int, error) {
	r := f.fs.fault(OpWrite, f.Name())
	if r == nil {
		return f.file.WriteAt(p, off)
	}
	if !r.Short {
		return 0, r.failure(OpWrite, f.Name())
	}
	n, err := f.file.WriteAt(p[:shortOf(len(p), off)], off)
	if err != nil {
		return n, err
	}
	return n, r.failure(OpWrite, f.Name())
}

// sector is the number of bytes that a disk writes whole or not at all.
const sector = 512

// shortOf returns how many of n bytes a short write at an offset writes.
func shortOf(n int, off int64) int {
	half := n / 2
	if n >= sector {
		half = max(0, half-int((off+int64(half))%sector))
	}
	return half
}

func (f *injectedFile) Size() (int64, error) {
	if err := f.fs.check(OpSize, f.Name()); err != nil {
		return 0, err
	}
	return f.file.Size()
}

func (f *injectedFile) Truncate(size int64) error {
	if err := f.fs.check(OpTruncate, f.Name()); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

func (f *injectedFile) Sync() error {
	err := f.fs.check(OpSync, f.Name())
	if err == nil {
		return f.file.Sync()
	}
	f.failSync()
	return err
}

// failSync informs a Mem, possibly below other Injectors, that a Sync of the file has failed.
func (f *injectedFile) failSync() {
	if below, ok := f.file.(interface{ failSync() }); ok {
		below.failSync()
	}
}

func (f *injectedFile) InPlace() error {
	if err := f.fs.check(OpInPlace, f.Name()); err != nil {
		return err
	}
	return f.file.InPlace()
}

func (f *injectedFile) Close() error {
	err := f.fs.check(OpClose, f.Name())
	if closeErr := f.file.Close(); err == nil {
		err = closeErr
	}
	return err
}
