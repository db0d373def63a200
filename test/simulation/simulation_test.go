package simulation_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// simulationRuns is how many seeds TestSimulation takes where SIMULATION_SEEDS does not say how many.
const simulationRuns = 500

// simulationSeed replays one seed.
var simulationSeed = flag.Uint64("seed", 0, "run TestSimulation with this seed only")

// simulationStart is the first seed where none is given: SIMULATION_START=1000 SIMULATION_SEEDS=500 continues an earlier run.
const simulationStart = "SIMULATION_START"

// TestSimulation runs clients, agents with queues on disk and collectors with stores in one process, on a network and on disks in memory and in
// fake time, and lets go wrong what can: partitions, resets, slow links, deaths of programs and machines between any two operations of
// their disks, full, failing and hanging disks, clocks that jump. When all is well again, every span that a client was told is taken is found,
// once in each store, nothing is found that was not sent, and the accounting of every program is right. A seed is a scenario; what a run
// decides by itself is in which order goroutines run that could run at the same moment.
func TestSimulation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	first, runs := harness.EnvNumber(t, simulationStart, uint64(1)), harness.EnvNumber(t, "SIMULATION_SEEDS", simulationRuns)
	if *simulationSeed != 0 {
		first, runs = *simulationSeed, 1
	}
	if testing.Short() {
		runs = min(runs, 20)
	}
	var sum simulationResult
	began := time.Now()
	for i := range runs {
		seed := first + uint64(i)
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { simulate(t, seed, &sum) }) {
			t.Fatalf("replay: go test -run TestSimulation -seed %d ./test/simulation", seed)
		}
	}
	if runs >= simulationRuns && !sum.thorough() {
		t.Errorf("the scenarios leave out something: %+v", sum)
	}
	t.Logf("%d seeds, %v each: %+v", runs, (time.Since(began) / time.Duration(runs)).Round(time.Millisecond), sum)
}

// simulate runs the scenario of one seed.
func simulate(t *testing.T, seed uint64, sum *simulationResult) {
	defer func() {
		if p := recover(); p != nil { // a deadlock of the bubble, or a bug
			panic(fmt.Sprintf("%v\nreplay: go test -run TestSimulation -seed %d ./test/simulation", p, seed))
		}
	}()
	runtime.GOMAXPROCS(1 + int(seed%2)) // one: few orders of what happens at the same moment; two: also what happens in the middle of it
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		defer w.report()
		w.start()
		w.play()
		w.heal()
		w.check()
		w.stop()
		sum.add(&w.result)
		t.Logf("fingerprint %016x", w.net.Fingerprint())
	})
}
