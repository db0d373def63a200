package pipeline

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryShare is the part of the cgroup's memory that the Go runtime is told to stay below; the rest is for what it does not count.
const memoryShare = 0.9

// memoryBase is what the process needs besides what it bounds by configuration: connections, stacks, metrics, answers. Code comes on top: the
// garbage collector does not count it.
const memoryBase = 80 << 20

// MemoryUser is a component that holds memory of its own, beyond requests in flight.
type MemoryUser interface {
	// MaxMemory returns the most that it may hold, in bytes.
	MaxMemory() int64
}

// applyMemoryLimit tells the garbage collector how much memory the process needs at most by its configuration, or what its cgroup allows if
// that is less, unless GOMEMLIMIT says it already: garbage then never adds much to what the limits of the configuration allow. It returns
// the limit that was set, or 0. floor is what tuneGC holds.
func (a *App) applyMemoryLimit(floor int64) int64 {
	if os.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	limit := memoryBase + a.budget.Limit() + a.heldMemory()
	if cgroup := cgroupLimit(); cgroup < math.MaxInt64 {
		limit = min(limit, int64(float64(cgroup)*memoryShare))
	}
	debug.SetMemoryLimit(limit + floor)
	return limit
}

// heldMemory returns the most that components and queues hold for long.
func (a *App) heldMemory() int64 {
	var held int64
	_, graph := a.current()
	for _, n := range graph.nodes {
		if m, ok := n.value.(MemoryUser); ok {
			held += m.MaxMemory()
		}
		if n.edge != nil {
			held += n.edge.queueMemory
		}
	}
	return held
}

// gcFloor is the size of a block of memory that is never touched, and so never resident: the garbage collector, which runs each time the heap
// has doubled, counts it. Without it a process that holds little and passes on much would collect many times a second. One that holds much,
// such as a store, has a floor of its own soon, and doubling what it holds would be much garbage: it has a smaller block and collects when the
// heap has grown by gcPercentOfHolders.
const (
	gcFloor            = 64 << 20
	gcFloorOfHolders   = 24 << 20
	gcPercentOfHolders = 80
)

// tuneGC keeps the collector from running for less than the returned number of bytes of garbage, until release is called. GOGC in the
// environment says that somebody has other plans.
func (a *App) tuneGC() (floor int64, release func()) {
	if os.Getenv("GOGC") != "" {
		return 0, func() {}
	}
	floor = gcFloor
	percent := -1
	if a.heldMemory() >= gcFloor {
		floor = gcFloorOfHolders
		percent = debug.SetGCPercent(gcPercentOfHolders)
	}
	block := make([]byte, floor)
	return floor, func() {
		runtime.KeepAlive(block)
		if percent >= 0 {
			debug.SetGCPercent(percent)
		}
	}
}

// memoryLimit returns the bytes of memory that the process may use: the smaller of its cgroup's limit and the machine's memory. Where
// neither is known it is 1 GiB, which is small enough for every machine.
func memoryLimit() int64 {
	limit := min(cgroupLimit(), machineMemory())
	if limit == math.MaxInt64 {
		return 1 << 30
	}
	return limit
}

// cgroupLimit returns the memory limit of the process's cgroup (v2 and v1), or MaxInt64 when there is none.
func cgroupLimit() int64 {
	limit := int64(math.MaxInt64)
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Version 1 says "no limit" with a number close to MaxInt64.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < math.MaxInt64/2 {
			limit = min(limit, n)
		}
	}
	return limit
}

// machineMemory returns the machine's memory, or MaxInt64 where it is not known.
func machineMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" {
			if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return kb << 10
			}
		}
	}
	return math.MaxInt64
}
