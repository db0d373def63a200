package spool

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

var seed = flag.Uint64("seed", 0, "run one seed of the crash test")

// After a power failure or a kill at any moment, acknowledged items are there again, no item
// appears that was never put, and within one run no item is taken twice.
func TestCrashes(t *testing.T) {
	if *seed != 0 {
		crashes(t, *seed)
		return
	}
	seeds := uint64(200)
	if testing.Short() {
		seeds = 60
	}
	for s := range seeds {
		if crashes(t, s+1); t.Failed() {
			t.Fatalf("replay with: go test ./internal/spool -run TestCrashes -seed %d", s+1)
		}
	}
}

// life is a queue under random operations, and what is known about it.
type life struct {
	t        *testing.T
	rng      *rand.Rand
	q        *Queue
	next     uint64
	promised map[uint64]bool // put, and not done: must be there after a crash
	taken    map[uint64]bool // in this life
	inFlight []Item
}

func crashes(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	mem := vfstest.NewMem()
	l := &life{t: t, rng: rng, promised: map[uint64]bool{}}
	o := options(func(o *Options) { o.LogSize = 1 << (11 + rng.Int64N(4)) })
	for range 3 + rng.IntN(4) {
		l.q, l.taken, l.inFlight = open(t, mem, o), map[uint64]bool{}, nil
		for range rng.IntN(200) {
			l.step()
		}
		switch rng.IntN(3) {
		case 0:
			mem = mem.Crash(rng)
		case 1:
			mem = mem.Kill()
		default:
			if err := l.q.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.q, l.taken = open(t, mem, o), map[uint64]bool{}
	for _, n := range takeAll(t, l.q) {
		l.took(n)
		delete(l.promised, n)
	}
	if len(l.promised) > 0 {
		t.Errorf("lost: %v", l.promised)
	}
	if s := l.q.State(); s != (State{}) {
		t.Errorf("state %+v of an empty queue", s)
	}
}

func (l *life) step() {
	switch k := l.rng.IntN(10); {
	case k < 5:
		put(l.t, l.q, l.next)
		l.promised[l.next] = true
		l.next++
	case k < 8:
		i, ok := l.q.TryTake()
		if !ok {
			return
		}
		l.took(numberOf(l.t, i))
		l.inFlight = append(l.inFlight, i)
	case len(l.inFlight) > 0:
		at := l.rng.IntN(len(l.inFlight))
		i := l.inFlight[at]
		l.inFlight = slices.Delete(l.inFlight, at, at+1)
		l.q.Done(&i)
		delete(l.promised, numberOf(l.t, i))
	}
}

func (l *life) took(n uint64) {
	if n >= l.next || l.taken[n] {
		l.t.Errorf("%d was taken; %d were put; taken before: %t", n, l.next, l.taken[n])
	}
	l.taken[n] = true
}
