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
	Slow   IncidentKind = "slow"   // p95 is above the usual one
)

const (
	// minEvidence is the logarithm of how much likelier the calls of an incident are with its share
	// of bad calls than with the usual one; endEvidence is the reverse for the calls after its end.
	// TestQuietHours checks that minEvidence is enough for 20 quiet services.
	minEvidence, endEvidence = 12, 7
	minUsualShare            = 0.001 // a lower usual share counts as this one
	maxShare                 = 0.99
	alwaysFailing            = 0.25 // share of errors that is never usual
	rounds                   = 2    // of estimating the share of bad calls of an incident
)

// Incident is time in which a service is worse than usual.
type Incident struct {
	Kind  IncidentKind
	Start time.Time // zero: not known
	End   time.Time // zero: it goes on
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

// latest returns the latest incident that has not ended before the range, errors first, those that
// go on before those that have ended. It returns nil if there is none. An incident of a service
// that is no longer called, although it usually is, has ended.
func (h *history) latest(s *series, p *Periods) (found *Incident) {
	for i := range h.bad {
		b := &h.bad[i]
		incident := b.latest(s, p)
		if silent := s.silent(); incident != nil && incident.End.IsZero() && h.usual.callsIn(silent) >= minCalls {
			incident.End = s.end().Add(-silent)
		}
		if incident == nil || !incident.End.IsZero() && !incident.End.After(p.Start) {
			continue
		}
		if found == nil || !found.End.IsZero() && incident.End.IsZero() {
			found = incident
		}
	}
	return found
}

// latest finds the latest incident of the kind.
func (b *badCalls) latest(s *series, p *Periods) *Incident {
	usual := make([]float64, len(s.counts))
	for i := range usual {
		usual[i] = b.shareIn(int(s.time(i).Sub(p.UsualStart) / slot))
	}
	list := chosen(s.counts, func(*counts) bool { return true })
	for _, r := range slices.Backward(b.rises(list, usual)) {
		incident := &Incident{Kind: b.kind, Start: s.time(r.first), SlowFrom: b.from}
		if r.open {
			r.last = len(list) - 1
		} else {
			incident.End = s.time(r.last + 1)
		}
		all := sum(list[r.first : r.last+1])
		if b.of(&all) >= minBad && b.share(&all) >= max(b.minShare, badFactor*b.usual) {
			incident.Red = all.red()
			return incident
		}
	}
	return nil
}

// rise is steps with more bad calls than usual.
type rise struct {
	first, last int
	open        bool // it goes on
}

// rises finds all rises in steps with the usual shares of bad calls, in order. How exactly the
// start and end of a rise are found depends on the share of bad calls to search for. It is
// estimated from the last rise, and the search is repeated with it. Earlier rises that the repeated
// search does not find are kept.
func (b *badCalls) rises(list []*counts, usual []float64) (found []rise) {
	for _, share := range []float64{0, 0.05, 0.25} { // few bad calls are evidence of a large share only
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

// search returns the steps in which bad calls are likelier to have a share than the usual one. The
// evidence is the sum of the logarithms of how much likelier each call is, as in Page's test: a
// rise is the steps with the largest sum.
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
