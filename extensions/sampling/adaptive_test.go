package sampling

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/extensions/sampling/internal/adaptive"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// runWithCrashes runs a simulation in which two of three collectors crash while they are the
// leader: one right before a calculation, the other one at another time.
func runWithCrashes(t *testing.T, s *simulation) {
	t.Helper()
	before, sometime := 45*s.steps-1, 60*s.steps-7
	s.run(t, func(step int) {
		if step == before || step == sometime {
			s.crash(s.leader())
		}
	})
}

// simSeeds returns the seeds of the simulation: SAMPLING_SEED if set, otherwise 1 to 3, or 1 with
// -short.
func simSeeds(t *testing.T) []uint64 {
	text := os.Getenv("SAMPLING_SEED")
	switch {
	case text == "" && testing.Short():
		return []uint64{1}
	case text == "":
		return []uint64{1, 2, 3}
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return []uint64{seed}
}

// simTarget is large enough that random variation stays well below 20 %: an interval has 1800
// traces (standard deviation about 2 %), and the first estimate of an operation with few traces
// uses some hundred.
const simTarget = 30

// Each operation of 100 services, some with bursts, is within 20 % of the target three intervals
// after the target is reachable, stays there, and does not oscillate. Two leaders crash; each crash
// loses at most one calculation.
func TestAdaptiveSimulation(t *testing.T) {
	for _, seed := range simSeeds(t) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkAdaptive(t, seed) }) })
	}
}

func checkAdaptive(t *testing.T, seed uint64) {
	s := newSimulation(seed, func(c *AdaptiveConfig) { c.Target = simTarget })
	runWithCrashes(t, s)
	judged := 0
	for _, o := range s.operations {
		rounds := s.reachableRounds(o)
		judged += min(1, len(rounds))
		for _, round := range rounds {
			if off := o.expected[round]/s.config.Target - 1; math.Abs(off) > 0.2 {
				t.Errorf("%s %s, %.3g traces per second: round %d is %.1f %% off the target", o.service, o.name, o.traffic[round], round,
					100*off)
			}
		}
		if n := s.reversals(o, rounds); n > 1 {
			t.Errorf("%s %s: rate changes direction %d times: %.3g", o.service, o.name, n, o.expected)
		}
	}
	if judged < 150 {
		t.Errorf("%d operations, but the target was reachable for only %d", len(s.operations), judged)
	}
	checkLeaders(t, s)
}

// checkLeaders checks that each round was calculated, except at most one for each crash.
func checkLeaders(t *testing.T, s *simulation) {
	t.Helper()
	missed, leaders := 0, map[string]bool{}
	for round, by := range s.by {
		if by == "" {
			missed++
			if round > 0 && s.by[round-1] == "" {
				t.Errorf("no calculation in rounds %d and %d", round-1, round)
			}
			continue
		}
		leaders[by] = true
	}
	if missed > 2 || len(leaders) != simCollectors {
		t.Errorf("no calculation in %d rounds; %d leaders in the others", missed, len(leaders))
	}
}

// With a target of one trace per second, an interval has 60. One interval does not determine the
// rate to within 20 %, but all intervals with the same rate nearly always do.
func TestAdaptiveSimulationWithFewTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(2, func(*AdaptiveConfig) {})
		runWithCrashes(t, s)
		near, far, all := 0, 0, 0
		for _, o := range s.operations {
			for _, round := range s.reachableRounds(o) {
				all++
				switch off := math.Abs(o.expected[round]/s.config.Target - 1); {
				case off <= 0.2:
					near++
				case off > 0.5:
					far++
				}
			}
		}
		if float64(near) < 0.98*float64(all) || float64(far) > 0.002*float64(all) {
			t.Errorf("%d of %d within 20 %%, %d off by more than half", near, all, far)
		}
		t.Logf("%d of %d within 20 %%, %d off by more than half", near, all, far)
	})
}

// startAdaptive starts an extension in fake time. Its health is reported to r.
func startAdaptive(t *testing.T, store sampling.Store, r *reports, change ...func(*AdaptiveConfig)) *extension {
	t.Helper()
	a := defaultAdaptive()
	a.Storage = pipeline.BoundRef(store)
	for _, f := range change {
		f(&a)
	}
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	c := defaults()
	c.Adaptive = pipeline.Present(a)
	e, err := newExtension(settings(r), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

func stop(t *testing.T, e *extension) {
	t.Helper()
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// observe observes n traces that were sampled with probability p, and waits for a minute.
func observe(e *extension, n int, p float64) {
	e.Observe("", slices.Repeat([]sampling.Root{{Service: "cart", Operation: "GET /", Sampler: sampling.SamplerProbabilistic, Param: p}},
		n))
	time.Sleep(time.Minute)
	synctest.Wait()
}

// strategyJSON returns the strategy of a service as JSON.
func strategyJSON(t *testing.T, e *extension, tenant, service string) string {
	t.Helper()
	a, err := e.Strategy(t.Context(), sampling.Request{Tenant: tenant, Service: service})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(a.Strategy)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Checks the forms of responses, that probabilities survive a restart, and explanations.
func TestAdaptive(t *testing.T) {
	const known = `{"strategyType":"PROBABILISTIC","operationSampling":{"defaultSamplingProbability":0.001,"defaultLowerBoundTracesPerSecond":0.5,` +
		`"perOperationStrategies":[{"operation":"GET /","probabilisticSampling":{"samplingRate":0.0001}}],"defaultUpperBoundTracesPerSecond":0}}`
	const unknown = `{"strategyType":"PROBABILISTIC","operationSampling":{"defaultSamplingProbability":0.001,"defaultLowerBoundTracesPerSecond":0.5,` +
		`"perOperationStrategies":[],"defaultUpperBoundTracesPerSecond":0}}`
	synctest.Test(t, func(t *testing.T) {
		store, r := sampling.NewMemory(time.Now), &reports{}
		lower := func(c *AdaptiveConfig) { c.LowerBound = 0.5 }
		e := startAdaptive(t, store, r, lower)
		if got := strategyJSON(t, e, "", "cart"); got != unknown {
			t.Errorf("unknown service: %s", got)
		}
		for range 4 {
			observe(e, 600, 0.001)
		}
		stop(t, e)
		e = startAdaptive(t, store, r, lower)
		defer stop(t, e)
		if got := strategyJSON(t, e, "", "cart"); got != known {
			t.Errorf("got  %s\nwant %s", got, known)
		}
		if got := strategyJSON(t, e, "another", "cart"); got != unknown {
			t.Errorf("other tenant: %s", got)
		}
		observe(e, 60, 0.0001)
		checkAdaptiveExplained(t, e)
		if r.get() != "" {
			t.Errorf("reported: %s", r.get())
		}
	})
}

func checkAdaptiveExplained(t *testing.T, e *extension) {
	t.Helper()
	x, err := e.Explain(t.Context(), "", "cart", "GET /")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := (tool{env: pipeline.SystemEnv()}).show(&out, x); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cart, operation GET /: probabilistic 0.0001\n", "from     adaptive calculated by ",
		"target 1 traces per second",
		"current leader: ", "GET /: probability 0.0001, previously 0.0001 (1 traces per second); " + adaptive.ReasonKept,
		"sampled 10 of 1e+04 traces per second, weight "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	if x, err := e.Explain(t.Context(), "", "cart", ""); err != nil || len(x.Adaptive.Operations) != 1 ||
		x.Adaptive.Operations[0].Intervals != nil {
		t.Errorf("all operations: %+v, %v", x.Adaptive, err)
	}
	if x, err := e.Explain(t.Context(), "", "unseen", "GET /"); err != nil || len(x.Adaptive.Operations) != 0 {
		t.Errorf("unknown service: %+v, %v", x.Adaptive, err)
	}
}

// brokenStore fails to store counts while broken is set.
type brokenStore struct {
	*sampling.Memory
	broken atomic.Bool
}

func (b *brokenStore) AddThroughput(ctx context.Context, t sampling.Throughput, since time.Time) error {
	if b.broken.Load() {
		return errors.New("disk failure")
	}
	return b.Memory.AddThroughput(ctx, t, since)
}

// Store errors are reported, and the strategies stay the same.
func TestAdaptiveStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, r := &brokenStore{Memory: sampling.NewMemory(time.Now)}, &reports{}
		e := startAdaptive(t, store, r)
		defer stop(t, e)
		for range 4 {
			observe(e, 600, 0.001)
		}
		before := strategyJSON(t, e, "", "cart")
		store.broken.Store(true)
		observe(e, 600, 0.001)
		if !strings.Contains(r.get(), "disk failure") || strategyJSON(t, e, "", "cart") != before {
			t.Errorf("reported: %q; strategy: %s", r.get(), strategyJSON(t, e, "", "cart"))
		}
		store.broken.Store(false)
		observe(e, 600, 0.001)
		if r.get() != "" {
			t.Errorf("still reported: %s", r.get())
		}
	})
}

// Stop stores the counts for the interval in which they were made, even if its round is overdue.
func TestAdaptiveStop(t *testing.T) {
	for name, wait := range map[string]time.Duration{"within an interval": 30 * time.Second, "when a round is due": 61 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, r := sampling.NewMemory(time.Now), &reports{}
				round := time.Now().Truncate(time.Minute).Add(time.Minute)
				e := startAdaptive(t, store, r)
				synctest.Wait()
				s := e.source.(*adaptiveSource)
				s.stop()
				<-s.stopped
				e.Observe("", []sampling.Root{{Service: "cart", Operation: "GET /", Sampler: sampling.SamplerProbabilistic, Param: 0.001}})
				time.Sleep(wait)
				stop(t, e)
				all, err := store.Throughput(t.Context(), time.Time{}, round.Add(time.Hour))
				if err != nil || len(all) != 1 || !all[0].Until.Equal(round) || !all[0].Last || len(all[0].Rows) != 1 {
					t.Errorf("%+v, %v; want one until %s", all, err, round)
				}
				if l, err := store.Lease(t.Context(), leaderResource, "another", time.Second); err != nil || l.Owner != "another" {
					t.Errorf("%+v, %v: lease not released", l, err)
				}
			})
		})
	}
}

// adjustableClock is a clock that can be set back.
type adjustableClock struct{ by atomic.Int64 }

func (c *adjustableClock) now() time.Time {
	return time.Now().Add(-time.Duration(c.by.Load())).Round(0)
}

// If the clock is set back, calculations continue within two intervals.
func TestAdaptiveClockSetBack(t *testing.T) {
	for _, by := range []time.Duration{30 * time.Second, 90 * time.Second, time.Hour, 48 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock adjustableClock
				store, set := sampling.NewMemory(clock.now), settings(&reports{})
				set.Env.Now = clock.now
				c := defaultAdaptive()
				c.Storage = pipeline.BoundRef[sampling.Store](store)
				s, err := newAdaptiveSource(set, c)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				before, _ := store.LatestCalculation(t.Context())
				clock.by.Store(int64(by))
				time.Sleep(2*time.Minute + by%time.Minute + time.Second)
				synctest.Wait()
				after, _ := store.LatestCalculation(t.Context())
				if before == nil || after == before || after.At.After(clock.now()) {
					t.Errorf("set back from %v to %v: calculated at %v", before, clock.now(), after)
				}
				if err := s.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestBadAdaptiveConfig(t *testing.T) {
	c := AdaptiveConfig{Buckets: -1, Tolerance: 1, Initial: 2, LowerBound: -1}
	err := c.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 11 ||
		!strings.Contains(err.Error(), "must name a store, for example storage: disk") {
		t.Errorf("%v", err)
	}
	both := fileConfig("")
	a := defaultAdaptive()
	both.Adaptive = pipeline.Present(a)
	if err := both.Validate(); err == nil || !strings.Contains(err.Error(), "cannot be combined") {
		t.Errorf("%v", err)
	}
}
