package memory

import (
	"context"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Metrics implements tracestore.Metrics. It counts duplicates once. Spans that are evicted while it
// runs may be missing.
func (e *exporter) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	counter := storequery.NewMetricsCounter(q)
	if from, to, ok := q.Window(); ok {
		if err := e.countCalls(ctx, tenant, from, to, counter); err != nil {
			return tracestore.MetricsAnswer{}, err
		}
	}
	return counter.Answer(), ctx.Err()
}

// Baselines implements tracestore.Metrics.
func (e *exporter) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	counter := storequery.NewBaselineCounter(q)
	if from, to, ok := q.Window(); ok {
		if err := e.countCalls(ctx, tenant, from, to, counter); err != nil {
			return tracestore.BaselineAnswer{}, err
		}
	}
	return counter.Answer(), ctx.Err()
}

// countCalls passes the spans of a tenant that start within a window, both ends inclusive, to
// counter.
func (e *exporter) countCalls(ctx context.Context, tenant string, from, to uint64, counter storequery.DurationCounter) error {
	m := metricsReader{store: e, snapshot: e.snapshot(), from: from, to: to, counter: counter, rows: make([]*row, 0, maxRows)}
	for _, o := range m.operations(tenant) {
		if err := m.count(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// metricsReader counts the spans within a window.
type metricsReader struct {
	store    *exporter
	snapshot uint64
	from, to uint64
	counter  storequery.DurationCounter
	rows     []*row // the current ones
}

// operation holds the spans of one operation and kind.
type operation struct {
	service, name, kind string
	spans               *list
}

// operations returns the operations that the query selects. Their lists may change while the lock
// is not held.
func (m *metricsReader) operations(tenant string) (out []operation) {
	m.store.mu.RLock()
	defer m.store.mu.RUnlock()
	t := m.store.tenants[tenant]
	if t == nil {
		return nil
	}
	for _, s := range t.services {
		for op, spans := range s.operations {
			if m.counter.WantsOperation(s.name, op.Name, op.Kind) {
				out = append(out, operation{s.name, op.Name, op.Kind, spans})
			}
		}
	}
	return out
}

// count counts the spans of an operation. It takes a limited number of rows at a time, newest
// first, and holds the lock only for that.
func (m *metricsReader) count(ctx context.Context, o operation) error {
	series := -1
	end := position{m.to, otlpdata.TraceID(maxID()), math.MaxUint64}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.rows = m.before(o.spans, end)
		for _, r := range m.rows {
			if r.start < m.from {
				return nil
			}
			if r.seq > m.snapshot {
				continue
			}
			if series < 0 { // an operation without spans in the window must not count toward the limit
				var ok bool
				if series, ok = m.counter.Series(o.service, o.name, o.kind); !ok {
					return nil
				}
			}
			m.counter.AddSpan(series, r.start, r.duration, uint64(r.count), r.failed)
		}
		if len(m.rows) < maxRows {
			return nil
		}
		end = m.rows[len(m.rows)-1].position()
	}
}

// before returns the newest rows of a list before a position.
func (m *metricsReader) before(l *list, end position) []*row {
	m.store.mu.RLock()
	defer m.store.mu.RUnlock()
	return l.below(end, m.rows[:0], maxRows)
}
