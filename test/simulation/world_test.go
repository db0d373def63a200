package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/simulation/simnet"
)

// simulationResult counts what happened in a scenario, so that scenarios that test nothing are
// noticed.
type simulationResult struct {
	Sent, Acked, Found, Twice  int // spans; Twice are in two stores
	Starts, Kills, Cuts, Stops int
	Faults                     int
	Dropped                    int // spans that full queues dropped in favor of newer ones
	Reloads, Refusals          int // successful reloads; reloads that failed because of a disk fault
	CrashedReloading, Broken   int // programs that crashed during a reload; programs restarted after a failed one
	Unpromised                 int // spans acknowledged by agents that crashed with a queue in memory
}

func (r *simulationResult) add(o *simulationResult) {
	r.Sent, r.Acked, r.Found, r.Twice = r.Sent+o.Sent, r.Acked+o.Acked, r.Found+o.Found, r.Twice+o.Twice
	r.Dropped, r.Unpromised = r.Dropped+o.Dropped, r.Unpromised+o.Unpromised
	r.Reloads, r.Refusals = r.Reloads+o.Reloads, r.Refusals+o.Refusals
	r.CrashedReloading, r.Broken = r.CrashedReloading+o.CrashedReloading, r.Broken+o.Broken
	r.Starts, r.Kills, r.Cuts, r.Stops, r.Faults = r.Starts+o.Starts, r.Kills+o.Kills, r.Cuts+o.Cuts, r.Stops+o.Stops, r.Faults+o.Faults
}

// thorough reports whether every counted event has happened.
func (r *simulationResult) thorough() bool {
	return min(r.Sent-r.Acked, r.Acked, r.Twice, r.Starts, r.Kills, r.Cuts, r.Stops, r.Faults, r.Dropped, r.Reloads,
		r.Refusals, r.CrashedReloading, r.Broken, r.Unpromised) > 0
}

// world is one scenario.
type world struct {
	t          *testing.T
	plan       plan
	net        *simnet.Network
	agents     []*node
	collectors []*node
	clients    []*sender
	sent       sentSpans
	began      time.Time
	tasks      sync.WaitGroup // faults and clients
	crashing   sync.WaitGroup // crashed programs whose goroutines still run

	mu        sync.Mutex
	events    []string
	processes []*process // all processes so far
	result    simulationResult
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, plan: newPlan(seed), net: simnet.New(seed), began: time.Now()}
	w.sent.acked = map[uint64]processRange{}
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
			w.net.Set(a, b, w.plan.conditions)
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

// play runs the clients and injects the faults, and returns when all have ended.
func (w *world) play() {
	for _, c := range w.clients {
		w.tasks.Go(c.run)
	}
	for _, f := range w.plan.faults {
		w.tasks.Go(func() {
			time.Sleep(time.Until(w.began.Add(f.at)))
			w.logf("%s", f)
			w.count(func(r *simulationResult) { r.Faults++ })
			f.inject(w)
		})
	}
	w.tasks.Wait()
}

// After the last fault, queues become empty within maxQueueTime. Requests in flight end within
// quietAfter.
const maxQueueTime, quietAfter = 15 * time.Minute, 5 * time.Second

// awaitQueues waits until all queues are empty.
func (w *world) awaitQueues() {
	w.logf("all faults have ended")
	for until := time.Now().Add(maxQueueTime); ; {
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

// stop stops all clients and programs, and checks the final accounts.
func (w *world) stop() {
	for _, c := range w.clients {
		c.close()
	}
	for _, n := range append(w.agents[:len(w.agents):len(w.agents)], w.collectors...) {
		n.shutDown()
	}
	w.crashing.Wait()
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

// report logs the events of a failed or replayed scenario.
func (w *world) report() {
	if !w.t.Failed() && *simulationSeed == 0 {
		return
	}
	w.t.Logf("scenario:\n%s\n%s", &w.plan, strings.Join(w.events, "\n"))
	for _, n := range w.nodes() {
		w.t.Logf("log of %s:\n%s", n.name, n.log.String())
	}
}

// lockedRand is a random source that is safe for concurrent use.
type lockedRand struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (r *lockedRand) Uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.Uint64()
}

// collectorName is the DNS name of all collectors.
const collectorName = "collectors.test"

// lookupHost resolves collectorName to the addresses of the running collectors.
func (w *world) lookupHost(_ context.Context, host string) (addresses []string, err error) {
	for _, n := range w.collectors {
		n.mu.Lock()
		if n.current != nil {
			addresses = append(addresses, n.addr)
		}
		n.mu.Unlock()
	}
	if host != collectorName || len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addresses, nil
}
