package spanmetrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	minQuietTime  = time.Hour // less time with calls is not enough to compare with
	maxQuietTimes = 6
)

// QuietTimes returns the longest times, in order, in which the requests of some services have no
// incident, in a period before a time. It returns none if these are too short to compare with.
func QuietTimes(s *core.Slot, services []string, end time.Time, before time.Duration) (times []core.Window, _ tracestore.Reasons, _ error) {
	store, ok := core.SlotAs[tracestore.Metrics](s)
	p := NewPeriods(end.Add(-time.Minute), end, end, 1)
	p.learnFrom(before)
	if !ok || int64(p.slots())*int64(len(services)) > maxPoints {
		return nil, nil, nil
	}
	r := callReader{slot: s, store: store}
	held := s.Held()
	found, err := r.services(&p, services, requestKinds())
	if err != nil {
		return nil, nil, err
	}
	noise := make([]bool, p.slots())
	known := false
	for _, c := range found {
		t := newTally(&p)
		t.addPair(c)
		h := learn(t.slots, len(t.slots), slot)
		known = known || h.usual != nil && h.usual.Quiet >= minQuietTime
		for i := range t.slots {
			noise[i] = noise[i] || h.usual != nil && t.slots[i].calls > 0 && !slices.Contains(h.quiet, &t.slots[i])
		}
	}
	if known {
		times = p.longest(noise)
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
