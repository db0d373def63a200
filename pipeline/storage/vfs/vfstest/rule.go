package vfstest

import (
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Op is a set of kinds of operations. Each method of vfs.FS and vfs.File except Name is one kind,
// named after the method (ReadAt and WriteAt without the At).
type Op uint32

// The kinds of operations, and sets of them.
const (
	OpCreate Op = 1 << iota
	OpOpen
	OpOpenWrite
	OpRename
	OpRemove
	OpMkdirAll
	OpMkdir
	OpReadDir
	OpSyncDir
	OpLock
	OpFree
	OpRead
	OpWrite
	OpSize
	OpTruncate
	OpSync
	OpInPlace
	OpClose

	// OpAny is all kinds.
	OpAny = OpClose<<1 - 1
	// OpChanges is the set of operations that can change the disk. A crash before any other
	// operation has the same outcomes as a crash before the next of these.
	OpChanges = OpCreate | OpRename | OpRemove | OpMkdirAll | OpMkdir | OpSyncDir | OpLock | OpWrite | OpTruncate | OpSync
)

var opNames = [...]string{"create", "open", "openwrite", "rename", "remove", "mkdirall", "mkdir", "readdir", "syncdir", "lock", "free",
	"read", "write", "size", "truncate", "sync", "inplace", "close"}

// String returns the names of the kinds, joined by "|".
func (o Op) String() string {
	var names []string
	for i, name := range opNames {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Rule selects operations of an Injector that fail or call a hook. Set the fields before use; a
// Rule serves one Injector.
type Rule struct {
	// Op are the kinds of operations; 0 means all.
	Op Op
	// Path is a path.Match pattern for the last element of the name or for the whole name; for a
	// rename, either name may match. Empty means all.
	Path string
	// Skip is the number of matching operations that pass before the rule applies.
	Skip int
	// Times is the number of operations that the rule applies to; 0 means all that follow.
	Times int
	// Err is the error of the operation, which is then not done. If nil, the operation runs after
	// the Hook. After a failed Sync of a file in a Mem, the state of its unsynced bytes stays
	// unknown; a failed Close closes the file anyway.
	Err error
	// Short makes a failing write write the first half of its bytes. A write of at least a sector
	// (512 bytes) ends between sectors, as on disks.
	Short bool
	// Hook is called before the operation, for example to crash the file system, wait or count. It
	// may use the file system.
	Hook func()

	mu   sync.Mutex
	off  bool
	seen int
	hits int
}

// Switch turns the rule on or off; it is on initially. A rule that is off neither applies nor
// counts toward Skip.
func (r *Rule) Switch(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = !on
}

// Hits returns the number of operations that the rule applied to.
func (r *Rule) Hits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// applies reports whether the rule applies to an operation on these names, and counts it.
func (r *Rule) applies(op Op, names ...string) bool {
	if r.Op != 0 && r.Op&op == 0 || !r.matches(names) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off {
		return false
	}
	r.seen++
	if r.seen <= r.Skip || r.Times > 0 && r.hits >= r.Times {
		return false
	}
	r.hits++
	return true
}

// matches panics on a bad pattern, which is a mistake in the test.
func (r *Rule) matches(names []string) bool {
	if r.Path == "" {
		return true
	}
	for _, name := range names {
		for _, s := range [...]string{name, path.Base(name)} {
			ok, err := path.Match(r.Path, s)
			if err != nil {
				panic("vfstest: pattern " + r.Path + ": " + err.Error())
			}
			if ok {
				return true
			}
		}
	}
	return false
}

func (r *Rule) failure(op Op, name string) error {
	return &fs.PathError{Op: op.String(), Path: name, Err: r.Err}
}
