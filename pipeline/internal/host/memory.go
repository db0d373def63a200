package host

import (
	"cmp"
	"os"
	"runtime"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/sysmem"
)

// Memory that the process needs in addition to the memory that the configuration limits.
const (
	memoryBase    = 16 << 20 // stacks, metrics
	memoryProgram = 24 << 20 // code and data that stay in memory, which the Go runtime does not count
)

// The default of service.limits.query_memory is this part of the soft memory limit, but not less
// than the minimum.
const (
	queryMemoryPart       = 4
	minDefaultQueryMemory = 16 << 20
)

// heldMemoryPart is the part of the memory of the machine or the cgroup that is the default of
// service.limits.held.
const heldMemoryPart = 4

// memoryPlan is how the memory of the process is divided, in bytes.
type memoryPlan struct {
	limit     int64 // soft memory limit of the process
	fixed     int64 // maximum held by components, requests in flight and the process itself
	queries   int64 // service.limits.query_memory
	held      int64 // service.limits.held, a part of fixed; 0 if no processor holds spans
	available int64 // memory of the cgroup, or GOMEMLIMIT; math.MaxInt64: unlimited

	connections int // service.limits.connections
}

// divideMemory divides the memory of the process: the part for components and requests in flight is
// fixed, and the rest is for queries. configured is service.limits.query_memory. Without a limit of
// the operating system, the process gets the sum. With a limit, the default for queries is reduced
// so that the sum fits.
func divideMemory(fixed, available, configured int64, querying bool) memoryPlan {
	p := memoryPlan{fixed: fixed, available: available, queries: configured}
	if querying && configured == 0 {
		// With a quarter for queries, the fixed part is three quarters.
		p.queries = min(fixed/(queryMemoryPart-1), available/queryMemoryPart, available-fixed)
		p.queries = max(p.queries, minDefaultQueryMemory)
	}
	p.limit = min(fixed+p.queries, available)
	return p
}

// planMemory divides the memory of the process among the running components.
func (a *App) planMemory() memoryPlan {
	config, _ := a.current()
	querying, deprecated, _ := a.queriers()
	configured := cmp.Or(int64(config.Service.Limits.QueryMemory), deprecated)
	held := a.holderMemory()
	fixed := memoryBase + memoryProgram + a.budget.Limit() + a.connectionMemory() + a.heldMemory() + held
	p := divideMemory(fixed, sysmem.Allowed(), configured, querying)
	p.held, p.connections = held, config.Service.Limits.Connections
	return p
}

// MemoryNeeds compares the sum of the memory limits of a configuration with the available memory,
// in bytes. math.MaxInt64 means no limit.
type MemoryNeeds struct {
	Needed     int64
	Available  int64 // limit of the program by GOMEMLIMIT or the cgroup
	Cgroup     int64 // limit of the cgroup
	GOMEMLIMIT int64 // 0: not set
	Machine    int64 // memory of the machine, or the limit of the cgroup if that is less
}

// MemoryNeeds returns the needs of the configuration. The app need not be started.
func (a *App) MemoryNeeds() MemoryNeeds {
	p := a.planMemory()
	n := MemoryNeeds{Needed: p.fixed + p.queries, Available: p.available, Cgroup: sysmem.CgroupLimit(), Machine: sysmem.Limit()}
	if os.Getenv("GOMEMLIMIT") != "" {
		n.GOMEMLIMIT = p.available
	}
	return n
}

// apply sets the limits of the plan, except the limits of the Go runtime.
func (p memoryPlan) apply(a *App) {
	a.queries.SetLimit(p.queries)
	a.held.SetLimit(p.held)
	a.connections.limit.Store(int64(p.connections))
}

// connectionMemory returns the maximum memory of open connections in bytes.
func (a *App) connectionMemory() int64 {
	c, _ := a.current()
	return int64(c.Service.Limits.Connections) * config.ConnectionMemory
}

// holderMemory returns the maximum memory of spans that processors hold, in bytes; 0 if there are
// no such processors.
func (a *App) holderMemory() int64 {
	config, _ := a.current()
	for _, p := range config.Pipelines {
		if p.Holder() != nil {
			return cmp.Or(int64(config.Service.Limits.Held), sysmem.Limit()/heldMemoryPart)
		}
	}
	return 0
}

// queriers reports whether components run queries. It returns the largest value of their deprecated
// keys for service.limits.query_memory, and the components that have such a key.
func (a *App) queriers() (querying bool, deprecated int64, with []string) {
	_, graph := a.current()
	for _, n := range graph.nodes {
		q, ok := n.component.(pipeline.Querier)
		if !ok {
			continue
		}
		querying = true
		if bytes := q.QueryMemory(); bytes > 0 {
			deprecated = max(deprecated, bytes)
			with = append(with, n.String())
		}
	}
	return querying, deprecated, with
}

// limitMemory divides the memory of the process, and sets the limit of queries and, unless
// GOMEMLIMIT is set, the soft memory limit of the Go runtime. Garbage then never adds much to the
// configured limits. ballast is the number of bytes that tuneGC has allocated.
func (a *App) limitMemory(ballast int64) {
	p := a.planMemory()
	p.apply(a)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(p.limit - memoryProgram + ballast)
	}
	if before := a.memory.Swap(&p); before == nil || *before != p {
		a.logMemory(&p)
	}
}

func (a *App) logMemory(p *memoryPlan) {
	size := func(name string, bytes int64) zap.Field { return zap.Stringer(name, pipeline.ByteSize(bytes)) }
	limits := []zap.Field{size("limit", p.limit), size("inflight", a.budget.Limit()), size("query_memory", p.queries),
		zap.Int("connections", p.connections)}
	if p.held > 0 {
		limits = append(limits, size("held", p.held))
	}
	a.log.Info("set soft memory limit", limits...)
	if p.fixed+p.queries > p.available {
		a.log.Warn("configured limits exceed the available memory; reduce service.limits, memtables, caches or queues",
			size("available", p.available), size("needed", p.fixed+p.queries))
	}
	if _, _, components := a.queriers(); len(components) > 0 {
		a.log.Warn("key max_answer_memory is deprecated; set service.limits.query_memory", zap.Strings("components", components))
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

// Sizes of the ballast: a block of memory that is never touched and therefore not resident, but
// that counts as heap. The garbage collector runs when the heap has doubled; without the ballast,
// it would run many times per second in a process that holds little and forwards much. A process
// that holds much, such as a store, has a large heap anyway and gets a smaller ballast. Because
// doubling a large heap would leave much garbage, its collector runs when the heap has grown by
// gcPercentOfHolders.
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
