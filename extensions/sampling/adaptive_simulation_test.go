package sampling

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// The simulation has services with Zipf-distributed traffic, some with bursts. Their processes
// request strategies from one of three collectors once a minute, and send sampled traces to any of
// them. It runs in fake time, and is deterministic for a seed.
const (
	simServices   = 100
	simCollectors = 3
	simRounds     = 80
	simBusiest    = 60_000. // traces per second of the busiest operation
	simStep       = 5 * time.Second
	simPoll       = time.Minute
	simSkew       = time.Millisecond // between the clocks of collectors, so that no two act at the same instant
)

// simOperation is an operation of a simulated service.
type simOperation struct {
	service, name string
	rate          float64 // traces per second, without bursts
	burst         float64 // factor; 0 means no burst
	begins, ends  int     // of the burst, in steps

	realized, expected, traffic []float64 // traces per second, by round
	processes                   []*simProcess
}

// at returns the number of new traces per second in a step.
func (o *simOperation) at(step int) float64 {
	if o.burst > 0 && step >= o.begins && step < o.ends {
		return o.rate * o.burst
	}
	return o.rate
}

// simProcess is a process of a service. It samples with the last probability that it got.
type simProcess struct {
	collector   int // index of the collector
	phase       time.Duration
	probability float64
}

type simulation struct {
	rnd        *rand.Rand
	config     AdaptiveConfig
	shared     *sampling.Memory
	collectors []*adaptiveSource // nil if crashed
	operations []*simOperation
	steps      int      // in a round
	by         []string // collector that calculated in each round; "" if none
}

func newSimulation(seed uint64, change func(*AdaptiveConfig)) *simulation {
	s := &simulation{rnd: rand.New(rand.NewPCG(seed, 1)), config: defaultAdaptive(), shared: sampling.NewMemory(time.Now)}
	s.config.Storage = pipeline.BoundRef[sampling.Store](s.shared)
	change(&s.config)
	s.steps = int(s.config.Interval.Std() / simStep)
	for i := range simServices {
		for j := range 1 + s.rnd.IntN(3) {
			o := &simOperation{service: fmt.Sprintf("service-%02d", i), name: fmt.Sprintf("GET /%d", j),
				rate: simBusiest / math.Pow(float64(i+1), 1.4) / float64(1+j*j)}
			if s.rnd.IntN(3) == 0 {
				o.burst = []float64{0.2, 0.5, 2, 5, 20}[s.rnd.IntN(5)]
				o.begins = (25 + s.rnd.IntN(10)) * s.steps
				o.begins += s.rnd.IntN(s.steps) // anywhere in an interval
				o.ends = o.begins + (15+s.rnd.IntN(10))*s.steps + s.rnd.IntN(s.steps)
			}
			for range 1 + s.rnd.IntN(4) {
				o.processes = append(o.processes, &simProcess{collector: s.rnd.IntN(simCollectors), probability: s.config.Initial,
					phase: time.Duration(s.rnd.IntN(int(simPoll / simStep)))})
			}
			s.operations = append(s.operations, o)
		}
	}
	return s
}

// start starts a collector whose clock is behind by the given duration.
func (s *simulation) start(t *testing.T, behind time.Duration) *adaptiveSource {
	env := pipeline.SystemEnv()
	env.Now = func() time.Time { return time.Now().Add(-behind) }
	env.Rand = s.rnd.Uint64
	src, err := newAdaptiveSource(pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: env,
		Report: func(err error) {
			if err != nil {
				t.Error(err)
			}
		}}, s.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return src
}

// leader returns the index of the collector that made the latest calculation.
func (s *simulation) leader() int {
	latest, _ := s.shared.LatestCalculation(context.Background())
	return slices.IndexFunc(s.collectors, func(c *adaptiveSource) bool { return c != nil && latest != nil && c.name == latest.By })
}

// crash stops a collector without releasing its lease or storing its counts.
func (s *simulation) crash(i int) {
	s.collectors[i].stop()
	<-s.collectors[i].stopped
	s.collectors[i] = nil
}

// run simulates all rounds. at is called before each step.
func (s *simulation) run(t *testing.T, at func(step int)) {
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second))) // not aligned with rounds
	for i := range simCollectors {
		time.Sleep(100 * simSkew) // keeps periodic tasks of collectors apart from requests of processes
		s.collectors = append(s.collectors, s.start(t, time.Duration(i)*simSkew))
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	for round := range simRounds {
		for _, o := range s.operations {
			o.realized, o.expected, o.traffic = append(o.realized, 0), append(o.expected, 0), append(o.traffic, 0)
		}
		before, _ := s.shared.LatestCalculation(t.Context())
		for step := round * s.steps; step < (round+1)*s.steps; step++ {
			at(step)
			for _, o := range s.operations {
				s.traffic(o, round, step)
			}
			time.Sleep(simStep)
			synctest.Wait()
		}
		s.by = append(s.by, "")
		if after, _ := s.shared.LatestCalculation(t.Context()); after != before {
			s.by[round] = after.By
		}
	}
	for _, c := range s.collectors {
		if c == nil {
			continue
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// traffic simulates the new traces of an operation in a step, and sends the sampled ones.
func (s *simulation) traffic(o *simOperation, round, step int) {
	rate := o.at(step)
	for _, p := range o.processes {
		if time.Duration(step)%(simPoll/simStep) == p.phase {
			s.request(o, p)
		}
		mean := rate / float64(len(o.processes)) * simStep.Seconds() * p.probability
		n := poisson(s.rnd, mean)
		o.expected[round] += mean / (float64(s.steps) * simStep.Seconds())
		o.realized[round] += float64(n) / (float64(s.steps) * simStep.Seconds())
		s.send(o, p, n)
	}
	o.traffic[round] += rate / float64(s.steps)
}

// request lets a process request its strategy. If its collector has crashed, it switches to another
// one.
func (s *simulation) request(o *simOperation, p *simProcess) {
	for s.collectors[p.collector] == nil {
		p.collector = (p.collector + 1) % len(s.collectors)
	}
	d, err := s.collectors[p.collector].decide(context.Background(), "", o.service)
	if err == nil {
		p.probability = d.entry.strategy.Sampler(o.name).Param
	}
}

// send sends n root spans to random collectors. If n is 0, it sometimes sends one that was sampled
// because of the lower bound, as clients do once a minute.
func (s *simulation) send(o *simOperation, p *simProcess, n int) {
	all := make([]sampling.Root, n, n+1)
	for i := range all {
		all[i] = sampling.Root{Service: o.service, Operation: o.name, Sampler: sampling.SamplerProbabilistic, Param: p.probability}
	}
	if n == 0 && s.rnd.IntN(s.steps) == 0 {
		all = append(all, sampling.Root{Service: o.service, Operation: o.name, Sampler: sampling.SamplerRateLimiting,
			Param: s.config.LowerBound})
	}
	for len(all) > 0 {
		part := all[:min(len(all), 1+n/2)]
		all = all[len(part):]
		to := s.rnd.IntN(len(s.collectors))
		for s.collectors[to] == nil {
			to = (to + 1) % len(s.collectors)
		}
		s.collectors[to].counter.Observe("", part)
	}
}

// poisson returns a Poisson-distributed random number; for large means it uses the normal
// approximation.
func poisson(rnd *rand.Rand, mean float64) int {
	if mean > 500 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rnd.NormFloat64())))
	}
	n := 0
	for sum := rnd.ExpFloat64(); sum < mean; sum += rnd.ExpFloat64() {
		n++
	}
	return n
}

// ideal returns the best possible probability of an operation by round: the result of a calculation
// that knows the true rate of the interval that it uses, and at most doubles the probability.
func (s *simulation) ideal(o *simOperation) []float64 {
	lag := 1 + int(s.config.Delay.Std()/s.config.Interval.Std())
	p, out := s.config.Initial, make([]float64, simRounds)
	for round := range out {
		if round >= lag {
			p = min(s.config.Target/o.traffic[round-lag], maxSimRaise*p, 1)
			p = max(p, s.config.Min)
		}
		out[round] = p
	}
	return out
}

const maxSimRaise = 2

// settleRounds is the number of rounds after which a reachable target must be reached.
const settleRounds = 3

// reachableRounds returns the rounds in which an operation must be at its target, because the
// target has been reachable for more than settleRounds rounds.
func (s *simulation) reachableRounds(o *simOperation) []int {
	var rounds []int
	reachable := 0 // consecutive rounds
	ideal := s.ideal(o)
	for round := range simRounds {
		reachable++
		if math.Abs(ideal[round]*o.traffic[round]-s.config.Target) > 0.001*s.config.Target || round > 0 &&
			o.traffic[round] != o.traffic[round-1] {
			reachable = 0
		}
		if reachable > settleRounds {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// reversals counts how often a rate changes direction while the traffic is constant. Small changes
// are ignored.
func (s *simulation) reversals(o *simOperation, rounds []int) int {
	n, last := 0, 0.0
	for i, round := range rounds {
		if i == 0 || rounds[i-1] != round-1 {
			last = 0
			continue
		}
		step := o.expected[round] - o.expected[round-1]
		if math.Abs(step) < 0.02*s.config.Target {
			continue
		}
		if last*step < 0 {
			n++
		}
		last = step
	}
	return n
}
