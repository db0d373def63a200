package simulation_test

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// diskFaults is what can be wrong with the disk of a life.
type diskFaults struct {
	broken vfstest.Rule // a sync fails
	once   vfstest.Rule // the next sync fails, and none after it
	full   vfstest.Rule // nothing more can be written

	mu    sync.Mutex
	wrong int           // faults that hold
	begun int           // faults so far
	quiet bool          // the program ends: no sync takes time any more
	stall chan struct{} // not nil: syncs wait until it is closed
	cut   chan struct{} // closed when the stall must end early

	reloading bool          // nothing hangs for long
	end       chan struct{} // closed when quiet
}

// inject puts the faults between a program and its disk.
func (d *diskFaults) inject(l *life, mem *vfstest.Mem) vfs.FS {
	d.end = make(chan struct{})
	d.broken.Op, d.broken.Err = vfstest.OpSync|vfstest.OpSyncDir, vfstest.ErrIO
	d.once.Op, d.once.Err, d.once.Times = vfstest.OpSync, vfstest.ErrIO, 1
	d.full.Op, d.full.Err, d.full.Short = vfstest.OpWrite|vfstest.OpTruncate|vfstest.OpCreate, vfstest.ErrNoSpace, true
	for _, r := range []*vfstest.Rule{&d.broken, &d.once, &d.full} {
		r.Switch(false)
	}
	return sparse{vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpSync, Hook: func() { d.sync(l) }},
		&vfstest.Rule{Op: vfstest.OpChanges, Hook: l.operation}, &d.broken, &d.once, &d.full)}
}

// sparse is a file system on which zeros behind the end of a file cost nothing: logs are filled
// with megabytes of them ahead of what is written, which in memory would be half the work of a
// scenario.
type sparse struct{ vfs.FS }

func (s sparse) Create(name string) (vfs.File, error) { return sparsely(s.FS.Create(name)) }

func (s sparse) OpenWrite(name string) (vfs.File, error) { return sparsely(s.FS.OpenWrite(name)) }

func sparsely(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return sparseFile{f}, nil
}

type sparseFile struct{ vfs.File }

func (f sparseFile) WriteAt(p []byte, off int64) (int, error) {
	size, err := f.Size()
	allZeros := len(p) > 0 && p[0] == 0 && bytes.Equal(p[1:], p[:len(p)-1])
	if err != nil || off != size || !allZeros {
		return f.File.WriteAt(p, off)
	}
	if err := f.Truncate(off + int64(len(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sync lets time pass in the syncs that acknowledgements wait for, and only in those: others are
// made under locks, and while somebody waits for a lock fake time stands still.
func (d *diskFaults) sync(l *life) {
	if !calledBy("pipeline/storage/wal.(*Log).Commit", "pipeline/storage/wal.(*Dir).newPart") {
		return
	}
	d.mu.Lock()
	stall, quiet := d.stall, d.quiet
	d.mu.Unlock()
	if quiet {
		return
	}
	wait := time.NewTimer(l.node.w.plan.syncTime)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-d.end:
	}
	if stall == nil {
		return
	}
	select {
	case <-stall:
	case <-d.end:
	}
}

// calledBy reports whether a function is on the stack, and but is not.
func calledBy(function, but string) bool {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		switch {
		case strings.HasSuffix(f.Function, function):
			return true
		case !more, strings.HasSuffix(f.Function, but):
			return false
		}
	}
}

// shortHang is how long syncs may take during a reload, so that none takes longer than callers are
// waited for: the next thing would be to close the files, under a lock.
const shortHang = time.Second

// hang makes syncs wait for so long.
func (d *diskFaults) hang(how time.Duration) {
	d.mu.Lock()
	if d.stall != nil || d.quiet {
		d.mu.Unlock()
		return
	}
	if d.reloading {
		how = min(how, shortHang)
	}
	cut := make(chan struct{})
	d.cut = cut
	stall := make(chan struct{})
	d.stall = stall
	d.begin()
	d.mu.Unlock()
	select {
	case <-time.After(how):
	case <-cut:
	case <-d.end:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	close(stall)
	d.stall, d.cut = nil, nil
	d.wrong--
}

// hurry begins or ends a time in which nothing hangs for long.
func (d *diskFaults) hurry(begin bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reloading = begin; begin && d.cut != nil {
		close(d.cut)
		d.cut = nil
	}
}

// during switches a rule on for a while.
func (d *diskFaults) during(r *vfstest.Rule, how time.Duration) {
	d.mu.Lock()
	d.begin()
	d.mu.Unlock()
	r.Switch(true)
	time.Sleep(how)
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Switch(false)
	d.wrong--
}

// begin notes a fault. The caller holds the lock.
func (d *diskFaults) begin() {
	d.wrong++
	d.begun++
}

// failOnce makes one sync fail, after so long, as disks do that have tried again and again. A life
// has no more than one of these.
func (d *diskFaults) failOnce(how time.Duration) {
	d.once.Switch(true)
	d.hang(how)
}

// troubles returns how many faults hold, and how many there were so far.
func (d *diskFaults) troubles() (hold, soFar int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wrong, d.begun + d.once.Hits()
}

// release ends all waiting, for good.
func (d *diskFaults) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.quiet {
		d.quiet = true
		close(d.end)
	}
}
