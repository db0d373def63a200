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

// node is a machine with a program and a disk, through all its lives.
type node struct {
	w         *world
	name      string
	addr      string
	configure func(variant) string
	inMemory  bool // an agent whose queue is lost when it dies
	seed      uint64
	log       harness.Buffer
	ahead     atomic.Int64 // what its clock shows beyond the time, in ns

	mu      sync.Mutex
	variant variant      // of the configuration that is written down
	disk    *vfstest.Mem // of the next life
	life    *life        // nil: between two
	held    bool         // somebody ends, starts or reloads it
	born    int
}

// life is one run of a node's program.
type life struct {
	node    *node
	number  int // among the node's lives
	host    *simnet.Host
	mem     *vfstest.Mem
	app     *app.App
	disk    diskFaults
	after   atomic.Int64 // operations of the disk until strike
	arms    sync.Mutex
	shot    bool // the last of these operations has come; guarded by arms
	how     death
	rng     *rand.Rand // of a power cut
	once    sync.Once
	struck  atomic.Bool    // it was no stop that ended it
	ended   chan struct{}  // closed when the program has died
	reloads sync.WaitGroup // that are under way
}

// death is how a program ends.
type death string

const (
	kill     death = "kill"      // SIGKILL
	powerCut death = "power cut" // the machine, and what its disk had not synced
	stopped  death = "stop"      // SIGTERM
)

func newNode(w *world, name, addr string, configure func(variant) string) *node {
	return &node{w: w, name: name, addr: addr, seed: w.plan.seed, configure: configure, disk: vfstest.NewMem()}
}

// boot starts a life, and as many more as it takes when the first ones fail for a reason: the disk
// is full, or they are struck while they start.
func (n *node) boot(strikes ...deathblow) {
	for {
		l, err := n.begin(strikes)
		if err == nil {
			return
		}
		n.w.logf("%s does not start: %v", n.name, err)
		if wrong, _ := l.disk.troubles(); !l.dead() && wrong == 0 {
			n.w.t.Errorf("%s does not start: %v", n.name, err)
			return
		}
		l.strike(kill)
		if len(strikes) > 0 {
			strikes = strikes[1:]
		}
		time.Sleep(time.Second)
	}
}

// deathblow is the death of a program in the middle of something.
type deathblow struct {
	how   death
	after int64 // operations of its disk
	seed  uint64
}

// begin starts a life, which is struck if it is told to.
func (n *node) begin(strikes []deathblow) (*life, error) {
	n.mu.Lock()
	n.born++
	l := &life{node: n, number: n.born, mem: n.disk, ended: make(chan struct{})}
	n.mu.Unlock()
	n.w.count(func(r *simulationResult) {
		r.Starts++
		n.w.lives = append(n.w.lives, l)
	})
	l.host = n.w.net.Host(n.addr)
	if len(strikes) > 0 {
		l.arm(strikes[0])
	}
	err := l.start()
	l.disarm()
	if err == nil && l.dead() {
		err = errors.New("it died as soon as it had started")
	}
	if err != nil {
		return l, err
	}
	n.w.logf("%s is up", n.name)
	n.mu.Lock()
	n.life = l
	n.mu.Unlock()
	return l, nil
}

func (l *life) start() error {
	n := l.node
	cfg, err := n.load()
	if err != nil {
		n.w.t.Fatal(err)
	}
	rng := &lockedRand{rng: rand.New(rand.NewPCG(n.seed, uint64(n.born)))}
	env := pipeline.Env{FS: l.disk.inject(l, l.mem), Rand: rng.Uint64, Listen: l.host.Listen, ListenPacket: l.host.ListenPacket, Dial: l.host.Dial,
		Now: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }}
	l.app, err = app.New(cfg, app.Options{Env: &env, Log: l})
	if err != nil {
		n.w.t.Fatal(err)
	}
	return l.app.Start(context.Background())
}

func (l *life) dead() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// Write is the program's log. What the dead say is not heard.
func (l *life) Write(p []byte) (int, error) {
	if l.dead() {
		return len(p), nil
	}
	return l.node.log.Write(p)
}

// arm has the program die before an operation of its disk.
func (l *life) arm(s deathblow) {
	l.how, l.rng = s.how, rand.New(rand.NewPCG(s.seed, 0))
	l.after.Store(s.after)
}

// operation is called before everything that may change the disk.
func (l *life) operation() {
	if l.after.Load() > 0 && l.last() {
		l.strike(l.how)
	}
}

// last counts an operation, and reports whether the program dies before it.
func (l *life) last() bool {
	l.arms.Lock()
	defer l.arms.Unlock()
	if l.after.Load() > 0 && l.after.Add(-1) == 0 {
		l.shot = true
		return true
	}
	return false
}

// disarm lets the program live, unless its last operation has come: then it returns when it is
// dead.
func (l *life) disarm() {
	l.arms.Lock()
	l.after.Store(0)
	shot := l.shot
	l.arms.Unlock()
	if shot {
		<-l.ended
	}
}

// strike ends the program at this instant: first nobody hears of it any more, then it has no disk.
func (l *life) strike(how death) {
	l.once.Do(func() {
		n := l.node
		n.w.logf("%s: %s", n.name, how)
		l.struck.Store(true)
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
		n.w.graves.Go(l.bury)
	})
}

// bury waits until a dead program has noticed.
func (l *life) bury() {
	time.Sleep(5 * time.Second) // whatever it still tries, it must have no effect
	l.reloads.Wait()            // a stop would wait for a lock, and fake time for the stop
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.app.Stop(ctx) //nolint:errcheck // nothing can be written any more
}

// take gives the node's life to who ends it; nil when somebody else does.
func (n *node) take() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held || n.life == nil {
		return nil
	}
	n.held = true
	return n.life
}

func (n *node) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = false
}

// stop ends a life in order, unless it is struck before.
func (l *life) stop() error {
	l.disk.release()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := l.app.Stop(ctx)
	l.once.Do(func() {
		l.node.w.logf("%s has stopped: %v", l.node.name, err)
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

// shutDown ends a node for good.
func (n *node) shutDown() {
	l := n.take()
	if l == nil {
		n.w.t.Errorf("%s is not up in the end", n.name)
		return
	}
	if err := l.stop(); err != nil {
		n.w.t.Errorf("stopping %s: %v", n.name, err)
	}
	if open := l.mem.Handles(); open > 0 {
		n.w.t.Errorf("%s has left %d files open", n.name, open)
	}
}
