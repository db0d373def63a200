package spanmetrics

import (
	"math"
	"slices"
	"time"
)

// IncidentKind says what is wrong.
type IncidentKind string

// Kinds of incidents.
const (
	Errors IncidentKind = "errors" // more calls fail than usual
	Slow   IncidentKind = "slow"   // p95 is higher than usual
)

const (
	// minEvidence is the minimum log-likelihood ratio of an incident: how much likelier its calls
	// are with its share of bad calls than with the usual share. endEvidence is the same in the
	// opposite direction, for the calls after its end. TestQuietHours checks that minEvidence is
	// enough for 20 quiet services.
	minEvidence, endEvidence = 12, 9
	minUsualShare            = 0.001 // lower usual shares are raised to this share
	maxShare                 = 0.99
	alwaysFailing            = 0.25 // share of errors that is never usual
	rounds                   = 2    // number of estimates of the share of bad calls of an incident
	maxIncidents             = 20   // of a service
	maxPause                 = slot // maximum time between two rises of the same incident
)

// Incident is a period in which a service is worse than usual.
type Incident struct {
	Kind  IncidentKind
	Start time.Time // zero: not known
	End   time.Time // zero: ongoing
	Red             // of the calls from Start to End
	// SlowFrom is the duration in nanoseconds from which a call counts as slow, 0 unless Kind is
	// Slow.
	SlowFrom float64
}

// series is counts in steps of equal length.
type series struct {
	start  time.Time
	length time.Duration
	counts []counts
}

func (s *series) time(i int) time.Time { return s.start.Add(time.Duration(i) * s.length) }

func (s *series) end() time.Time { return s.time(len(s.counts)) }

// silent returns the time without calls at the end.
func (s *series) silent() time.Duration {
	n := 0
	for n < len(s.counts) && s.counts[len(s.counts)-1-n].calls == 0 {
		n++
	}
	return time.Duration(n) * s.length
}

// incidents returns the incidents that have not ended before the range, see first. If a service
// that is usually called is no longer called, its incident has ended.
func (h *history) incidents(s *series, p *Periods) (found []Incident) {
	if h.usual == nil {
		return nil
	}
	silent := s.silent()
	stopped := h.usual.callsIn(silent) >= minCalls
	for i := range h.bad {
		for _, incident := range h.bad[i].incidents(s, p) {
			if incident.End.IsZero() && stopped {
				incident.End = s.end().Add(-silent)
			}
			if incident.End.IsZero() || incident.End.After(p.Start) {
				found = append(found, incident)
			}
		}
	}
	return found
}

// apart orders the incidents of a service. The first one represents the service: an ongoing one if
// there is one, errors before slow calls. The others follow, the latest first. It removes slow
// incidents at the time of a preceding one, duplicates, and incidents beyond maxIncidents.
func apart(found []Incident) (list []Incident) {
	slices.SortFunc(found, func(a, b Incident) int { return b.Start.Compare(a.Start) })
	rank := func(i *Incident) int {
		n := 0
		if !i.End.IsZero() {
			n += 2
		}
		if i.Kind != Errors {
			n++
		}
		return n
	}
	slices.SortStableFunc(found, func(a, b Incident) int { return rank(&a) - rank(&b) })
	for _, i := range found {
		same := func(o Incident) bool { return (i.Kind == Slow || i.Kind == o.Kind) && i.overlaps(&o) }
		if len(list) < maxIncidents && !slices.ContainsFunc(list, same) {
			list = append(list, i)
		}
	}
	if len(list) > 1 {
		slices.SortFunc(list[1:], func(a, b Incident) int { return b.Start.Compare(a.Start) })
	}
	return list
}

func (i *Incident) overlaps(o *Incident) bool {
	return (i.End.IsZero() || o.Start.Before(i.End)) && (o.End.IsZero() || i.Start.Before(o.End))
}

// incidents finds the incidents of the kind, the latest first.
func (b *badCalls) incidents(s *series, p *Periods) (found []Incident) {
	usual := make([]float64, len(s.counts))
	for i := range usual {
		usual[i] = b.shareIn(int(s.time(i).Sub(p.UsualStart) / slot))
	}
	list := chosen(s.counts, func(*counts) bool { return true })
	var last *rise
	for _, r := range b.rises(list, usual) {
		all := sum(list[r.first : r.last+1])
		switch {
		case b.of(&all) < minBad || b.share(&all) < max(b.minShare, badFactor*b.usual):
		case last != nil && time.Duration(r.first-last.last-1)*s.length <= maxPause:
			last.last, last.open = r.last, r.open
			found[0] = b.incident(s, last)
		default:
			last = &r
			found = slices.Insert(found, 0, b.incident(s, last))
		}
	}
	return found
}

// incident returns the incident of a rise.
func (b *badCalls) incident(s *series, r *rise) Incident {
	out := Incident{Kind: b.kind, Start: s.time(r.first), SlowFrom: b.from}
	to := len(s.counts)
	if !r.open {
		to = r.last + 1
		out.End = s.time(to)
	}
	all := sum(chosen(s.counts[r.first:to], func(*counts) bool { return true }))
	out.Red = all.red()
	return out
}

// rise is a run of steps with more bad calls than usual.
type rise struct {
	first, last int
	open        bool // ongoing
}

// rises finds all rises, in order, given the usual shares of bad calls in steps. The precision of
// the start and end of a rise depends on the share of bad calls that is searched for. This share is
// estimated from the last rise, and the search is repeated with it. Earlier rises that the repeated
// search does not find are kept.
func (b *badCalls) rises(list []*counts, usual []float64) (found []rise) {
	for _, share := range []float64{0, 0.05, 0.25} { // few bad calls are evidence only of a large share
		if found = b.search(list, usual, share); len(found) > 0 {
			break
		}
	}
	for i := 0; i < rounds && len(found) > 0; i++ {
		last := found[len(found)-1]
		all := sum(list[last.first : last.last+1])
		next := b.search(list, usual, b.share(&all))
		if len(next) == 0 {
			break
		}
		earlier := slices.IndexFunc(found, func(r rise) bool { return r.last >= next[0].first })
		if earlier < 0 {
			earlier = len(found)
		}
		found = append(found[:earlier:earlier], next...)
	}
	return found
}

// search returns the runs of steps in which a given share of bad calls is likelier than the usual
// share. The evidence is the log-likelihood ratio summed over the calls, as in Page's test: a rise
// is the run of steps with the largest sum.
func (b *badCalls) search(list []*counts, usual []float64, share float64) (found []rise) {
	start, end, evidence, most := 0, 0, 0., 0.
	for i := range list {
		if evidence <= 0 {
			start, evidence, most = i, 0, 0
		}
		evidence += b.evidence(list[i], usual[i], share)
		if evidence > most {
			end, most = i, evidence
		}
		over := most-evidence >= endEvidence || evidence <= 0
		if most >= minEvidence && (over || i == len(list)-1) {
			found = append(found, rise{start, end, !over})
		}
		if over {
			evidence = 0
		}
	}
	return found
}

func (b *badCalls) evidence(c *counts, usual, share float64) float64 {
	share = min(maxShare, max(share, b.minShare, badFactor*usual))
	usual = min(usual, share/badFactor)
	bad := float64(b.of(c))
	return bad*math.Log(share/usual) + (float64(c.calls)-bad)*math.Log((1-share)/(1-usual))
}
