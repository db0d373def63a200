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

// Shuffled returns requests in a random order, which is the same in every run.
func Shuffled(requests iter.Seq[bench.Request]) iter.Seq[bench.Request] {
	all := slices.Collect(requests)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return slices.Values(all)
}

// Parameters of [SteadyLoad].
const (
	spansPerRequest = 100
	requestsAtOnce  = 4

	// SteadyInterval is the time between two requests, long enough to record every span.
	SteadyInterval = 10 * time.Millisecond

	// SteadyLoadInFlight is the maximum number of spans that are sent and not yet answered.
	SteadyLoadInFlight = spansPerRequest * requestsAtOnce
)

// SteadyLoad sends spans at a steady rate until End is called.
type SteadyLoad struct {
	t    *testing.T
	stop context.CancelFunc
	done chan struct{}

	err    error       // valid when done is closed
	result load.Result // valid when done is closed

	mu      sync.Mutex
	changed *sync.Cond
	acked   int // requests
}

// StartSteadyLoad starts to send requests of the data set with the given seed to an OTLP receiver
// for gRPC at [SteadyInterval], and records them in sent.
func StartSteadyLoad(t *testing.T, target string, seed uint64, sent *SentSpans) *SteadyLoad {
	t.Helper()
	return StartLoad(t, target, seed, sent, SteadyInterval)
}

// StartLoad is like [StartSteadyLoad] with another time between two requests.
func StartLoad(t *testing.T, target string, seed uint64, sent *SentSpans, interval time.Duration) *SteadyLoad {
	t.Helper()
	stopped, stop := context.WithCancel(t.Context())
	s := &SteadyLoad{t: t, stop: stop, done: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	requests := func(yield func(bench.Request) bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for r := range bench.New(seed, time.Now()).Requests(1<<30, spansPerRequest) {
			sent.Record(t, r.Body, false)
			if stopped.Err() != nil || !yield(r) {
				return
			}
			<-tick.C
		}
	}
	acked := func(r bench.Request) {
		sent.Record(t, r.Body, true)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acked++
		s.changed.Broadcast()
	}
	go func() {
		defer close(s.done)
		s.result, s.err = load.Run(t.Context(),
			load.Options{Target: target, Connections: 2, InFlight: requestsAtOnce / 2, Retry: time.Minute, Acked: acked}, requests)
	}()
	t.Cleanup(func() { <-s.done })
	return s
}

// Acked returns the number of requests that have been acknowledged.
func (s *SteadyLoad) Acked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// Await waits until the given number of requests have been acknowledged.
func (s *SteadyLoad) Await(requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.acked < requests {
		s.changed.Wait()
	}
}

// End stops sending and waits until every request has been answered. It fails the test if the load
// failed.
func (s *SteadyLoad) End() load.Result {
	s.t.Helper()
	s.stop()
	if <-s.done; s.err != nil {
		s.t.Fatal(s.err)
	}
	return s.result
}
