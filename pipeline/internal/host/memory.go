package host

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/sysmem"
)

// memoryShare is the fraction of the cgroup's memory that the Go runtime may use. The rest is for
// memory that the runtime does not count.
const memoryShare = 0.9

// memoryBase is the memory in bytes that the process needs in addition to what the configuration
// limits: connections, stacks, metrics, responses. The size of the program itself is not included,
// because the runtime does not count it.
const memoryBase = 80 << 20

// limitMemory sets the soft memory limit of the Go runtime to what the configuration needs at most
// or the cgroup allows, whichever is smaller, unless GOMEMLIMIT is set. Garbage then never adds
// much to what the configuration allows. ballast is the number of bytes that tuneGC has allocated.
func (a *App) limitMemory(ballast int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := memoryBase + a.budget.Limit() + a.heldMemory()
	if cgroup := sysmem.CgroupLimit(); cgroup < math.MaxInt64 {
		limit = min(limit, int64(float64(cgroup)*memoryShare))
	}
	debug.SetMemoryLimit(limit + ballast)
	if a.softMemoryLimit.Swap(limit) != limit {
		a.log.Info("set soft memory limit", zap.Stringer("limit", pipeline.ByteSize(limit)))
	}
}

// heldMemory returns the maximum memory of components and queues in bytes.
func (a *App) heldMemory() int64 {
	var held int64
	_, graph := a.current()
	for _, n := range graph.nodes {
		if m, ok := n.component.(pipeline.MemoryUser); ok {
			held += m.MaxMemory()
		}
		if n.edge != nil {
			held += n.edge.QueueMemory()
		}
	}
	return held
}

// Sizes of the ballast: a block of memory that is never touched and therefore not resident. The
// garbage collector, which runs whenever the heap has doubled, counts it. Without it, a process
// that holds little and forwards much collects many times per second. A process that holds much,
// such as a store, has a large heap anyway and gets a smaller ballast. Because doubling a large
// heap would leave much garbage, it collects when the heap has grown by gcPercentOfHolders.
const (
	gcBallast          = 64 << 20
	gcBallastOfHolders = 24 << 20
	gcPercentOfHolders = 80
)

// tuneGC allocates the ballast and returns its size, unless GOGC is set. release frees it.
func (a *App) tuneGC() (ballast int64, release func()) {
	if os.Getenv("GOGC") != "" {
		return 0, func() {}
	}
	ballast = gcBallast
	percent := -1
	if a.heldMemory() >= gcBallast {
		ballast = gcBallastOfHolders
		percent = debug.SetGCPercent(gcPercentOfHolders)
	}
	block := make([]byte, ballast)
	return ballast, func() {
		runtime.KeepAlive(block)
		if percent >= 0 {
			debug.SetGCPercent(percent)
		}
	}
}
