package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/simulation/simnet"
)

// node is a machine with a disk, on which a program is started and ended repeatedly.
type node struct {
	w         *world
	name      string
	addr      string
	configure func(variant) string
	inMemory  bool // an agent whose queue is lost in a crash
	seed      uint64
	log       harness.Buffer
	ahead     atomic.Int64 // offset of its clock in ns

	mu      sync.Mutex
	variant variant      // of the configuration file
	disk    *vfstest.Mem // of the next process
	current *process     // nil between two processes
	held    bool         // a fault ends, starts or reloads it
	started int          // number of processes so far
}

// process is a run of a node's program, from its start to its stop or crash.
type process struct {
	node    *node
	number  int // 1 for the first one of the node
	host    *simnet.Host
	mem     *vfstest.Mem
	app     *app.App
	disk    diskFaults
	after   atomic.Int64 // disk operations until the crash; 0: no crash is planned
	armMu   sync.Mutex
	reached bool // the last of these operations was reached; guarded by armMu
	how     ending
	rng     *rand.Rand // for a power cut
	once    sync.Once
	crashed atomic.Bool    // ended by a crash instead of a stop
	ended   chan struct{}  // closed when the program has ended
	reloads sync.WaitGroup // reloads in progress
}

// ending is a way in which a program ends.
type ending string

const (
	kill     ending = "kill"      // SIGKILL
	powerCut ending = "power cut" // the machine stops and loses data that was not synced
	stopped  ending = "stop"      // SIGTERM
)

func newNode(w *world, name, addr string, configure func(variant) string) *node {
	return &node{w: w, name: name, addr: addr, seed: w.plan.seed, configure: configure, disk: vfstest.NewMem()}
}

// boot starts the program. It retries as long as a start fails because of a disk fault or a
// crash.
func (n *node) boot(ends ...plannedEnd) {
	for {
		l, err := n.begin(ends)
		if err == nil {
			return
		}
		n.w.logf("%s cannot start: %v", n.name, err)
		if active, _ := l.disk.faultCounts(); !l.hasEnded() && active == 0 {
			n.w.t.Errorf("%s cannot start: %v", n.name, err)
			return
		}
		l.crash(kill)
		if len(ends) > 0 {
			ends = ends[1:]
		}
		time.Sleep(time.Second)
	}
}

// plannedEnd is the planned end of a program.
type plannedEnd struct {
	how   ending
	after int64 // number of disk operations before it
	seed  uint64
}

// begin starts a process. If ends is not empty, the first one may end the process while it starts.
func (n *node) begin(ends []plannedEnd) (*process, error) {
	n.mu.Lock()
	n.started++
	l := &process{node: n, number: n.started, mem: n.disk, ended: make(chan struct{})}
	n.mu.Unlock()
	n.w.count(func(r *simulationResult) {
		r.Starts++
		n.w.processes = append(n.w.processes, l)
	})
	l.host = n.w.net.Host(n.addr)
	if len(ends) > 0 {
		l.arm(ends[0])
	}
	err := l.start()
	l.disarm()
	if err == nil && l.hasEnded() {
		err = errors.New("program crashed at the end of its start")
	}
	if err != nil {
		return l, err
	}
	n.w.logf("%s is up", n.name)
	n.mu.Lock()
	n.current = l
	n.mu.Unlock()
	return l, nil
}

func (l *process) start() error {
	n := l.node
	cfg, err := n.load()
	if err != nil {
		n.w.t.Fatal(err)
	}
	rng := &lockedRand{rng: rand.New(rand.NewPCG(n.seed, uint64(n.started)))}
	env := pipeline.Env{FS: l.disk.inject(l, l.mem), Rand: rng.Uint64,
		LookupHost: n.w.lookupHost, Listen: l.host.Listen, ListenPacket: l.host.ListenPacket, Dial: l.host.Dial,
		Now: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }}
	l.app, err = app.New(cfg, app.Options{Env: &env, Log: l})
	if err != nil {
		n.w.t.Fatal(err)
	}
	return l.app.Start(context.Background())
}

func (l *process) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// Write appends to the log of the program. It discards messages after the end of the process.
func (l *process) Write(p []byte) (int, error) {
	if l.hasEnded() {
		return len(p), nil
	}
	return l.node.log.Write(p)
}

// arm plans a crash before a disk operation.
func (l *process) arm(s plannedEnd) {
	l.how, l.rng = s.how, rand.New(rand.NewPCG(s.seed, 0))
	l.after.Store(s.after)
}

// operation is called before each operation that may change the disk.
func (l *process) operation() {
	if l.after.Load() > 0 && l.last() {
		l.crash(l.how)
	}
}

// last counts an operation, and reports whether the program crashes before it.
func (l *process) last() bool {
	l.armMu.Lock()
	defer l.armMu.Unlock()
	if l.after.Load() > 0 && l.after.Add(-1) == 0 {
		l.reached = true
		return true
	}
	return false
}

// disarm cancels the planned crash. If its operation was already reached, disarm returns after the
// crash.
func (l *process) disarm() {
	l.armMu.Lock()
	l.after.Store(0)
	reached := l.reached
	l.armMu.Unlock()
	if reached {
		<-l.ended
	}
}

// crash crashes the program: it disconnects the network first, and the disk after that.
func (l *process) crash(how ending) {
	l.once.Do(func() {
		n := l.node
		n.w.logf("%s: %s", n.name, how)
		l.crashed.Store(true)
		l.disk.release()
		var next *vfstest.Mem
		if how == powerCut {
			l.host.CutPower()
			next = l.mem.Crash(l.rng)
			n.w.count(func(r *simulationResult) { r.Cuts++ })
		} else {
			l.host.Kill()
			next = l.mem.Kill()
			n.w.count(func(r *simulationResult) { r.Kills++ })
		}
		next.SetQuota(1 << 40)
		n.mu.Lock()
		n.disk = next
		n.mu.Unlock()
		close(l.ended)
		n.w.crashing.Go(l.awaitEnd)
	})
}

// awaitEnd waits until the goroutines of a crashed program have ended.
func (l *process) awaitEnd() {
	time.Sleep(5 * time.Second) // what it does after the crash must have no effect
	l.reloads.Wait()            // otherwise Stop would wait for a lock, and fake time would not advance
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.app.Stop(ctx) //nolint:errcheck // nothing more can be written
}

// acquire gives the caller the exclusive right to end or reload the current process, until release.
// It returns nil if another caller has this right or there is no process.
func (n *node) acquire() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held || n.current == nil {
		return nil
	}
	n.held = true
	return n.current
}

func (n *node) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = false
}

// stop ends a process by an orderly stop, unless it crashes first.
func (l *process) stop() error {
	l.disk.release()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := l.app.Stop(ctx)
	l.once.Do(func() {
		l.node.w.logf("%s stopped: %v", l.node.name, err)
		l.node.w.count(func(r *simulationResult) { r.Stops++ })
		l.host.Kill()
		l.node.mu.Lock()
		l.node.disk = l.mem.Kill()
		l.node.mu.Unlock()
		close(l.ended)
		l.node.checkAccount(account(l.app), l.node.inMemory && err != nil)
	})
	return err
}

// shutDown stops the node at the end of a scenario.
func (n *node) shutDown() {
	l := n.acquire()
	if l == nil {
		n.w.t.Errorf("%s is not running at the end of the scenario", n.name)
		return
	}
	if err := l.stop(); err != nil {
		n.w.t.Errorf("stopping %s: %v", n.name, err)
	}
	if open := l.mem.Handles(); open > 0 {
		n.w.t.Errorf("%s left %d files open", n.name, open)
	}
}
