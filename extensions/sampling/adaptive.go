package sampling

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/extensions/sampling/internal/adaptive"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

const (
	// leaderResource is what the collector that calculates has a lease of.
	leaderResource = "sampling_store_leader"
	// leaseLives is how many refresh intervals a lease lasts: two refreshes may fail.
	leaseLives = 3
	// reloadEvery is how often collectors that do not calculate read the probabilities. The first time comes after half to all of it, so
	// that they do not all read at once.
	reloadEvery = 20 * time.Second
	// storeTimeout is how long the store may take.
	storeTimeout = 10 * time.Second
)

// adaptiveSource has probabilities that follow from what collectors see. All times at which collectors calculate, rounds, are multiples of
// the interval, so that their intervals are the same, and a collector that takes over goes on with the rounds of the one before.
type adaptiveSource struct {
	set     pipeline.Settings
	cfg     AdaptiveConfig
	counter *adaptive.Counter
	name    string // of this collector, among those that share the store
	metrics *adaptiveMetrics
	state   atomic.Pointer[adaptiveState]
	leads   atomic.Pointer[sampling.Lease] // who leads, as the store said last

	// Of the one goroutine, and of Start and Stop.
	store    sampling.Store
	pending  time.Time // the round that somebody has to calculate for; zero: none
	failing  bool
	stop     context.CancelFunc
	stopped  chan struct{}
	schedule schedule
}

// adaptiveState is what clients are told. It is not changed once it is in force.
type adaptiveState struct {
	table   map[askedFor]*entry
	other   *entry // of services that are not in the table
	latest  *sampling.Calculation
	problem string
}

type adaptiveMetrics struct {
	leader, operations prometheus.Gauge
	calculations       prometheus.Counter
}

func newAdaptiveSource(set pipeline.Settings, c AdaptiveConfig) (*adaptiveSource, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "collector"
	}
	s := &adaptiveSource{set: set, cfg: c, counter: adaptive.NewCounter(c.MaxOperations, c.LowerBound),
		name: fmt.Sprintf("%s-%08x", host, uint32(set.Env.Rand())), store: c.Storage.Get()}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_sampling_" + name, Help: help})
	}
	s.metrics = &adaptiveMetrics{
		leader:     gauge("leader", "1 where this collector calculates the probabilities of adaptive sampling."),
		operations: gauge("operations", "Operations that have a probability of their own."),
		calculations: prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_sampling_calculations_total",
			Help: "Calculations of the probabilities of adaptive sampling by this collector."}),
	}
	unobserved := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tracing_sampling_unobserved_roots_total",
		Help: "Root spans that adaptive sampling did not count: too many operations, or names that cannot be used."},
		func() float64 { return float64(s.counter.Unobserved()) })
	for _, m := range []prometheus.Collector{s.metrics.leader, s.metrics.operations, s.metrics.calculations, unobserved} {
		if err := set.Metrics.Register(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Start reads the probabilities of before, and begins to count and to calculate. A store that cannot be read is reported: until it can,
// operations have the initial probability.
func (s *adaptiveSource) Start(ctx context.Context) error {
	s.adopt(nil)
	s.settle(s.reload(ctx))
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.stopped = stop, make(chan struct{})
	now := s.set.Env.Now()
	jitter := time.Duration(s.set.Env.Rand() % uint64(reloadEvery/2))
	s.schedule = schedule{round: s.nextRound(now), lease: now, reload: now.Add(reloadEvery/2 + jitter)}
	go func() {
		defer close(s.stopped)
		s.run(ctx)
	}()
	return nil
}

// Stop ends the calculations, stores what was counted since the last one, and lets another collector lead.
func (s *adaptiveSource) Stop(ctx context.Context) error {
	s.stop()
	<-s.stopped
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	round := s.nextRound(s.set.Env.Now()) // unless it is past the one that is due: a collector that leaves one out looks like one that died
	if s.schedule.round.Before(round) {
		round = s.schedule.round
	}
	return errors.Join(s.keep(ctx, round, true), s.store.EndLease(ctx, leaderResource, s.name))
}

// nextRound returns the first round behind a time.
func (s *adaptiveSource) nextRound(now time.Time) time.Time {
	return now.Truncate(s.cfg.Interval.Std()).Add(s.cfg.Interval.Std())
}

// schedule is when something is to be done next.
type schedule struct{ round, lease, reload time.Time }

func (s *schedule) next() time.Time {
	first := s.round
	for _, t := range []time.Time{s.lease, s.reload} {
		if t.Before(first) {
			first = t
		}
	}
	return first
}

func (s *adaptiveSource) run(ctx context.Context) {
	for {
		timer := time.NewTimer(s.schedule.next().Sub(s.set.Env.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		err := s.step(ctx)
		if ctx.Err() != nil {
			return
		}
		s.settle(err)
	}
}

// step does what is due. Where the clock was set back, what is planned for a time far ahead is due at once.
func (s *adaptiveSource) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	now := s.set.Env.Now()
	var errs []error
	if round := s.schedule.round; due(round, now, s.cfg.Interval.Std()) {
		s.schedule.round = s.nextRound(now)
		s.pending = now.Truncate(s.cfg.Interval.Std())
		s.schedule.lease = now
		errs = append(errs, s.keep(ctx, s.pending, false))
	}
	if due(s.schedule.lease, now, mostInterval) {
		errs = append(errs, s.lead(ctx, now))
	}
	if due(s.schedule.reload, now, reloadEvery) {
		s.schedule.reload = now.Add(reloadEvery)
		errs = append(errs, s.reload(ctx))
	}
	return errors.Join(errs...)
}

// due reports whether a time has come, or is further away than it can have been planned.
func due(at, now time.Time, most time.Duration) bool { return !at.After(now) || at.Sub(now) > most }

// keep stores what was counted up to a round, the last one that the collector lives to see or not.
func (s *adaptiveSource) keep(ctx context.Context, round time.Time, last bool) error {
	interval := s.cfg.Interval.Std()
	t := sampling.Throughput{By: s.name, Last: last, Until: round, Length: interval, Rows: s.counter.Take()}
	since := s.newest(round).Add(-time.Duration(s.cfg.Keep+1) * interval)
	if err := s.store.AddThroughput(ctx, t, since); err != nil {
		return fmt.Errorf("storing what was counted for adaptive sampling: %w", err)
	}
	return nil
}

// newest returns the end of the newest interval that a round calculates with.
func (s *adaptiveSource) newest(round time.Time) time.Time {
	return round.Add(-s.cfg.Delay.Std()).Truncate(s.cfg.Interval.Std())
}

// lead tries to lead, or to go on leading, and calculates if that is due. A collector that does not lead tries again when the lease ends,
// while there is a round for which nobody has calculated.
func (s *adaptiveSource) lead(ctx context.Context, now time.Time) error {
	refresh := s.cfg.LeaderRefresh.Std()
	lease, err := s.store.Lease(ctx, leaderResource, s.name, leaseLives*refresh)
	if err != nil {
		s.metrics.leader.Set(0)
		s.schedule.lease = now.Add(refresh)
		return fmt.Errorf("finding out who leads in adaptive sampling: %w", err)
	}
	before := s.leads.Swap(&lease)
	if lease.Owner != s.name {
		s.metrics.leader.Set(0)
		s.schedule.lease = now.Add(s.cfg.FollowerRefresh.Std())
		if ends := lease.Until.Add(time.Millisecond); !s.pending.IsZero() && ends.After(now) && ends.Before(s.schedule.lease) {
			s.schedule.lease = ends
		}
		return nil
	}
	s.metrics.leader.Set(1)
	s.schedule.lease = now.Add(refresh)
	if before == nil || before.Owner != s.name {
		s.set.Logger.Info("this collector calculates the probabilities of adaptive sampling from now on", zap.String("name", s.name))
	}
	if s.pending.IsZero() {
		return nil
	}
	return s.calculate(ctx)
}

// calculate makes the probabilities of the pending round, unless somebody has.
func (s *adaptiveSource) calculate(ctx context.Context) error {
	before, err := s.store.LatestCalculation(ctx)
	if err != nil {
		return fmt.Errorf("reading the probabilities of adaptive sampling: %w", err)
	}
	if before == nil || before.At.Before(s.pending) || before.At.After(s.schedule.round) {
		h, err := s.history(ctx, s.pending)
		if err != nil {
			return err
		}
		c := adaptive.Calculate(s.cfg.options(), h, before, s.name, s.pending)
		if err := s.store.SaveCalculation(ctx, c); err != nil {
			return fmt.Errorf("storing the probabilities of adaptive sampling: %w", err)
		}
		s.metrics.calculations.Inc()
		s.adopt(c)
	}
	s.pending = time.Time{}
	return nil
}

// history is what a round calculates with.
func (s *adaptiveSource) history(ctx context.Context, round time.Time) (*adaptive.History, error) {
	interval, until := s.cfg.Interval.Std(), s.newest(round)
	all, err := s.store.Throughput(ctx, until.Add(-time.Duration(s.cfg.Keep+1)*interval), until)
	if err != nil {
		return nil, fmt.Errorf("reading what was counted for adaptive sampling: %w", err)
	}
	return adaptive.NewHistory(all, until, interval, s.cfg.Keep), nil
}

// reload puts the latest probabilities into force. A round for which somebody has calculated is not pending any more.
func (s *adaptiveSource) reload(ctx context.Context) error {
	latest, err := s.store.LatestCalculation(ctx)
	if err != nil {
		return fmt.Errorf("reading the probabilities of adaptive sampling: %w", err)
	}
	if latest == nil {
		return nil
	}
	if !s.pending.IsZero() && !latest.At.Before(s.pending) {
		s.pending = time.Time{}
	}
	if known := s.state.Load().latest; known == nil || latest != known {
		s.adopt(latest)
	}
	return nil
}

// settle reports how a step ended.
func (s *adaptiveSource) settle(err error) {
	if err == nil && !s.failing {
		return
	}
	s.failing = err != nil
	state := *s.state.Load()
	if state.problem = ""; err != nil {
		state.problem = err.Error()
	}
	s.state.Store(&state)
	s.set.Report(err)
}

// decide returns the strategy of a service.
func (s *adaptiveSource) decide(_ context.Context, tenant, service string) (decision, error) {
	state := s.state.Load()
	e, ok := state.table[askedFor{tenant, service}]
	if !ok {
		e = state.other
	}
	return decision{entry: e, source: "adaptive", problem: state.problem}, nil
}

// adopt puts a calculation into force; nil is none.
func (s *adaptiveSource) adopt(c *sampling.Calculation) {
	before := s.state.Load()
	state := &adaptiveState{table: map[askedFor]*entry{}, latest: c,
		other: &entry{strategy: s.strategy(), rule: "nothing is known of the service yet: its operations have the initial probability"}}
	if c != nil {
		for i := range c.Decisions {
			s.add(state.table, &c.Decisions[i], c.By)
		}
		s.metrics.operations.Set(float64(len(c.Decisions)))
	}
	state.date(before, s.set.Env.Now())
	if before != nil {
		state.problem = before.problem
	}
	s.state.Store(state)
}

// strategy is that of a service of which nothing is known.
func (s *adaptiveSource) strategy() *sampling.Strategy {
	return &sampling.Strategy{Operations: &sampling.Operations{Default: s.cfg.Initial, LowerBound: s.cfg.LowerBound}}
}

func (s *adaptiveSource) add(table map[askedFor]*entry, d *sampling.Decision, by string) {
	key := askedFor{d.Tenant, d.Service}
	e, ok := table[key]
	if !ok {
		e = &entry{strategy: s.strategy(), place: "calculated by " + by, operations: map[string]operationOrigin{},
			rule: "no trace was seen to begin with the operation: it has the initial probability"}
		table[key] = e
	}
	o := e.strategy.Operations
	o.Each = append(o.Each, sampling.Operation{Name: d.Operation, Probability: d.Probability})
	e.operations[d.Operation] = operationOrigin{e.place, d.Reason}
}

// date sets since when strategies hold.
func (a *adaptiveState) date(before *adaptiveState, now time.Time) {
	set := func(e, old *entry) {
		if e.since = now; old != nil && old.strategy.Equal(e.strategy) {
			e.since = old.since
		}
	}
	if before == nil {
		before = &adaptiveState{}
	}
	for key, e := range a.table {
		old, ok := before.table[key]
		if !ok {
			old = before.other
		}
		set(e, old)
	}
	set(a.other, before.other)
}
