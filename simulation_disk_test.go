package tracing_test

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/vfs"
	"github.com/tracing-backend/tracing/pipeline/vfs/vfstest"
)

// diskFaults is what can be wrong with the disk of a life.
type diskFaults struct {
	broken vfstest.Rule // a sync fails
	full   vfstest.Rule // nothing more can be written

	mu    sync.Mutex
	wrong int           // faults that hold
	quiet bool          // the program ends: no sync takes time any more
	stall chan struct{} // not nil: syncs wait until it is closed
	end   chan struct{} // closed when quiet
}

// inject puts the faults between a program and its disk.
func (d *diskFaults) inject(l *life, mem *vfstest.Mem) vfs.FS {
	d.end = make(chan struct{})
	d.broken.Op, d.broken.Err = vfstest.OpSync, vfstest.ErrIO
	d.full.Op, d.full.Err, d.full.Short = vfstest.OpWrite|vfstest.OpTruncate|vfstest.OpCreate, vfstest.ErrNoSpace, true
	d.broken.Switch(false)
	d.full.Switch(false)
	return sparse{vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpSync, Hook: func() { d.sync(l) }},
		&vfstest.Rule{Op: vfstest.OpChanges, Hook: l.operation}, &d.broken, &d.full)}
}

// sparse is a file system on which zeros behind the end of a file cost nothing: logs are filled with megabytes of them ahead of what is written,
// which in memory would be half the work of a scenario.
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

// sync lets time pass in the syncs that acknowledgements wait for, and only in those: others are made under locks, and while somebody waits
// for a lock fake time stands still.
func (d *diskFaults) sync(l *life) {
	if !calledBy("internal/wal.(*Log).Commit") {
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

func calledBy(function string) bool {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// hang makes syncs wait for so long.
func (d *diskFaults) hang(how time.Duration) {
	d.mu.Lock()
	if d.stall != nil || d.quiet {
		d.mu.Unlock()
		return
	}
	stall := make(chan struct{})
	d.stall = stall
	d.mu.Unlock()
	select {
	case <-time.After(how):
	case <-d.end:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	close(stall)
	d.stall = nil
}

// during switches a rule on for a while.
func (d *diskFaults) during(r *vfstest.Rule, how time.Duration) {
	d.mu.Lock()
	d.wrong++
	d.mu.Unlock()
	r.Switch(true)
	time.Sleep(how)
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Switch(false)
	d.wrong--
}

func (d *diskFaults) troubled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wrong > 0
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
