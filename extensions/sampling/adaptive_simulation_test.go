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

// The simulated world: services with Zipf's traffic, some of it in bursts, whose processes ask one of three collectors once a minute and
// send what they sample to any of them. All of it in fake time, and the same for a seed.
const (
	simServices   = 100
	simCollectors = 3
	simRounds     = 80
	simBusiest    = 60_000. // traces per second of the busiest operation
	simStep       = 5 * time.Second
	simPoll       = time.Minute
	simSkew       = time.Millisecond // between the clocks of collectors, so that no two do something at the same instant
)

// simOperation is an operation of a simulated service.
type simOperation struct {
	service, name string
	rate          float64 // traces per second, without bursts
	burst         float64 // factor; 0: none
	begins, ends  int     // of the burst, in steps

	realized, expected, traffic []float64 // per second, by round
	processes                   []*simProcess
}

// at returns how many traces per second begin in a step.
func (o *simOperation) at(step int) float64 {
	if o.burst > 0 && step >= o.begins && step < o.ends {
		return o.rate * o.burst
	}
	return o.rate
}

// simProcess is a process of a service: it samples with what it was told last.
type simProcess struct {
	asks        int // the collector
	phase       time.Duration
	probability float64
}

type simulation struct {
	rnd        *rand.Rand
	config     AdaptiveConfig
	shared     *sampling.Memory
	collectors []*adaptiveSource // nil: dead
	operations []*simOperation
	steps      int      // in a round
	by         []string // who calculated in each round; "": nobody
}

func newSimulation(seed uint64, change func(*AdaptiveConfig)) *simulation {
	s := &simulation{rnd: rand.New(rand.NewPCG(seed, 1)), config: defaultAdaptive(), shared: sampling.NewMemory(time.Now)}
	s.config.Storage = pipeline.BoundRef[sampling.Store](s.shared)
	change(&s.config)
	s.steps = int(s.config.Interval.Std() / simStep)
	for i := range simServices {
		for j := range 1 + s.rnd.IntN(3) {
			o := &simOperation{service: fmt.Sprintf("service-%02d", i), name: fmt.Sprintf("GET /%d", j), rate: simBusiest / math.Pow(float64(i+1), 1.4) / float64(1+j*j)}
			if s.rnd.IntN(3) == 0 {
				o.burst = []float64{0.2, 0.5, 2, 5, 20}[s.rnd.IntN(5)]
				o.begins = (25 + s.rnd.IntN(10)) * s.steps
				o.begins += s.rnd.IntN(s.steps) // anywhere in an interval
				o.ends = o.begins + (15+s.rnd.IntN(10))*s.steps + s.rnd.IntN(s.steps)
			}
			for range 1 + s.rnd.IntN(4) {
				o.processes = append(o.processes, &simProcess{asks: s.rnd.IntN(simCollectors), probability: s.config.Initial,
					phase: time.Duration(s.rnd.IntN(int(simPoll / simStep)))})
			}
			s.operations = append(s.operations, o)
		}
	}
	return s
}

// start starts a collector whose clock is late by so much.
func (s *simulation) start(t *testing.T, late time.Duration) *adaptiveSource {
	env := pipeline.SystemEnv()
	env.Now = func() time.Time { return time.Now().Add(-late) }
	env.Rand = s.rnd.Uint64
	src, err := newAdaptiveSource(pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: env, Report: func(err error) {
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

// leader returns the number of the collector that calculates.
func (s *simulation) leader() int {
	latest, _ := s.shared.LatestCalculation(context.Background())
	return slices.IndexFunc(s.collectors, func(c *adaptiveSource) bool { return c != nil && latest != nil && c.name == latest.By })
}

// kill ends a collector without letting it say so: its lease stays, and what it counted is lost.
func (s *simulation) kill(i int) {
	s.collectors[i].stop()
	<-s.collectors[i].stopped
	s.collectors[i] = nil
}

// run simulates all rounds. at is called before each step.
func (s *simulation) run(t *testing.T, at func(step int)) {
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second))) // processes do not live by the minute
	for i := range simCollectors {
		time.Sleep(100 * simSkew) // what collectors do every few seconds is not done together with what processes do
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

// traffic is what begins of an operation in a step, and what of it arrives.
func (s *simulation) traffic(o *simOperation, round, step int) {
	rate := o.at(step)
	for _, p := range o.processes {
		if time.Duration(step)%(simPoll/simStep) == p.phase {
			s.ask(o, p)
		}
		mean := rate / float64(len(o.processes)) * simStep.Seconds() * p.probability
		n := poisson(s.rnd, mean)
		o.expected[round] += mean / (float64(s.steps) * simStep.Seconds())
		o.realized[round] += float64(n) / (float64(s.steps) * simStep.Seconds())
		s.arrive(o, p, n)
	}
	o.traffic[round] += rate / float64(s.steps)
}

// ask has a process ask for its strategy, another collector where its own is dead.
func (s *simulation) ask(o *simOperation, p *simProcess) {
	for s.collectors[p.asks] == nil {
		p.asks = (p.asks + 1) % len(s.collectors)
	}
	d, err := s.collectors[p.asks].decide(context.Background(), "", o.service)
	if err == nil {
		p.probability = d.strategy.Sampler(o.name).Param
	}
}

// arrive sends n root spans to any of the collectors, and one that the lower bound let pass, as clients send one each minute.
func (s *simulation) arrive(o *simOperation, p *simProcess, n int) {
	all := make([]sampling.Root, n, n+1)
	for i := range all {
		all[i] = sampling.Root{Service: o.service, Operation: o.name, Sampler: sampling.SamplerProbabilistic, Param: p.probability}
	}
	if n == 0 && s.rnd.IntN(s.steps) == 0 {
		all = append(all, sampling.Root{Service: o.service, Operation: o.name, Sampler: sampling.SamplerRateLimiting, Param: s.config.LowerBound})
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

// poisson draws a number with a mean: exactly for small ones, and near enough for others.
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

// ideal returns the probability that an operation may have in each round at best: of a calculation that knows how many traces began in the
// interval that it may look at, and raises it to twice what it was at most.
func (s *simulation) ideal(o *simOperation) []float64 {
	lag := 1 + int(s.config.Delay.Std()/s.config.Interval.Std())
	p, out := s.config.Initial, make([]float64, simRounds)
	for round := range out {
		if round >= lag {
			p = min(s.config.Target/o.traffic[round-lag], greatestSimStep*p, 1)
			p = max(p, s.config.Min)
		}
		out[round] = p
	}
	return out
}

const greatestSimStep = 2

// late is how many intervals after a rate is first reachable it must be there.
const late = 3

// judged returns the rounds in which an operation must have its target: it has been reachable for longer than three intervals.
func (s *simulation) judged(o *simOperation) []int {
	var rounds []int
	reachable := 0 // rounds in a row
	ideal := s.ideal(o)
	for round := range simRounds {
		reachable++
		if math.Abs(ideal[round]*o.traffic[round]-s.config.Target) > 0.001*s.config.Target || round > 0 && o.traffic[round] != o.traffic[round-1] {
			reachable = 0
		}
		if reachable > late {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// turns counts how often a rate, while the traffic is the same, goes up after it went down or the other way round, small steps left out.
func (s *simulation) turns(o *simOperation, rounds []int) int {
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
