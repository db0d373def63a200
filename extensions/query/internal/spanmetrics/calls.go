package spanmetrics

import (
	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// callReader reads calls of a query, and collects why some are missing.
type callReader struct {
	slot    *core.Slot
	store   tracestore.Metrics
	reasons tracestore.Reasons
}

// pair is the points of a service or operation in both periods.
type pair struct{ now, usual []tracestore.MetricPoint }

// services returns the calls of services in both periods. nil means all services or all kinds.
func (r *callReader) services(p *Periods, services, kinds []string) (map[string]*pair, error) {
	if services != nil && len(services) == 0 {
		return map[string]*pair{}, nil
	}
	q := tracestore.MetricsQuery{Services: services, Kinds: kinds}
	return r.read(p, q, func(s *tracestore.MetricSeries) string { return s.Service })
}

// read returns the calls that q selects in both periods, by the name of their series.
func (r *callReader) read(p *Periods, q tracestore.MetricsQuery, name func(*tracestore.MetricSeries) string) (map[string]*pair, error) {
	out := make(map[string]*pair)
	q.From, q.To, q.Step = p.Start, p.last(), p.Step
	err := r.visit(q, func(s *tracestore.MetricSeries) { out[name(s)] = &pair{now: s.Points} })
	if err != nil || !p.hasUsual() {
		return out, err
	}
	q.From, q.To, q.Step = p.UsualStart, p.Start.Add(-1), p.Start.Sub(p.UsualStart)
	err = r.visit(q, func(s *tracestore.MetricSeries) {
		if out[name(s)] == nil {
			out[name(s)] = &pair{}
		}
		out[name(s)].usual = s.Points
	})
	return out, err
}

// visit calls take for each series that a query selects.
func (r *callReader) visit(q tracestore.MetricsQuery, take func(*tracestore.MetricSeries)) error {
	got, err := r.store.Metrics(r.slot.Context(), r.slot.Tenant(), q)
	if err == nil {
		err = r.slot.HoldMore(int64(sizeOf(got.Series)))
	}
	if err != nil {
		return err
	}
	r.reasons.Add(got.Reasons...)
	for i := range got.Series {
		take(&got.Series[i])
	}
	return nil
}
