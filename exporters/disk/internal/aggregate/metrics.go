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
//	segment   │ rows │     series of whole minutes      │ rows │
//	memtable  │ rows │     tally of whole minutes       │ rows │
//	         from                                              to
//
// Each source counts its spans without their duplicates, and how many calls each stands for. A span that is in several sources, because it
// was sent again after a flush, is counted in each.
func (e *Aggregator) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	m := &metricsQuery{tenant: tenant, byOperation: q.ByOperation, counter: storequery.NewMetricsCounter(q)}
	var ok bool
	if m.window.From, m.window.To, ok = q.Window(); !ok || ctx.Err() != nil {
		return m.counter.Answer(), ctx.Err()
	}
	m.session = e.store.Begin()
	defer m.session.Release()
	for src := range m.session.Sources {
		if err := m.source(ctx, src); err != nil {
			return tracestore.MetricsAnswer{}, err
		}
	}
	a := m.counter.Answer()
	if reason := m.session.DamageReason(); reason != "" {
		a.Reason = scan.JoinReasons(a.Reason, reason)
		a.Complete = false
	}
	return a, nil
}

// metricsReader counts the spans of a tenant within a window.
type metricsQuery struct {
	session     *scan.Session
	tenant      string
	window      scan.Range
	byOperation bool
	counter     *storequery.MetricsCounter
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
				d = scan.SplitWindow(m.window, oldest, newest) // it may have newer rows than the source
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

// addStatistics adds what a segment knows of whole minutes. It is not known where that is damaged, which costs no spans, or not all spans
// had room in it. Where it is known, and no span stands for others, this holds of the rows, too: either none has a threshold, or the
// segment is from before these were looked at, and then all of it counts spans.
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
	return true, series.Extra, nil
}

// addTally adds what a memtable knows of whole minutes.
func (m *metricsQuery) addTally(c *stats.Collector, d scan.Split) {
	if wanted, some := m.wanted(c.All()); some && d.HasMinutes {
		c.EachPoint(d.Minutes.From, d.Minutes.To, wanted, m.adder(c.All()))
	}
}

// wanted tells which of some series are asked for: those of spans, and those of what they stand for besides.
func (m *metricsQuery) wanted(series []stats.Series) (wanted []bool, some bool) {
	wanted = make([]bool, len(series))
	for i := range series {
		s := &series[i]
		wanted[i] = s.Tenant == m.tenant && m.counter.Wants(s.Service, s.Kind)
		some = some || wanted[i]
	}
	return wanted, some
}

// adder returns a function that adds points of series.
func (m *metricsQuery) adder(series []stats.Series) func(i int, minutes uint64, durations *tracestore.Histogram) {
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
			m.counter.AddHistogram(numbers[i]-1, minutes*scan.Minute, durations, s.Error)
		}
	}
}
