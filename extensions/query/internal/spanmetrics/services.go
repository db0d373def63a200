package spanmetrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// ServicesQuery asks for the requests of all services in a time range.
type ServicesQuery struct {
	Periods Periods
	Limit   int // maximum number of services to list
}

// Services is the result of a ServicesQuery.
//
// The requests of a service are its server and consumer spans. If a service has none, neither in
// the range nor in the time of the same length before, all its spans count instead.
type Services struct {
	// Total adds up the services with requests or, if there are none, all services. A request that
	// passes through several services counts once for each. Total includes services beyond the
	// limit.
	Total ServiceSeries
	// List is sorted by name. If there are more services than the limit, it contains the services
	// with the most errors, or with the most calls if the errors are equal.
	List       []ServiceSeries
	Incomplete tracestore.Reasons // why data is missing
}

// FetchServices queries the store. The error is ErrUnsupported if the store does not count calls.
func FetchServices(s *core.Slot, q *ServicesQuery) (*Services, error) {
	store, ok := core.SlotAs[tracestore.Metrics](s)
	if !ok {
		return nil, ErrUnsupported
	}
	names, err := s.Services(tracestore.NameQuery{})
	if err != nil {
		return nil, err
	}
	if int64(len(names.List))*int64(learnedDays*slotsPerDay) <= maxPoints {
		q.Periods.learnDays()
	}
	f := servicesFetch{from: callReader{slot: s, store: store}, query: q, total: newTally(&q.Periods), spans: newTally(&q.Periods),
		noRequests: make(map[string]bool)}
	f.from.reasons.Add(names.Incomplete...)
	size := max(int(maxPoints)/(q.Periods.Points+q.Periods.slots()), 1)
	for chunk := range slices.Chunk(names.List, size) {
		filter := chunk
		if len(chunk) == len(names.List) && names.Incomplete.Complete() {
			filter = nil // include a service that was stored a moment ago
		}
		if err := f.addServices(filter, chunk); err != nil {
			return nil, err
		}
	}
	if err := f.refine(); err != nil {
		return nil, err
	}
	out := f.answer()
	return out, f.addSince(&out.Total)
}

// requestKinds are the kinds of the spans that are requests.
func requestKinds() []string { return []string{"server", "consumer"} }

// servicesFetch collects the response.
type servicesFetch struct {
	from         callReader
	query        *ServicesQuery
	total, spans *tally          // of services with requests; of all others
	requests     bool            // some service has requests
	noRequests   map[string]bool // services without
	list         []ServiceSeries
	left         int // services left out because of the limit
}

// addServices counts the requests of some services (nil means all), and all spans of known services
// without requests.
func (f *servicesFetch) addServices(services, known []string) error {
	held := f.from.slot.Held()
	requests, err := f.from.services(&f.query.Periods, services, requestKinds())
	if err != nil {
		return err
	}
	for name, p := range requests {
		if !f.query.Periods.isRecent(p) {
			f.total.addPair(p)
			delete(requests, name)
		}
	}
	all, err := f.from.services(&f.query.Periods, withoutRequests(known, requests), nil)
	if err != nil {
		return err
	}
	for name, p := range all {
		if _, served := requests[name]; !served {
			f.noRequests[name] = true
			f.keep(name, p, f.spans)
		}
	}
	for name, p := range requests {
		f.requests = true
		f.keep(name, p, f.total)
	}
	f.cut()
	perService := f.query.Periods.seriesSize()
	return f.from.slot.SetHeld(held + int64(len(f.list))*perService)
}

// withoutRequests returns the services that are not in requests.
func withoutRequests(services []string, requests map[string]*pair) []string {
	rest := []string{}
	for _, name := range services {
		if _, served := requests[name]; !served {
			rest = append(rest, name)
		}
	}
	return rest
}

// keep lists a service and adds it to a sum.
func (f *servicesFetch) keep(name string, p *pair, sum *tally) {
	sum.addPair(p)
	if !f.query.Periods.isRecent(p) {
		return
	}
	t := newTally(&f.query.Periods)
	t.addPair(p)
	s := t.series(name)
	s.AllSpans = f.noRequests[name]
	f.list = append(f.list, s)
}

// refine locates the incidents of the listed services.
func (f *servicesFetch) refine() error {
	var requests, spans []*ServiceSeries
	for i := range f.list {
		switch s := &f.list[i]; {
		case s.Incident == nil || s.Incident.Start.IsZero():
		case s.AllSpans:
			spans = append(spans, s)
		default:
			requests = append(requests, s)
		}
	}
	if err := f.from.refine(&f.query.Periods, requests, requestKinds()); err != nil {
		return err
	}
	return f.from.refine(&f.query.Periods, spans, nil)
}

// cut removes the services beyond the limit.
func (f *servicesFetch) cut() {
	if len(f.list) <= f.query.Limit {
		return
	}
	slices.SortFunc(f.list, func(a, b ServiceSeries) int {
		x, y := &a.Summary, &b.Summary
		return cmp.Or(cmp.Compare(y.Errors, x.Errors), cmp.Compare(y.Calls, x.Calls), strings.Compare(a.Name, b.Name))
	})
	f.left += len(f.list) - f.query.Limit
	f.list = slices.Clip(f.list[:f.query.Limit])
}

func (f *servicesFetch) answer() *Services {
	if f.left > 0 {
		f.from.reasons.Add(tracestore.Reason{Kind: tracestore.ReasonLimit,
			Text: fmt.Sprintf("%d services with fewer errors or calls are left out (limit is %d)", f.left, f.query.Limit)})
	}
	sum := f.total
	if !f.requests {
		sum = f.spans
	}
	slices.SortFunc(f.list, func(a, b ServiceSeries) int { return strings.Compare(a.Name, b.Name) })
	return &Services{Total: sum.series(""), List: f.list, Incomplete: f.from.reasons}
}

// addSince counts the calls since the start of the first ongoing incident.
func (f *servicesFetch) addSince(total *ServiceSeries) error {
	var start time.Time
	for i := range f.list {
		if s := f.list[i].Since; s != nil && (start.IsZero() || s.Start.Before(start)) {
			start = s.Start
		}
	}
	total.Since = nil
	if start.IsZero() {
		return nil
	}
	q := tracestore.MetricsQuery{Kinds: requestKinds()}
	if !f.requests {
		q.Kinds = nil
	}
	counted, err := f.from.since(&f.query.Periods, q, start, func(*tracestore.MetricSeries) string { return "" })
	if c := counted[""]; c != nil {
		total.Since = &Since{start, c.red()}
	}
	return err
}

// Periods is a time range in steps, and the time from which usual values are learned. Both consist
// of whole minutes, for which stores have counts that do not require reading spans. The current
// minute is included.
type Periods struct {
	// UsualStart is the start of the time from which usual values are learned. This time includes
	// the last day before End, and also the range, so that usual values do not depend on the range.
	UsualStart time.Time
	Start, End time.Time // End is exclusive and not later than now
	Step       time.Duration
	Points     int       // steps from Start; the last one can be incomplete
	minutesEnd time.Time // end of the last minute that counts
}

// NewPeriods divides a time range into about the given number of steps, at most one more. The range
// is extended to a whole step at its start and to a whole minute at its end.
func NewPeriods(start, end, now time.Time, points int) Periods {
	const minute, longest = uint64(time.Minute), uint64(math.MaxInt64) / uint64(time.Minute) * uint64(time.Minute)
	to := uint64(max(end.UnixNano(), 1)) // exclusive
	from := min(uint64(max(start.UnixNano(), 0)), to-1)
	step := min(roundUp(divideUp(to-from, uint64(points)), minute), longest)
	from -= from % step
	p := Periods{Start: time.Unix(0, int64(from)), Step: time.Duration(step), Points: int((to-1)/step - from/step + 1)}
	p.minutesEnd = time.Unix(0, int64(min(roundUp(to, minute), longest)))
	p.End = p.minutesEnd
	if now.Before(p.End) {
		p.End = later(now, p.Start)
	}
	p.learnFrom(day)
	return p
}

// learnFrom sets UsualStart to a time before the end, at the start of a slot.
func (p *Periods) learnFrom(before time.Duration) {
	end := uint64(p.usualEnd().UnixNano())
	p.UsualStart = time.Unix(0, int64(roundUp(end-min(end, uint64(before)), uint64(slot))))
}

// learnDays also learns from days before the last one.
func (p *Periods) learnDays() { p.learnFrom(learnedDays * day) }

// usualEnd returns End, extended to a whole minute.
func (p *Periods) usualEnd() time.Time {
	return time.Unix(0, int64(min(roundUp(uint64(p.End.UnixNano()), uint64(time.Minute)), uint64(p.minutesEnd.UnixNano()))))
}

// slots returns the number of slots from which the usual is learned. The last one may be
// incomplete.
func (p *Periods) slots() int {
	return int(divideUp(uint64(p.usualEnd().Sub(p.UsualStart)), uint64(slot)))
}

// seriesSize returns the size of a ServiceSeries in bytes: its steps and the slots of its history.
func (p *Periods) seriesSize() int64 { return int64(p.Points)*5*8 + int64(p.slots())*2*16 }

// isRecent reports whether there are calls in the range or in the time of the same length before
// it. Other services have been gone for a long time.
func (p *Periods) isRecent(c *pair) bool {
	since := p.Start.Add(-p.End.Sub(p.Start)).Truncate(slot)
	return len(c.now) > 0 || slices.ContainsFunc(c.learned, func(m tracestore.MetricPoint) bool { return m.Start >= uint64(since.UnixNano()) })
}

func (p *Periods) slotTime(i int) time.Time { return p.UsualStart.Add(time.Duration(i) * slot) }

// last returns the last time within the period.
func (p *Periods) last() time.Time { return p.minutesEnd.Add(-1) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func divideUp(n, by uint64) uint64 { return (n + by - 1) / by }

func roundUp(n, unit uint64) uint64 { return divideUp(n, unit) * unit }
