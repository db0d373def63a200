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
	sourceAdaptive = "adaptive" // see sampling.Origin.Source
	// leaderResource is the resource whose lease makes a collector the leader.
	leaderResource = "sampling_store_leader"
	// leaseRefreshes is the length of a lease in refresh intervals: two refreshes may fail.
	leaseRefreshes = 3
	// reloadInterval is the interval at which collectors other than the leader read the
	// probabilities. The first reload happens after a random time between half of the interval and
	// all of it, so that collectors do not read simultaneously.
	reloadInterval = 20 * time.Second
	// storeTimeout limits each step that uses the store.
	storeTimeout = 10 * time.Second
)

// adaptiveSource provides strategies that are calculated from observed traces. Calculations happen
// at rounds, which are multiples of the interval. Therefore the intervals of all collectors are the
// same, and a new leader continues with the rounds of the previous one.
type adaptiveSource struct {
	set     pipeline.Settings
	cfg     AdaptiveConfig
	counter *adaptive.Counter
	name    string // unique name of this collector among the collectors that share the store
	metrics *adaptiveMetrics
	state   atomic.Pointer[adaptiveState]
	lease   atomic.Pointer[sampling.Lease] // last lease that the store returned
	past    *probabilityHistory

	// Used only by the background goroutine, Start and Stop.
	store    sampling.Store
	pending  time.Time // round without a calculation; zero if there is none
	failing  bool
	stop     context.CancelFunc
	stopped  chan struct{}
	schedule schedule
}

// adaptiveState holds the strategies that clients get. It is immutable.
type adaptiveState struct {
	table   map[serviceKey]*entry
	other   *entry // for services that are not in the table
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
		name: fmt.Sprintf("%s-%08x", host, uint32(set.Env.Rand())), store: c.Storage.Get(),
		past: newProbabilityHistory(c.Remembered)}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_sampling_" + name, Help: help})
	}
	s.metrics = &adaptiveMetrics{
		leader:     gauge("leader", "1 if this collector is the leader of adaptive sampling, otherwise 0."),
		operations: gauge("operations", "Number of operations with their own sampling probability."),
		calculations: prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_sampling_calculations_total",
			Help: "Number of calculations of sampling probabilities by this collector."}),
	}
	unobserved := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tracing_sampling_unobserved_roots_total",
		Help: "Root spans that adaptive sampling did not count because of the operation limit or invalid names."},
		func() float64 { return float64(s.counter.Unobserved()) })
	for _, m := range []prometheus.Collector{s.metrics.leader, s.metrics.operations, s.metrics.calculations, unobserved} {
		if err := set.Metrics.Register(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Start loads the latest probabilities and starts counting and calculating. A store error is
// reported, but Start does not fail: operations have the initial probability until the store can be
// read.
func (s *adaptiveSource) Start(ctx context.Context) error {
	s.activate(nil)
	s.report(s.reload(ctx))
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.stopped = stop, make(chan struct{})
	now := s.set.Env.Now()
	jitter := time.Duration(s.set.Env.Rand() % uint64(reloadInterval/2))
	s.schedule = schedule{round: s.nextRound(now), lease: now, reload: now.Add(reloadInterval/2 + jitter)}
	go func() {
		defer close(s.stopped)
		s.run(ctx)
	}()
	return nil
}

// Stop ends the background goroutine, stores the counts since the last round, and releases the
// lease.
func (s *adaptiveSource) Stop(ctx context.Context) error {
	s.stop()
	<-s.stopped
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	// Store the counts for the scheduled round even if it has passed: a collector that skips a
	// round looks as if it had crashed.
	round := s.nextRound(s.set.Env.Now())
	if s.schedule.round.Before(round) {
		round = s.schedule.round
	}
	return errors.Join(s.storeCounts(ctx, round, true), s.store.EndLease(ctx, leaderResource, s.name))
}

// nextRound returns the first round after now.
func (s *adaptiveSource) nextRound(now time.Time) time.Time {
	return now.Truncate(s.cfg.Interval.Std()).Add(s.cfg.Interval.Std())
}

// schedule holds the times at which each task is due.
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
		s.report(err)
	}
}

// step runs the tasks that are due. If the clock was set back, tasks planned for a time too far in
// the future are due immediately.
func (s *adaptiveSource) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	now := s.set.Env.Now()
	var errs []error
	if round := s.schedule.round; due(round, now, s.cfg.Interval.Std()) {
		s.schedule.round = s.nextRound(now)
		s.pending = now.Truncate(s.cfg.Interval.Std())
		s.schedule.lease = now
		errs = append(errs, s.storeCounts(ctx, s.pending, false))
	}
	if due(s.schedule.lease, now, maxInterval) {
		errs = append(errs, s.renewLease(ctx, now))
	}
	if due(s.schedule.reload, now, reloadInterval) {
		s.schedule.reload = now.Add(reloadInterval)
		errs = append(errs, s.reload(ctx))
	}
	return errors.Join(errs...)
}

// due reports whether a time has come, or is further away than any task is planned.
func due(at, now time.Time, maxDelay time.Duration) bool {
	return !at.After(now) || at.Sub(now) > maxDelay
}

// storeCounts stores the counts up to a round. last is true when the collector stops.
func (s *adaptiveSource) storeCounts(ctx context.Context, round time.Time, last bool) error {
	interval := s.cfg.Interval.Std()
	t := sampling.Throughput{By: s.name, Last: last, Until: round, Length: interval, Rows: s.counter.Take()}
	since := s.newest(round).Add(-time.Duration(s.cfg.History+1) * interval)
	if err := s.store.AddThroughput(ctx, t, since); err != nil {
		return fmt.Errorf("storing trace counts for adaptive sampling: %w", err)
	}
	return nil
}

// newest returns the end of the newest interval that the calculation of a round uses.
func (s *adaptiveSource) newest(round time.Time) time.Time {
	return round.Add(-s.cfg.Delay.Std()).Truncate(s.cfg.Interval.Std())
}

// renewLease acquires or renews the lease, and calculates if this collector is the leader and a
// round is pending. A collector that is not the leader retries when the lease ends, as long as a
// round is pending.
func (s *adaptiveSource) renewLease(ctx context.Context, now time.Time) error {
	refresh := s.cfg.LeaderRefresh.Std()
	lease, err := s.store.Lease(ctx, leaderResource, s.name, leaseRefreshes*refresh)
	if err != nil {
		s.metrics.leader.Set(0)
		s.schedule.lease = now.Add(refresh)
		return fmt.Errorf("acquiring the lease for adaptive sampling: %w", err)
	}
	before := s.lease.Swap(&lease)
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
		s.set.Logger.Info("became leader of adaptive sampling", zap.String("name", s.name))
	}
	if s.pending.IsZero() {
		return nil
	}
	return s.calculate(ctx)
}

// calculate calculates and stores the probabilities of the pending round, unless another collector
// has done so.
func (s *adaptiveSource) calculate(ctx context.Context) error {
	before, err := s.store.LatestCalculation(ctx)
	if err != nil {
		return fmt.Errorf("reading the latest adaptive sampling calculation: %w", err)
	}
	if before == nil || before.At.Before(s.pending) || before.At.After(s.schedule.round) {
		h, err := s.history(ctx, s.pending)
		if err != nil {
			return err
		}
		c := adaptive.Calculate(s.cfg.options(), h, before, s.name, s.pending)
		if err := s.store.SaveCalculation(ctx, c); err != nil {
			return fmt.Errorf("storing the adaptive sampling calculation: %w", err)
		}
		s.metrics.calculations.Inc()
		s.activate(c)
	}
	s.pending = time.Time{}
	return nil
}

// history returns the counts that the calculation of a round uses.
func (s *adaptiveSource) history(ctx context.Context, round time.Time) (*adaptive.History, error) {
	interval, until := s.cfg.Interval.Std(), s.newest(round)
	all, err := s.store.Throughput(ctx, until.Add(-time.Duration(s.cfg.History+1)*interval), until)
	if err != nil {
		return nil, fmt.Errorf("reading trace counts for adaptive sampling: %w", err)
	}
	return adaptive.NewHistory(all, until, interval, s.cfg.History), nil
}

// reload activates the latest stored calculation. A round that it covers is no longer pending.
func (s *adaptiveSource) reload(ctx context.Context) error {
	latest, err := s.store.LatestCalculation(ctx)
	if err != nil {
		return fmt.Errorf("reading the latest adaptive sampling calculation: %w", err)
	}
	if latest == nil {
		return nil
	}
	if !s.pending.IsZero() && !latest.At.Before(s.pending) {
		s.pending = time.Time{}
	}
	if known := s.state.Load().latest; known == nil || latest != known {
		s.activate(latest)
	}
	return nil
}

// report records the result of a step in the health of the component and in the problem of
// strategies.
func (s *adaptiveSource) report(err error) {
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

// decide implements source.
func (s *adaptiveSource) decide(_ context.Context, tenant, service string) (decision, error) {
	state := s.state.Load()
	e, ok := state.table[serviceKey{tenant, service}]
	if !ok {
		e = state.other
	}
	return decision{entry: e, source: sourceAdaptive, problem: state.problem}, nil
}

// activate makes the strategies of a calculation current; nil means that there is no calculation
// yet.
func (s *adaptiveSource) activate(c *sampling.Calculation) {
	before := s.state.Load()
	state := &adaptiveState{table: map[serviceKey]*entry{}, latest: c,
		other: &entry{strategy: s.strategy(), rule: "service not observed yet: all operations have the initial probability"}}
	if c != nil {
		for i := range c.Decisions {
			s.addDecision(state.table, &c.Decisions[i], c.By)
		}
		s.metrics.operations.Set(float64(len(c.Decisions)))
		s.past.addCalculation(c)
	}
	state.setSince(before, s.set.Env.Now())
	if before != nil {
		state.problem = before.problem
	}
	s.state.Store(state)
}

// strategy returns the strategy of a service that has not been observed yet.
func (s *adaptiveSource) strategy() *sampling.Strategy {
	return &sampling.Strategy{Operations: &sampling.Operations{Default: s.cfg.Initial, LowerBound: s.cfg.LowerBound}}
}

// addDecision adds a decision to the strategy of its service.
func (s *adaptiveSource) addDecision(table map[serviceKey]*entry, d *sampling.Decision, by string) {
	key := serviceKey{d.Tenant, d.Service}
	e, ok := table[key]
	if !ok {
		e = &entry{strategy: s.strategy(), place: "calculated by " + by, operations: map[string]operationOrigin{},
			rule: "operation not observed yet: the initial probability applies"}
		table[key] = e
	}
	o := e.strategy.Operations
	o.PerOperation = append(o.PerOperation, sampling.Operation{Name: d.Operation, Probability: d.Probability})
	e.operations[d.Operation] = operationOrigin{e.place, d.Reason}
}

// setSince sets the time since which each strategy is unchanged.
func (a *adaptiveState) setSince(before *adaptiveState, now time.Time) {
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
