package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/test/simulation/simnet"
)

// plan is everything that a seed determines. It is complete before the scenario starts.
type plan struct {
	seed                        uint64
	agents, collectors, clients int
	exporter                    string // of agents
	senders                     int    // consumers of a queue
	queueBytes                  int    // maximum size of a queue
	overflow                    string // behavior of a full queue
	inMemory                    []bool // whether the queue of each agent is in memory
	reloadsOnly                 bool   // the only events are reloads
	memtableAge                 time.Duration
	syncTime                    time.Duration     // of disks
	conditions                  simnet.Conditions // of links without faults
	requests                    int               // of each client
	length                      time.Duration     // of the period in which clients send and faults begin
	faults                      []fault
}

// loadBalancing is the exporter of agents that divide spans among the collectors that run.
const loadBalancing = "load_balancing"

func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, agents: 1 + r.IntN(3), collectors: 1 + r.IntN(2), clients: 2 + r.IntN(3), senders: 1 + r.IntN(4),
		exporter: []string{"native", "otlp"}[r.IntN(2)], memtableAge: between(r, time.Second, time.Minute),
		syncTime: between(r, 0, 5*time.Millisecond), requests: 5 + r.IntN(15), length: between(r, 5*time.Second, 30*time.Second)}
	if p.exporter == "otlp" && p.collectors > 1 && seed%2 == 1 {
		p.exporter = loadBalancing
	}
	p.conditions = simnet.Conditions{Delay: between(r, 0, 5*time.Millisecond), Jitter: between(r, 0, 5*time.Millisecond)}
	p.queueBytes, p.overflow = 1<<30, []string{"refuse", "block", "drop_oldest"}[r.IntN(3)]
	p.reloadsOnly = r.IntN(8) == 0
	if r.IntN(3) == 0 && !p.reloadsOnly {
		p.queueBytes = 2000 + r.IntN(20_000)
	}
	if r.IntN(2) == 0 && !p.reloadsOnly {
		p.conditions.Loss, p.conditions.Duplicate = r.Float64()/4, r.Float64()/4
	}
	if p.reloadsOnly {
		p.length /= 5
	}
	for range p.agents {
		p.inMemory = append(p.inMemory, r.IntN(4) == 0)
	}
	for range 2 + r.IntN(8) {
		p.faults = append(p.faults, p.fault(r))
	}
	return p
}

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}

func (p *plan) hopAddr(collector int) string {
	port := map[string]int{"native": 14250, "otlp": 4317}[p.exporter]
	return fmt.Sprintf("%s:%d", collectorAddr(collector), port)
}

func (p *plan) addresses() (all []string) {
	for i := range p.collectors {
		all = append(all, collectorAddr(i))
	}
	for i := range p.agents {
		all = append(all, agentAddr(i))
	}
	for i := range p.clients {
		all = append(all, clientAddr(i))
	}
	return append(all, readerAddr)
}

// kind is the kind of a fault.
type kind string

const (
	partition kind = "partition"
	slowLink  kind = "slow link"
	refusal   kind = "refusal"
	cut       kind = "cut"
	restart   kind = "restart"
	fullDisk  kind = "full disk"
	badDisk   kind = "failing disk"
	badSync   kind = "failing sync"
	hungDisk  kind = "hung disk"
	clockJump kind = "clock jump"
	reload    kind = "reload" // must have no effect on spans, also together with other faults
)

// fault is a fault to inject.
type fault struct {
	kind   kind
	at     time.Duration // since the start of the scenario
	length time.Duration
	index  int    // of the node
	a, b   string // addresses, for faults of a link
	bytes  int    // before a cut
	jump   time.Duration
	ends   []plannedEnd // of the running process, and of the following ones while they start

	variants  []variant // configurations to load, one after the other
	meanwhile kind      // fault during a reload, or ""; restart means a crash
}

// String returns a line for the report.
func (f fault) String() string {
	switch f.kind {
	case restart:
		return fmt.Sprintf("%s of node %d, for %v: %+v", f.kind, f.index, f.length, f.ends)
	case clockJump:
		return fmt.Sprintf("%s of node %d by %v", f.kind, f.index, f.jump)
	case fullDisk, badDisk, hungDisk:
		return fmt.Sprintf("%s of node %d for %v", f.kind, f.index, f.length)
	case reload:
		return fmt.Sprintf("%s of node %d, at intervals of %v, with fault %q: %+v",
			f.kind, f.index, f.length/reloadPauses, f.meanwhile, f.variants)
	case badSync:
		return fmt.Sprintf("%s of node %d", f.kind, f.index)
	case cut:
		return fmt.Sprintf("%s between %s and %s after %d bytes", f.kind, f.a, f.b, f.bytes)
	}
	return fmt.Sprintf("%s between %s and %s for %v", f.kind, f.a, f.b, f.length)
}

// String returns the plan as text, with one line for each fault.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d collectors with memtables of %v; %d agents with exporter %s, %d senders, a queue of %d bytes (%s), in memory %v; ",
		p.collectors, p.memtableAge, p.agents, p.exporter, p.senders, p.queueBytes, p.overflow, p.inMemory)
	fmt.Fprintf(&b, "%d clients with %d requests each; syncs of %v; links %+v\n", p.clients, p.requests, p.syncTime, p.conditions)
	for _, f := range p.faults {
		fmt.Fprintf(&b, "%10.6f  %s\n", f.at.Seconds(), f)
	}
	return b.String()
}

func (p *plan) fault(r *rand.Rand) fault {
	// A kind is repeated according to its weight.
	kinds := []kind{partition, partition, slowLink, refusal, cut, cut, cut, restart, restart, restart, restart, restart,
		fullDisk, badDisk, badSync, badSync, hungDisk, clockJump, reload, reload, reload, reload, reload}
	f := fault{kind: kinds[r.IntN(len(kinds))], at: between(r, 0, p.length), length: between(r, 10*time.Millisecond, 20*time.Second),
		index: r.IntN(p.collectors + p.agents), bytes: r.IntN(3000)}
	f.a, f.b = p.someLink(r)
	f.jump = between(r, -24*time.Hour, 24*time.Hour)
	if r.IntN(2) == 0 {
		f.jump /= 1000
	}
	for more := true; more; more = r.IntN(4) == 0 {
		f.ends = append(f.ends, plannedEnd{how: []ending{kill, powerCut, powerCut, stopped}[r.IntN(4)],
			after: 1 + r.Int64N(20), seed: r.Uint64()})
	}
	for more := true; more; more = r.IntN(2) == 0 {
		f.variants = append(f.variants, newVariant(r))
	}
	f.meanwhile = []kind{"", "", "", restart, restart, fullDisk, badDisk, badSync, hungDisk}[r.IntN(9)]
	if p.reloadsOnly {
		f.kind, f.meanwhile = reload, ""
	}
	return f
}

// someLink returns the addresses of two machines that communicate with each other.
func (p *plan) someLink(r *rand.Rand) (a, b string) {
	agent := r.IntN(p.agents)
	if r.IntN(3) == 0 {
		return clientAddr(r.IntN(p.clients)/p.agents*p.agents + agent), agentAddr(agent)
	}
	return agentAddr(agent), collectorAddr(r.IntN(p.collectors))
}
