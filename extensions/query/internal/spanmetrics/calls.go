package spanmetrics

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxRefined is the maximum number of services whose incidents are located to the minute.
const maxRefined = 20

// callReader reads calls of a query, and collects the reasons if some are missing.
type callReader struct {
	slot    *core.Slot
	store   tracestore.Metrics
	reasons tracestore.Reasons
}

// pair holds the points of a service or operation in the range, and in the slots from which usual
// values are learned.
type pair struct{ now, learned []tracestore.MetricPoint }

// services returns the calls of services. nil means all services or all kinds.
func (r *callReader) services(p *Periods, services, kinds []string) (map[string]*pair, error) {
	if services != nil && len(services) == 0 {
		return map[string]*pair{}, nil
	}
	q := tracestore.MetricsQuery{Services: services, Kinds: kinds}
	return r.read(p, q, func(s *tracestore.MetricSeries) string { return s.Service })
}

// read returns the calls that q selects, by the name of their series.
func (r *callReader) read(p *Periods, q tracestore.MetricsQuery, name func(*tracestore.MetricSeries) string) (map[string]*pair, error) {
	out := make(map[string]*pair)
	q.From, q.To, q.Step = p.Start, p.last(), p.Step
	err := r.visit(q, func(s *tracestore.MetricSeries) { out[name(s)] = &pair{now: s.Points} })
	if err != nil {
		return nil, err
	}
	q.From, q.To, q.Step = p.UsualStart, p.last(), slot
	err = r.visit(q, func(s *tracestore.MetricSeries) {
		if out[name(s)] == nil {
			out[name(s)] = &pair{}
		}
		out[name(s)].learned = s.Points
	})
	return out, err
}

// refine finds to the minute when incidents begin and end. It does this for the maxRefined services
// whose incidents have the most errors, if they began in the last day. kinds must select the same
// calls as the count that found the incidents.
func (r *callReader) refine(p *Periods, list []*ServiceSeries, kinds []string) error {
	first := p.usualEnd().Add(-day)
	list = slices.DeleteFunc(list, func(s *ServiceSeries) bool {
		return !slices.ContainsFunc(s.Incidents(), func(i Incident) bool { return !i.Start.Before(first) })
	})
	slices.SortFunc(list, func(a, b *ServiceSeries) int {
		x, y := a.Incident, b.Incident
		return cmp.Or(cmp.Compare(y.Errors, x.Errors), cmp.Compare(y.Calls, x.Calls), strings.Compare(a.Name, b.Name))
	})
	list = list[:min(len(list), maxRefined)]
	if len(list) == 0 {
		return nil
	}
	byName := make(map[string]*ServiceSeries, len(list))
	q := tracestore.MetricsQuery{Kinds: kinds, From: p.usualEnd(), To: p.last(), Step: time.Minute}
	for _, s := range list {
		byName[s.Name] = s
		q.Services = append(q.Services, s.Name)
		for _, i := range s.Incidents() {
			if begin := i.Start.Add(-slot); !i.Start.Before(first) && begin.Before(q.From) {
				q.From = begin
			}
		}
	}
	return r.visit(q, func(m *tracestore.MetricSeries) {
		minutes := &series{q.From, time.Minute, make([]counts, p.usualEnd().Sub(q.From)/time.Minute)}
		addPoints(minutes.counts, m.Points, q.From, time.Minute)
		if s := byName[m.Service]; s != nil {
			s.judge(minutes, p)
		}
	})
}

// since counts the calls that q selects, starting at a time, by the name of their series.
func (r *callReader) since(p *Periods, q tracestore.MetricsQuery, start time.Time, name func(*tracestore.MetricSeries) string) (
	map[string]*counts, error,
) {
	out := make(map[string]*counts)
	q.From, q.To, q.Step = start, p.last(), max(p.usualEnd().Sub(start), time.Minute)
	err := r.visit(q, func(s *tracestore.MetricSeries) {
		c := out[name(s)]
		if c == nil {
			c = &counts{}
			out[name(s)] = c
		}
		for i := range s.Points {
			c.addPoint(&s.Points[i])
		}
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
