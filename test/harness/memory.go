package harness

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// memoryInterval is the time between two looks at the memory of a process.
const memoryInterval = 2 * time.Millisecond

var anonymous = regexp.MustCompile(`RssAnon:\s+(\d+) kB`)

// WatchMemory begins to watch the memory of the process until it ends, and returns what it has now
// in MiB. A further call forgets the previous peak. What is watched are the resident pages that
// belong to the process alone: those of the program file are left out, as the soft memory limit
// leaves them out, because the kernel takes and returns them as it likes. It reads /proc; elsewhere
// than on Linux it returns 0 and watches nothing.
func (p *Process) WatchMemory() int {
	p.T.Helper()
	now, ok := p.memory()
	if !ok {
		if runtime.GOOS == "linux" {
			p.T.Fatalf("cannot read the memory of process %d", p.Cmd.Process.Pid)
		}
		return 0
	}
	if p.peak.Swap(now) == 0 {
		p.reader.Go(p.watchMemory)
	}
	return int(now >> 10)
}

// PeakMemory returns the largest memory in MiB that [Process.WatchMemory] has seen.
func (p *Process) PeakMemory() int { return int(p.peak.Load() >> 10) }

// watchMemory returns when the process has ended.
func (p *Process) watchMemory() {
	for {
		now, ok := p.memory()
		if !ok {
			return
		}
		raise(&p.peak, now)
		time.Sleep(memoryInterval)
	}
}

// raise sets a number to at least n.
func raise(to *atomic.Int64, n int64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

// memory returns the resident anonymous memory in KiB. ok is false after the end of the process.
func (p *Process) memory() (kib int64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		return 0, false
	}
	m := anonymous.FindSubmatch(b)
	if m == nil {
		return 0, false
	}
	kib, err = strconv.ParseInt(string(m[1]), 10, 64)
	return kib, err == nil
}
