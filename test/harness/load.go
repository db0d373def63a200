package harness

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
)

// Endless repeats requests without end.
func Endless(requests iter.Seq[bench.Request]) iter.Seq[bench.Request] {
	all := slices.Collect(requests)
	return func(yield func(bench.Request) bool) {
		for i := 0; yield(all[i%len(all)]); i++ {
		}
	}
}

// Of the load in TestOutage.
const (
	spansOfLoad   = 100 // in a request
	loadsAtOnce   = 4   // requests
	SpansInFlight = spansOfLoad * loadsAtOnce
	loadInterval  = 10 * time.Millisecond // between requests: a rate that the test's ledger keeps up with
)

// PacedLoad sends spans at a steady rate until it is told to end.
type PacedLoad struct {
	t       *testing.T
	stop    context.CancelFunc // sends no more
	done    chan struct{}
	Err     error       // set when done
	Result  load.Result // set when done
	mu      sync.Mutex
	acked   int // requests
	changed *sync.Cond
}

// StartPacedLoad starts to send requests of the data set with the given seed to target, and records them in l.
func StartPacedLoad(t *testing.T, target string, seed uint64, l *Ledger) *PacedLoad {
	t.Helper()
	stopped, stop := context.WithCancel(t.Context())
	p := &PacedLoad{t: t, stop: stop, done: make(chan struct{})}
	p.changed = sync.NewCond(&p.mu)
	requests := func(yield func(bench.Request) bool) {
		tick := time.NewTicker(loadInterval)
		defer tick.Stop()
		for r := range bench.New(seed, time.Now()).Requests(1<<30, spansOfLoad) {
			l.Note(t, r.Body, false)
			if stopped.Err() != nil || !yield(r) {
				return
			}
			<-tick.C
		}
	}
	go func() {
		defer close(p.done)
		p.Result, p.Err = load.Run(t.Context(), load.Options{Target: target, Connections: 2, InFlight: loadsAtOnce / 2, Retry: time.Minute,
			Acked: func(r bench.Request) {
				l.Note(t, r.Body, true)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.acked++
				p.changed.Broadcast()
			}}, requests)
	}()
	t.Cleanup(func() { <-p.done })
	return p
}

// Await waits until so many requests are acknowledged.
func (p *PacedLoad) Await(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.acked < requests {
		p.changed.Wait()
	}
}

// End waits until what was sent is answered.
func (p *PacedLoad) End() {
	p.t.Helper()
	p.stop()
	if <-p.done; p.Err != nil {
		p.t.Fatal(p.Err)
	}
}

// Rate is what was acknowledged, in spans per second.
func (p *PacedLoad) Rate() float64 { return float64(p.Result.Acked) / p.Result.Elapsed.Seconds() }

// Shuffled returns requests in another order.
func Shuffled(requests iter.Seq[bench.Request]) iter.Seq[bench.Request] {
	all := slices.Collect(requests)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return slices.Values(all)
}
