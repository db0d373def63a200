package disk

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// forEachSeed calls f with n seeds, several in parallel, and stops at the first failure. In `make
// race`, a quarter of the seeds is enough: `make test-long` runs all.
func forEachSeed(t *testing.T, n int, f func(t testing.TB, seed uint64)) {
	t.Helper()
	if soak.Raced() {
		n = (n + 3) / 4
	}
	first := soak.Seed(t)
	const workers = 4
	var wg sync.WaitGroup
	next := make(chan uint64)
	for range workers {
		wg.Go(func() {
			for seed := range next {
				if f(t, seed); t.Failed() {
					t.Logf("%s=%d", soak.SeedVariable, seed)
					for range next { // drain
					}
					return
				}
			}
		})
	}
	for seed := range uint64(n) {
		next <- first + seed
	}
	close(next)
	wg.Wait()
}

// TestCrashes repeatedly cuts the power at a random disk operation and checks that all acknowledged
// spans survive. A crash loses a random part of unsynced data, so the test also checks that spans
// are synced before they are acknowledged.
func TestCrashes(t *testing.T) {
	forEachSeed(t, soak.Rounds(t, 200, 40), crashAndReopen)
}

// outage simulates one power cut or, less often, a killed process.
type outage struct {
	before, left *vfstest.Mem // left is the disk after the outage
	power        *rand.Rand   // chooses what a power cut loses
	kill         bool
	once         sync.Once
}

func newOutage(mem *vfstest.Mem, rnd *rand.Rand) *outage {
	return &outage{before: mem, power: rand.New(rand.NewPCG(rnd.Uint64(), 1)), kill: rnd.IntN(4) == 0}
}

// strike triggers the outage. Only the first call has an effect.
func (o *outage) strike() {
	o.once.Do(func() {
		if o.kill {
			o.left = o.before.Kill()
		} else {
			o.left = o.before.Crash(o.power)
		}
	})
}

// after returns a rule that triggers the outage after a number of changes to the disk.
func (o *outage) after(changes int) *vfstest.Rule {
	return &vfstest.Rule{Op: vfstest.OpChanges, Skip: changes, Times: 1, Hook: o.strike}
}

func crashAndReopen(t testing.TB, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	mem := vfstest.NewMem()
	numbers := newNumbers()
	clock := newClock()
	for range 1 + rnd.IntN(3) {
		o := newOutage(mem, rnd)
		s := newSetup(vfstest.Inject(mem, o.after(rnd.IntN(60))))
		if soak.Repeating() {
			s.withLog(t)
		}
		s.clock = clock
		s.config.Memtable.MaxSpans = 10 + rnd.IntN(60)
		s.config.MaxWait = 0
		s.config.Merge.MinSegments = 2 + rnd.IntN(3)
		e := s.build(t)
		if err := e.Start(t.Context()); err == nil {
			writeUntilCrash(t, e, numbers, rnd, clock)
			o.strike()
			e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
		}
		o.strike()
		mem = o.left
	}
	s := newSetup(mem)
	if soak.Repeating() {
		s.withLog(t)
	}
	s.clock, s.config.Merge.MinSegments = clock, 2
	e := s.start(t)
	defer stopStore(t, e)
	checkNothingLost(t, e)
	numbers.check(t, e)
	numbers.send(t, e, 3)
	flushStore(t, e)
	mergeAll(t, e)
	numbers.check(t, e)
}

// writeUntilCrash sends 60 requests from concurrent writers and merges segments meanwhile. Requests
// fail after the outage.
func writeUntilCrash(t testing.TB, e *exporter, numbers *numbers, rnd *rand.Rand, clock *clock) {
	t.Helper()
	writers := 1 + rnd.IntN(3)
	counts := make([][]int, writers)
	for i := range 60 {
		counts[i%writers] = append(counts[i%writers], 1+rnd.IntN(15))
	}
	var wg sync.WaitGroup
	for _, list := range counts {
		wg.Go(func() {
			for i, count := range list {
				b := numbers.next(count)
				if err := e.Consume(t.Context(), b); err == nil {
					numbers.ack(b)
				}
				clock.advance(time.Millisecond)
				if i%4 == 3 {
					e.merger.mergeNext(withoutPauses(e)) //nolint:errcheck // the disk may be gone
				}
			}
		})
	}
	wg.Wait()
}
