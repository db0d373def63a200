package spanmetrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	minQuietTime  = time.Hour // minimum quiet time with calls for a comparison
	maxQuietTimes = 6
)

// QuietTimes returns the longest times, in order, in which the requests of some services have no
// incident, in a period before a time. It returns none if these times contain less than an hour
// with requests.
func QuietTimes(s *core.Slot, services []string, end time.Time, before time.Duration) ([]core.Window, tracestore.Reasons, error) {
	store, ok := core.SlotAs[tracestore.Metrics](s)
	p := NewPeriods(end.Add(-time.Minute), end, end, 1)
	p.learnFrom(before)
	if !ok || int64(p.slots())*int64(len(services)) > maxPoints {
		return nil, nil, nil
	}
	r := callReader{slot: s, store: store}
	held := s.Held()
	used, noise := make([]bool, p.slots()), make([]bool, p.slots())
	q := tracestore.MetricsQuery{Services: services, Kinds: requestKinds(), From: p.UsualStart, To: p.last(), Step: slot}
	err := r.visit(q, func(m *tracestore.MetricSeries) {
		slots := make([]counts, p.slots())
		addPoints(slots, m.Points, p.UsualStart, slot)
		h := learn(slots, len(slots), slot)
		for i := range slots {
			if h.usual != nil && slots[i].calls > 0 {
				used[i] = true
				noise[i] = noise[i] || !slices.Contains(h.quiet, &slots[i])
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	times, quiet := p.longest(noise), time.Duration(0)
	for _, w := range times {
		for at := w.From; !at.After(w.To); at = at.Add(slot) {
			if used[at.Sub(p.UsualStart)/slot] {
				quiet += min(slot, w.To.Add(1).Sub(at))
			}
		}
	}
	if quiet < minQuietTime {
		times = nil
	}
	return times, r.reasons, s.SetHeld(held)
}

// longest returns the longest times without noise.
func (p *Periods) longest(noise []bool) (times []core.Window) {
	for i := 0; i < len(noise); i++ {
		from := i
		for i < len(noise) && !noise[i] {
			i++
		}
		if i > from {
			times = append(times, core.Window{From: p.slotTime(from), To: p.slotTime(i).Add(-1)})
		}
	}
	length := func(w core.Window) time.Duration { return w.To.Sub(w.From) }
	slices.SortStableFunc(times, func(a, b core.Window) int { return cmp.Compare(length(b), length(a)) })
	times = times[:min(len(times), maxQuietTimes)]
	for i := range times {
		if times[i].To.After(p.End) {
			times[i].To = p.End.Add(-1)
		}
	}
	slices.SortFunc(times, func(a, b core.Window) int { return a.From.Compare(b.From) })
	return times
}
