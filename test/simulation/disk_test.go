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

// diskFaults injects faults into the disk of a process.
type diskFaults struct {
	broken vfstest.Rule // every sync fails
	once   vfstest.Rule // only the next sync fails
	full   vfstest.Rule // every write fails

	mu       sync.Mutex
	active   int           // number of active faults
	begun    int           // number of faults so far
	released bool          // the program ends, and syncs take no more time
	stall    chan struct{} // if not nil, syncs wait until it is closed
	cut      chan struct{} // closed to end the stall early

	reloading bool          // syncs hang for shortHang at most
	end       chan struct{} // closed when released becomes true
}

// inject returns a file system that injects the faults into mem.
func (d *diskFaults) inject(l *process, mem *vfstest.Mem) vfs.FS {
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

// sparse is a file system that appends zeros to files without writing them. Logs are extended with
// megabytes of zeros in advance, and in memory this would be half the work of a scenario.
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

// sync lets time pass in the syncs that acknowledgements wait for, and only in those. Other syncs
// run under locks, and fake time does not advance while a goroutine waits for a lock.
func (d *diskFaults) sync(l *process) {
	if !calledBy("pipeline/storage/wal.(*Log).Commit", "pipeline/storage/wal.(*Dir).newPart") {
		return
	}
	d.mu.Lock()
	stall, released := d.stall, d.released
	d.mu.Unlock()
	if released {
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

// calledBy reports whether function is on the stack and is not called by the function but.
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

// shortHang is the maximum duration of a sync during a reload. It is shorter than the time that a
// reload waits for callers. After that time the reload would close the files under a lock.
const shortHang = time.Second

// hang makes syncs wait for a while.
func (d *diskFaults) hang(length time.Duration) {
	d.mu.Lock()
	if d.stall != nil || d.released {
		d.mu.Unlock()
		return
	}
	if d.reloading {
		length = min(length, shortHang)
	}
	cut := make(chan struct{})
	d.cut = cut
	stall := make(chan struct{})
	d.stall = stall
	d.begin()
	d.mu.Unlock()
	select {
	case <-time.After(length):
	case <-cut:
	case <-d.end:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	close(stall)
	d.stall, d.cut = nil, nil
	d.active--
}

// limitHangs begins or ends a period in which syncs hang for shortHang at most.
func (d *diskFaults) limitHangs(begin bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reloading = begin; begin && d.cut != nil {
		close(d.cut)
		d.cut = nil
	}
}

// during enables a rule for a while.
func (d *diskFaults) during(r *vfstest.Rule, length time.Duration) {
	d.mu.Lock()
	d.begin()
	d.mu.Unlock()
	r.Switch(true)
	time.Sleep(length)
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Switch(false)
	d.active--
}

// begin counts a fault. The caller holds the lock.
func (d *diskFaults) begin() {
	d.active++
	d.begun++
}

// failOnce makes one sync fail after a while, like a disk that fails after many internal retries.
// It has an effect only once per process.
func (d *diskFaults) failOnce(length time.Duration) {
	d.once.Switch(true)
	d.hang(length)
}

// faultCounts returns the number of active faults, and the number of faults so far.
func (d *diskFaults) faultCounts() (active, soFar int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active, d.begun + d.once.Hits()
}

// release ends all waiting, now and in the future.
func (d *diskFaults) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.released {
		d.released = true
		close(d.end)
	}
}
