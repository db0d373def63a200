package simulation_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

// simulationSeed replays one scenario.
var simulationSeed = flag.Uint64("seed", 0, "run TestSimulation with this seed only")

// TestSimulation runs clients, agents with queues, and collectors with stores in one process, on a
// simulated network, simulated disks and in fake time. It injects faults: partitions, resets, slow
// links, process and machine crashes between any two operations of a disk, full, failing and
// hanging disks, clock jumps, and reloads. When the faults have ended, every acknowledged span is
// found exactly once in each store, no span is found that was not sent, and the accounts of every
// program balance.
//
// A seed determines a scenario, except for the order in which goroutines run at the same time.
// Consecutive seeds start at TRACING_SEED.
func TestSimulation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	first, runs := *simulationSeed, 1
	if first == 0 {
		first, runs = soak.Seed(t), soak.Rounds(t, simulationRuns, 10)
	}
	var sum simulationResult
	for i := range runs {
		seed := first + uint64(i)
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { simulate(t, seed, &sum) }) {
			t.Fatalf("replay: go test -run TestSimulation -seed %d ./test/simulation", seed)
		}
	}
	if runs >= simulationRuns && !sum.thorough() {
		t.Errorf("the scenarios do not cover everything: %+v", sum)
	}
	t.Logf("%d scenarios: %+v", runs, sum)
}

// simulationRuns is the number of scenarios of TestSimulation. Together they cover everything that
// can happen.
const simulationRuns = 200

// simulate runs the scenario of one seed.
func simulate(t *testing.T, seed uint64, sum *simulationResult) {
	defer func() {
		if p := recover(); p != nil { // for example a deadlock that synctest detects
			panic(fmt.Sprintf("%v\nreplay: go test -run TestSimulation -seed %d ./test/simulation", p, seed))
		}
	}()
	runtime.GOMAXPROCS(1 + int(seed%2)) // with two, goroutines also run in parallel
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		defer w.report()
		w.start()
		w.play()
		w.awaitQueues()
		w.check()
		w.stop()
		sum.add(&w.result)
		t.Logf("fingerprint %016x", w.net.Fingerprint())
	})
}
