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

// leadersDie simulates with two of three collectors dying while they lead, without a word: one right before a calculation, the other one
// some time before.
func leadersDie(t *testing.T, s *simulation) {
	t.Helper()
	before, sometime := 45*s.steps-1, 60*s.steps-7
	s.run(t, func(step int) {
		if step == before || step == sometime {
			s.kill(s.leader())
		}
	})
}

// simSeeds are the seeds of the simulation: what the environment says, or 1 to 3, under -short 1.
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

// simTarget is such that chance alone puts no rate off by a fifth: an interval has 1800 traces, give or take 2 %, and the first estimate of an
// operation that begins with few rests on some hundred.
const simTarget = 30

// Of a hundred services, some with bursts, every operation is within 20 % of the target three intervals after it can be, stays there, and
// does not swing; two leaders die meanwhile, and each takes no more than one calculation with it.
func TestAdaptiveSimulation(t *testing.T) {
	for _, seed := range simSeeds(t) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkAdaptive(t, seed) }) })
	}
}

func checkAdaptive(t *testing.T, seed uint64) {
	s := newSimulation(seed, func(c *AdaptiveConfig) { c.Target = simTarget })
	leadersDie(t, s)
	judged := 0
	for _, o := range s.operations {
		rounds := s.judged(o)
		judged += min(1, len(rounds))
		for _, round := range rounds {
			if off := o.expected[round]/s.config.Target - 1; math.Abs(off) > 0.2 {
				t.Errorf("%s %s, %.3g traces per second: in round %d it is %.1f %% off the target", o.service, o.name, o.traffic[round], round, 100*off)
			}
		}
		if n := s.turns(o, rounds); n > 1 {
			t.Errorf("%s %s: its rate turns %d times: %.3g", o.service, o.name, n, o.expected)
		}
	}
	if judged < 150 {
		t.Errorf("of %d operations, only %d were ever reachable", len(s.operations), judged)
	}
	checkLeaders(t, s)
}

// checkLeaders checks that somebody calculated in all rounds, but for one at most where a leader died.
func checkLeaders(t *testing.T, s *simulation) {
	t.Helper()
	missed, leaders := 0, map[string]bool{}
	for round, by := range s.by {
		if by == "" {
			missed++
			if round > 0 && s.by[round-1] == "" {
				t.Errorf("nobody calculated in the rounds %d and %d", round-1, round)
			}
			continue
		}
		leaders[by] = true
	}
	if missed > 2 || len(leaders) != simCollectors {
		t.Errorf("nobody calculated in %d rounds; %d collectors did in the others", missed, len(leaders))
	}
}

// With one trace per second, an interval has sixty: the rate of an operation cannot be known to 20 % from one of them, but it is known nearly
// always from those in which it was the same.
func TestAdaptiveSimulationOfFewTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a few seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(2, func(*AdaptiveConfig) {})
		leadersDie(t, s)
		near, far, all := 0, 0, 0
		for _, o := range s.operations {
			for _, round := range s.judged(o) {
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
			t.Errorf("%d of %d are within 20 %%, %d are off by more than half", near, all, far)
		}
		t.Logf("%d of %d are within 20 %%, %d are off by more than half", near, all, far)
	})
}

// startAdaptive starts an extension in fake time. r is told what it reports.
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

// begin lets traces begin in a minute, so many sampled ones with a probability.
func begin(e *extension, n int, p float64) {
	e.Observe("", slices.Repeat([]sampling.Root{{Service: "cart", Operation: "GET /", Sampler: sampling.SamplerProbabilistic, Param: p}}, n))
	time.Sleep(time.Minute)
	synctest.Wait()
}

func told(t *testing.T, e *extension, tenant, service string) string {
	t.Helper()
	a, err := e.Strategy(t.Context(), sampling.Question{Tenant: tenant, Service: service})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(a.Strategy)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The shapes of answers; probabilities that outlive the process; and what an explanation has of all that.
func TestAdaptive(t *testing.T) {
	const known = `{"strategyType":"PROBABILISTIC","operationSampling":{"defaultSamplingProbability":0.001,"defaultLowerBoundTracesPerSecond":0.5,` +
		`"perOperationStrategies":[{"operation":"GET /","probabilisticSampling":{"samplingRate":0.0001}}],"defaultUpperBoundTracesPerSecond":0}}`
	const unknown = `{"strategyType":"PROBABILISTIC","operationSampling":{"defaultSamplingProbability":0.001,"defaultLowerBoundTracesPerSecond":0.5,` +
		`"perOperationStrategies":[],"defaultUpperBoundTracesPerSecond":0}}`
	synctest.Test(t, func(t *testing.T) {
		store, r := sampling.NewMemory(time.Now), &reports{}
		lower := func(c *AdaptiveConfig) { c.LowerBound = 0.5 }
		e := startAdaptive(t, store, r, lower)
		if got := told(t, e, "", "cart"); got != unknown {
			t.Errorf("of a service that nobody has seen: %s", got)
		}
		for range 4 {
			begin(e, 600, 0.001)
		}
		stop(t, e)
		e = startAdaptive(t, store, r, lower)
		defer stop(t, e)
		if got := told(t, e, "", "cart"); got != known {
			t.Errorf("got  %s\nwant %s", got, known)
		}
		if got := told(t, e, "another", "cart"); got != unknown {
			t.Errorf("of another tenant: %s", got)
		}
		begin(e, 60, 0.0001)
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
	if err := (tool{pipeline.SystemEnv()}).show(&out, x); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cart, operation GET /: probabilistic 0.0001\n", "from     adaptive calculated by ", "1 traces per second are wanted",
		"the next calculation is up to", "GET /: 0.0001, before 0.0001, which would sample 1 per second; " + adaptive.ReasonKept,
		"10 per second sampled of 1e+04, weight "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	if x, err := e.Explain(t.Context(), "", "cart", ""); err != nil || len(x.Adaptive.Operations) != 1 || x.Adaptive.Operations[0].Intervals != nil {
		t.Errorf("of all operations: %+v, %v", x.Adaptive, err)
	}
	if x, err := e.Explain(t.Context(), "", "unseen", "GET /"); err != nil || len(x.Adaptive.Operations) != 0 {
		t.Errorf("of a service that nobody has seen: %+v, %v", x.Adaptive, err)
	}
}

// brokenStore keeps nothing while it is broken.
type brokenStore struct {
	*sampling.Memory
	broken atomic.Bool
}

func (b *brokenStore) AddThroughput(ctx context.Context, t sampling.Throughput, since time.Time) error {
	if b.broken.Load() {
		return errors.New("the disk is on fire")
	}
	return b.Memory.AddThroughput(ctx, t, since)
}

// A store that fails is reported, and clients keep what holds.
func TestAdaptiveStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, r := &brokenStore{Memory: sampling.NewMemory(time.Now)}, &reports{}
		e := startAdaptive(t, store, r)
		defer stop(t, e)
		for range 4 {
			begin(e, 600, 0.001)
		}
		before := told(t, e, "", "cart")
		store.broken.Store(true)
		begin(e, 600, 0.001)
		if !strings.Contains(r.get(), "on fire") || told(t, e, "", "cart") != before {
			t.Errorf("reported: %q; told: %s", r.get(), told(t, e, "", "cart"))
		}
		store.broken.Store(false)
		begin(e, 600, 0.001)
		if r.get() != "" {
			t.Errorf("still reported: %s", r.get())
		}
	})
}

// What was counted when a collector is stopped belongs to the interval in which it was, also where the round for it was due.
func TestAdaptiveStops(t *testing.T) {
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
					t.Errorf("%+v, %v: the lease was not given back", l, err)
				}
			})
		})
	}
}

// setBack is a clock that can be set back.
type setBack struct{ by atomic.Int64 }

func (c *setBack) now() time.Time { return time.Now().Add(-time.Duration(c.by.Load())).Round(0) }

// A clock that is set back does not end calculations: they go on within two intervals.
func TestAdaptiveClockSetBack(t *testing.T) {
	for _, by := range []time.Duration{30 * time.Second, 90 * time.Second, time.Hour, 48 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock setBack
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
					t.Errorf("set back at %v, %v calculated at %v", before, clock.now(), after)
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
	if err == nil || strings.Count(err.Error(), "\n") != 11 || !strings.Contains(err.Error(), "must name a store, for example storage: disk") {
		t.Errorf("%v", err)
	}
	both := ofFile("")
	a := defaultAdaptive()
	both.Adaptive = pipeline.Present(a)
	if err := both.Validate(); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("%v", err)
	}
}
