package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/simulation/simnet"
)

// simulationResult counts what a scenario has done, so that a test that tests nothing is seen.
type simulationResult struct {
	Sent, Acked, Found, Twice  int // spans; Twice are in two stores
	Starts, Kills, Cuts, Stops int
	Faults                     int
	Dropped                    int // spans that full queues gave up for newer ones
	Reloads, Refusals          int // configurations that were taken, and that were not because of a bad disk
	DiedReloading, Broken      int // programs that died in the middle of a reload, and that had to be started again after one
	Unpromised                 int // spans that an agent has acknowledged which died with its queue in memory
}

func (r *simulationResult) add(o *simulationResult) {
	r.Sent, r.Acked, r.Found, r.Twice = r.Sent+o.Sent, r.Acked+o.Acked, r.Found+o.Found, r.Twice+o.Twice
	r.Dropped, r.Unpromised = r.Dropped+o.Dropped, r.Unpromised+o.Unpromised
	r.Reloads, r.Refusals = r.Reloads+o.Reloads, r.Refusals+o.Refusals
	r.DiedReloading, r.Broken = r.DiedReloading+o.DiedReloading, r.Broken+o.Broken
	r.Starts, r.Kills, r.Cuts, r.Stops, r.Faults = r.Starts+o.Starts, r.Kills+o.Kills, r.Cuts+o.Cuts, r.Stops+o.Stops, r.Faults+o.Faults
}

// thorough reports whether everything that can happen has happened.
func (r *simulationResult) thorough() bool {
	return min(r.Sent-r.Acked, r.Acked, r.Twice, r.Starts, r.Kills, r.Cuts, r.Stops, r.Faults, r.Dropped, r.Reloads,
		r.Refusals, r.DiedReloading, r.Broken, r.Unpromised) > 0
}

// world is one scenario.
type world struct {
	t          *testing.T
	plan       plan
	net        *simnet.Network
	agents     []*node
	collectors []*node
	clients    []*sender
	ledger     spanLedger
	began      time.Time
	tasks      sync.WaitGroup // faults and clients
	graves     sync.WaitGroup // programs that are dead and do not know it yet

	mu     sync.Mutex
	events []string
	lives  []*life // all that there were
	result simulationResult
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, plan: newPlan(seed), net: simnet.New(seed), began: time.Now()}
	w.ledger.acked = map[uint64]lifespan{}
	for i := range w.plan.collectors {
		n := newNode(w, fmt.Sprint("collector", i), collectorAddr(i), func(v variant) string { return w.plan.collectorConfig(i, v) })
		w.collectors = append(w.collectors, n)
	}
	for i := range w.plan.agents {
		n := newNode(w, fmt.Sprint("agent", i), agentAddr(i), func(v variant) string { return w.plan.agentConfig(i, v) })
		n.inMemory = w.plan.inMemory[i]
		w.agents = append(w.agents, n)
	}
	for i := range w.plan.clients {
		w.clients = append(w.clients, newSender(w, i))
	}
	for _, a := range w.plan.addresses() {
		for _, b := range w.plan.addresses() {
			w.net.Set(a, b, w.plan.calm)
		}
	}
	return w
}

func collectorAddr(i int) string { return fmt.Sprintf("10.0.2.%d", i+1) }

func agentAddr(i int) string { return fmt.Sprintf("10.0.1.%d", i+1) }

func clientAddr(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

func (w *world) nodes() []*node {
	return append(w.collectors[:len(w.collectors):len(w.collectors)], w.agents...)
}

func (w *world) start() {
	for _, n := range w.nodes() {
		n.boot()
	}
}

// play lets clients send and faults happen, until all have ended.
func (w *world) play() {
	for _, c := range w.clients {
		w.tasks.Go(c.run)
	}
	for _, f := range w.plan.faults {
		w.tasks.Go(func() {
			time.Sleep(time.Until(w.began.Add(f.at)))
			w.logf("%s", f)
			w.count(func(r *simulationResult) { r.Faults++ })
			f.happen(w)
		})
	}
	w.tasks.Wait()
}

// Once all is well queues become empty within longestHeal. What is under way outside of queues ends
// within quietAfter.
const longestHeal, quietAfter = 15 * time.Minute, 5 * time.Second

// heal waits until everything that was queued has been sent.
func (w *world) heal() {
	w.logf("all is well")
	for until := time.Now().Add(longestHeal); ; {
		time.Sleep(quietAfter)
		waiting := 0.0
		for _, n := range w.agents {
			waiting += n.account().queued
		}
		if waiting == 0 {
			time.Sleep(quietAfter)
			return
		}
		if time.Now().After(until) {
			w.t.Errorf("%v spans are still queued", waiting)
			return
		}
	}
}

// stop ends all that is left, and checks the final accounting.
func (w *world) stop() {
	for _, c := range w.clients {
		c.close()
	}
	for _, n := range append(w.agents[:len(w.agents):len(w.agents)], w.collectors...) {
		n.shutDown()
	}
	w.graves.Wait()
}

func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%10.6f  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) count(f func(*simulationResult)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.result)
}

// report shows what has happened, if it went wrong.
func (w *world) report() {
	if !w.t.Failed() && *simulationSeed == 0 {
		return
	}
	w.t.Logf("the scenario:\n%s\n%s", &w.plan, strings.Join(w.events, "\n"))
	for _, n := range w.nodes() {
		w.t.Logf("log of %s:\n%s", n.name, n.log.String())
	}
}

// lockedRand is a source of chance for several goroutines.
type lockedRand struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (r *lockedRand) Uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.Uint64()
}
