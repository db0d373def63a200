package search

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Metrics = (*Engine)(nil)

// Metrics implements tracestore.Metrics.
//
//	segment   │ rows │     series of whole minutes      │ rows │
//	memtable  │ rows │     tally of whole minutes       │ rows │
//	         from                                              to
//
// Each source counts its spans without their duplicates, and how many calls each stands for. A span that is in several sources, because it
// was sent again after a flush, is counted in each.
func (e *Engine) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	m := &metricsReader{tenant: tenant, byOperation: q.ByOperation, counter: storequery.NewMetricsCounter(q)}
	var ok bool
	if m.window.from, m.window.to, ok = q.Window(); !ok || ctx.Err() != nil {
		return m.counter.Answer(), ctx.Err()
	}
	m.session = e.begin()
	defer m.lease.release()
	for src := range m.sources {
		if err := m.source(ctx, src); err != nil {
			return tracestore.MetricsAnswer{}, err
		}
	}
	a := m.counter.Answer()
	if reason := m.damage.reason(); reason != "" {
		a.Reason = joinReasons(a.Reason, reason)
		a.Complete = false
	}
	return a, nil
}

// metricsReader counts the spans of a tenant within a window.
type metricsReader struct {
	*session
	tenant      string
	window      bounds
	byOperation bool
	counter     *storequery.MetricsCounter
}

// source counts the spans of a source.
func (m *metricsReader) source(ctx context.Context, src int) error {
	rows, oldest, newest := m.sources[src].Bounds()
	if rows == 0 || newest < m.window.from || oldest > m.window.to {
		return nil
	}
	d := divide(m.window, oldest, newest)
	known, adjusted := false, true
	err := m.decode(ctx, func() (err error) {
		switch s := m.sources[src].(type) {
		case source.Statistics:
			known, adjusted, err = m.addStatistics(s, d)
		case source.Tally:
			known, err = s.Tally(ctx, func(c *stats.Collector, oldest, newest uint64) {
				d = divide(m.window, oldest, newest) // it may have newer rows than the source
				m.addTally(c, d)
			})
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !known:
		return m.scan(ctx, src, d.all, adjusted)
	case len(d.rest) > 0:
		return m.scan(ctx, src, d.rest, adjusted)
	}
	return nil
}

// addStatistics adds what a segment knows of whole minutes. It is not known where that is damaged, which costs no spans, or not all spans
// had room in it. Where it is known, and no span stands for others, this holds of the rows, too: either none has a threshold, or the
// segment is from before these were looked at, and then all of it counts spans.
func (m *metricsReader) addStatistics(s source.Statistics, d divided) (known, adjusted bool, _ error) {
	series, err := s.Series()
	if damage := (*source.DamageError)(nil); errors.As(err, &damage) {
		m.engine.options.OnDamage(damage)
		return false, true, nil
	}
	if err != nil || series.Dropped > 0 {
		return false, true, err
	}
	if wanted, some := m.wanted(series.Series); some && d.some {
		add := m.adder(series.Series)
		for p := range series.PointsOf(d.minutes.from, d.minutes.to, wanted) {
			add(p.Series, p.Minute, &p.Durations)
		}
	}
	return true, series.Extra, nil
}

// addTally adds what a memtable knows of whole minutes.
func (m *metricsReader) addTally(c *stats.Collector, d divided) {
	if wanted, some := m.wanted(c.All()); some && d.some {
		c.EachPoint(d.minutes.from, d.minutes.to, wanted, m.adder(c.All()))
	}
}

// wanted tells which of some series are asked for: those of spans, and those of what they stand for besides.
func (m *metricsReader) wanted(series []stats.Series) (wanted []bool, some bool) {
	wanted = make([]bool, len(series))
	for i := range series {
		s := &series[i]
		wanted[i] = s.Tenant == m.tenant && m.counter.Wants(s.Service, s.Kind)
		some = some || wanted[i]
	}
	return wanted, some
}

// adder returns a function that adds points of series.
func (m *metricsReader) adder(series []stats.Series) func(i int, minutes uint64, durations *tracestore.Histogram) {
	const noRoom = -1
	numbers := make([]int, len(series)) // 1 + that of the counter; 0: not known
	return func(i int, minutes uint64, durations *tracestore.Histogram) {
		s := &series[i]
		if numbers[i] == 0 {
			numbers[i] = noRoom
			if number, ok := m.counter.Series(s.Service, s.Operation); ok {
				numbers[i] = number + 1
			}
		}
		if numbers[i] != noRoom {
			m.counter.AddHistogram(numbers[i]-1, minutes*minute, durations, s.Error)
		}
	}
}
