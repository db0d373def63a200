package aggregate

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Metrics implements tracestore.Metrics.
//
//	segment   │ rows │    series of whole minutes    │ rows │
//	memtable  │ rows │    tally of whole minutes     │ rows │
//	         from                                           to
//
// Each source counts its spans without their duplicates, with their adjusted counts. A span that is
// in several sources, because it was resent after a flush, is counted in each.
func (c *Aggregator) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	counter := storequery.NewMetricsCounter(q)
	from, to, ok := q.Window()
	if !ok {
		return counter.Answer(), ctx.Err()
	}
	damage, err := c.countCalls(ctx, tenant, scan.Range{From: from, To: to}, q.ByOperation, counter)
	if err != nil {
		return tracestore.MetricsAnswer{}, err
	}
	a := counter.Answer()
	a.Reasons.Add(damage...)
	return a, nil
}

// Baselines implements tracestore.Metrics.
func (c *Aggregator) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	counter := storequery.NewBaselineCounter(q)
	from, to, ok := q.Window()
	if !ok {
		return counter.Answer(), ctx.Err()
	}
	damage, err := c.countCalls(ctx, tenant, scan.Range{From: from, To: to}, true, counter)
	if err != nil {
		return tracestore.BaselineAnswer{}, err
	}
	a := counter.Answer()
	a.Reasons = damage
	return a, nil
}

// countCalls passes the calls within a window to counter. It returns the damage that prevents a
// complete count.
func (c *Aggregator) countCalls(
	ctx context.Context, tenant string, w scan.Range, byOperation bool, counter storequery.DurationCounter,
) (damage tracestore.Reasons, _ error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m := &metricsQuery{tenant: tenant, window: w, byOperation: byOperation, counter: counter, session: c.store.BeginQuery(ctx)}
	defer m.session.Release()
	for src := range m.session.Sources {
		if err := m.source(ctx, src); err != nil {
			return nil, err
		}
	}
	return m.session.DamageReasons(), nil
}

// metricsQuery is a running call of Metrics or Baselines.
type metricsQuery struct {
	session     *scan.Session
	tenant      string
	window      scan.Range
	byOperation bool
	counter     storequery.DurationCounter
}

// source counts the spans of a source.
func (m *metricsQuery) source(ctx context.Context, src int) error {
	rows, oldest, newest := m.session.Sources[src].Bounds()
	if rows == 0 || newest < m.window.From || oldest > m.window.To {
		return nil
	}
	d := scan.SplitWindow(m.window, oldest, newest)
	known, adjusted := false, true
	err := m.session.Decode(ctx, func() (err error) {
		switch s := m.session.Sources[src].(type) {
		case source.Statistics:
			known, adjusted, err = m.addStatistics(s, d)
		case source.Tally:
			known, err = s.Tally(ctx, func(c *stats.Collector, oldest, newest uint64) {
				d = scan.SplitWindow(m.window, oldest, newest) // the memtable may have newer rows than the source
				m.addTally(c, d)
			})
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !known:
		return m.scan(ctx, src, d.All, adjusted)
	case len(d.Rest) > 0:
		return m.scan(ctx, src, d.Rest, adjusted)
	}
	return nil
}

// addStatistics adds the whole minutes of a segment. known is false if its statistics are
// incomplete, or damaged, which loses no spans. adjusted is false if no span has a sampling
// threshold, so that all adjusted counts are 1.
func (m *metricsQuery) addStatistics(s source.Statistics, d scan.Split) (known, adjusted bool, _ error) {
	series, err := s.Series()
	if damage := (*source.DamageError)(nil); errors.As(err, &damage) {
		m.session.ReportDamage(damage)
		return false, true, nil
	}
	if err != nil || series.Dropped > 0 {
		return false, true, err
	}
	if wanted, some := m.wanted(series.Series); some && d.HasMinutes {
		add := m.adder(series.Series)
		for p := range series.PointsOf(d.Minutes.From, d.Minutes.To, wanted) {
			add(p.Series, p.Minute, &p.Durations)
		}
	}
	return true, series.Unsampled, nil
}

// addTally adds the whole minutes of a memtable.
func (m *metricsQuery) addTally(c *stats.Collector, d scan.Split) {
	if wanted, some := m.wanted(c.AllSeries()); some && d.HasMinutes {
		c.EachPoint(d.Minutes.From, d.Minutes.To, wanted, m.adder(c.AllSeries()))
	}
}

// wanted returns which series the query selects, including series of adjusted counts.
func (m *metricsQuery) wanted(series []stats.Series) (wanted []bool, some bool) {
	wanted = make([]bool, len(series))
	for i := range series {
		s := &series[i]
		wanted[i] = s.Tenant == m.tenant && m.counter.WantsOperation(s.Service, s.Operation, s.Kind)
		some = some || wanted[i]
	}
	return wanted, some
}

// adder returns a function that adds points of series to the result.
func (m *metricsQuery) adder(series []stats.Series) func(i int, minutes uint64, durations *tracestore.Histogram) {
	const full = -1
	numbers := make([]int, len(series)) // 1 + number of the series in the result; 0: unknown
	return func(i int, minutes uint64, durations *tracestore.Histogram) {
		s := &series[i]
		if numbers[i] == 0 {
			numbers[i] = full
			if number, ok := m.counter.Series(s.Service, s.Operation, s.Kind); ok {
				numbers[i] = number + 1
			}
		}
		if numbers[i] != full {
			m.counter.AddHistogram(numbers[i]-1, minutes*scan.Minute, durations, s.Error)
		}
	}
}
