package spanmetrics

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// ServiceQuery asks for the spans of one service in a time range.
type ServiceQuery struct {
	Service string
	Periods Periods
	Limit   int // maximum number of operations to list for each role
}

// Role says what the spans of a service do.
type Role struct {
	Name  string
	kinds []string
}

// Roles returns the roles of spans: requests to the service, its calls of others, and the rest.
func Roles() []Role {
	return []Role{
		{"requests", requestKinds()},
		{"calls", []string{"client", "producer"}},
		{"internal", []string{"internal", ""}},
	}
}

// RoleSpans describes the spans of a service in one role.
type RoleSpans struct {
	Role Role
	// In Total and the Operations, Since has the same start for all roles: the start of the ongoing
	// incident of the first role that has one.
	Total ServiceSeries
	// Operations are sorted by the sum of their durations, longest first. Operations that are no
	// longer called come last: they have only a usual value.
	Operations []ServiceSeries
	Omitted    int // operations beyond the limit
}

// FetchService queries the store for the spans of a service in each role. It also returns why some
// are missing, or "". The error is ErrUnsupported if the store does not count calls.
func FetchService(s *core.Slot, q *ServiceQuery) (roles []RoleSpans, incomplete tracestore.Reasons, err error) {
	store, ok := core.SlotAs[tracestore.Metrics](s)
	if !ok {
		return nil, nil, ErrUnsupported
	}
	from := callReader{slot: s, store: store}
	var since time.Time
	for _, r := range Roles() {
		held := s.Held()
		spans, err := q.fetch(&from, r, since)
		if err != nil {
			return nil, nil, err
		}
		if s := spans.Total.Since; since.IsZero() && s != nil {
			since = s.Start
		}
		roles = append(roles, spans)
		size := q.Periods.seriesSize()
		if err := s.SetHeld(held + int64(len(spans.Operations)+1)*size); err != nil {
			return nil, nil, err
		}
	}
	return roles, from.reasons, nil
}

// fetch reads the spans of a role. If an incident of an earlier role is ongoing, since is its
// start.
func (q *ServiceQuery) fetch(from *callReader, r Role, since time.Time) (out RoleSpans, err error) {
	metrics := tracestore.MetricsQuery{Services: []string{q.Service}, Kinds: r.kinds, ByOperation: true}
	found, err := from.read(&q.Periods, metrics, func(s *tracestore.MetricSeries) string { return s.Operation })
	if err != nil {
		return out, err
	}
	days := q.Periods
	days.learnDays()
	total := newTally(&days)
	learned := tracestore.MetricsQuery{Services: metrics.Services, Kinds: r.kinds, From: days.UsualStart, To: days.last(), Step: slot}
	err = from.visit(learned, func(s *tracestore.MetricSeries) { total.addPair(&pair{learned: s.Points}) })
	if err != nil {
		return out, err
	}
	list := make([]operation, 0, len(found))
	for name, p := range found {
		total.addPair(&pair{now: p.now})
		if !q.Periods.isRecent(p) {
			continue
		}
		o := operation{name: name, pair: p}
		for i := range p.now {
			o.time += p.now[i].Durations.Sum
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b operation) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(len(b.pair.now), len(a.pair.now)), strings.Compare(a.name, b.name))
	})
	out.Role, out.Total = r, total.series(q.Service)
	if i := out.Total.Incident; i != nil && !i.Start.IsZero() {
		if err := from.refine(&days, []*ServiceSeries{&out.Total}, r.kinds); err != nil {
			return out, err
		}
	}
	out.Total.Name = ""
	if s := out.Total.Since; since.IsZero() && s != nil {
		since = s.Start
	}
	out.Omitted = max(len(list)-q.Limit, 0)
	for _, o := range list[:len(list)-out.Omitted] {
		t := newTally(&q.Periods)
		t.addPair(o.pair)
		series := t.series(o.name)
		series.Since = nil
		out.Operations = append(out.Operations, series)
	}
	if since.IsZero() {
		return out, nil
	}
	counted, err := from.since(&q.Periods, metrics, since, func(s *tracestore.MetricSeries) string { return s.Operation })
	var all counts
	for _, c := range counted {
		all.add(c)
	}
	out.Total.Since = &Since{since, all.red()}
	for i := range out.Operations {
		o := &out.Operations[i]
		c := counted[o.Name]
		if c == nil {
			c = &counts{}
		}
		o.Since = &Since{since, c.red()}
	}
	return out, err
}

// operation holds the calls of an operation, with the sum of their durations in the range.
type operation struct {
	name string
	pair *pair
	time uint64
}
