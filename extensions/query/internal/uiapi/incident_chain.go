package uiapi

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// sameTime is how long an incident may start before its cause, and end after it. If a quarter
	// of the cause's length is longer, that applies instead. Starts and ends are imprecise for
	// services with few requests, and if the share of errors grows.
	sameTime = 15 * time.Minute
	// laterTime is how much later the incident of a caller may start. If half the length of the
	// callee's incident is longer, that applies instead. A growing share of errors exceeds the
	// usual share later in services with more other requests.
	laterTime = time.Hour
	// maxHops is the maximum number of calls between two services with incidents if the services
	// between them have none.
	maxHops = 3
	// joinTime is the maximum time between the start of a slow incident and the start of another
	// service's errors with the same callers, for the two to be shown as one.
	joinTime = 5 * time.Minute
)

// chain is the incident of a service, the source, with the incidents of the services that depend on
// it.
type chain struct {
	source  *spanmetrics.ServiceSeries
	reached []*spanmetrics.ServiceSeries // from the source outwards, then slow ones of the same callers
	roots   []rootOperation              // operations that begin the traces, the most frequent first
}

func (c *chain) hasAny(names []string) bool {
	return slices.Contains(names, c.source.Name) ||
		slices.ContainsFunc(c.reached, func(s *spanmetrics.ServiceSeries) bool { return slices.Contains(names, s.Name) })
}

// chains joins the incidents of services by the calls between the services. Several incidents of
// one service are treated separately.
func (r *incidentReader) chains(list []spanmetrics.ServiceSeries) ([]*chain, error) {
	g := &incidentGraph{end: r.periods.End, affected: make(map[string][]*spanmetrics.ServiceSeries),
		causes: make(map[*spanmetrics.ServiceSeries]bool), effects: make(map[*spanmetrics.ServiceSeries][]*spanmetrics.ServiceSeries)}
	var window core.Window
	for i := range list {
		for _, incident := range list[i].Incidents() {
			s := list[i]
			s.Incident = &incident
			g.affected[s.Name] = append(g.affected[s.Name], &s)
			w := r.window(s.Incident)
			if window.From.IsZero() || w.From.Before(window.From) {
				window.From = w.From
			}
			if w.To.After(window.To) {
				window.To = w.To
			}
		}
	}
	if len(g.affected) > 1 {
		callees, err := r.callees(window)
		if err != nil {
			return nil, err
		}
		g.connect(callees)
	}
	return g.chains(), nil
}

// callees returns the services that each service calls. If the store does not count calls between
// services, it returns none, and each service has a separate incident.
func (r *incidentReader) callees(w core.Window) (map[string][]string, error) {
	store, ok := core.SlotAs[tracestore.Edges](r.slot)
	if !ok {
		return nil, nil
	}
	graph, err := store.Dependencies(r.slot.Context(), r.slot.Tenant(), w.From, w.To)
	if err != nil {
		return nil, err
	}
	r.reasons.Add(graph.Reasons...)
	out := make(map[string][]string)
	for _, l := range core.Links(graph.Edges, "") {
		out[l.Parent] = append(out[l.Parent], l.Child)
	}
	return out, nil
}

// incidentGraph holds each incident of each service, and its possible causes and effects among the
// others.
type incidentGraph struct {
	end      time.Time // of what is known
	affected map[string][]*spanmetrics.ServiceSeries
	causes   map[*spanmetrics.ServiceSeries]bool // the incident of a callee can be the cause
	effects  map[*spanmetrics.ServiceSeries][]*spanmetrics.ServiceSeries
}

// connect finds, for each affected service, the next affected services that it calls, directly or
// through unaffected services.
func (g *incidentGraph) connect(callees map[string][]string) {
	for _, s := range g.sorted() {
		seen, next := map[string]bool{s.Name: true}, []string{s.Name}
		for hop := 0; hop < maxHops && len(next) > 0; hop++ {
			var further []string
			for _, caller := range next {
				for _, name := range callees[caller] {
					if seen[name] {
						continue
					}
					seen[name] = true
					if c := g.cause(name, s.Incident); c != nil {
						g.causes[s] = true
						g.effects[c] = append(g.effects[c], s)
						continue
					}
					further = append(further, name)
				}
			}
			next = further
		}
	}
}

// cause returns an incident of a callee that can be the cause of the caller's incident, or nil. If
// there are several, it returns the one whose start is nearest.
func (g *incidentGraph) cause(callee string, caller *spanmetrics.Incident) (nearest *spanmetrics.ServiceSeries) {
	apart := func(s *spanmetrics.ServiceSeries) time.Duration { return caller.Start.Sub(s.Incident.Start).Abs() }
	for _, s := range g.affected[callee] {
		if g.canCause(s.Incident, caller) && (nearest == nil || apart(s) < apart(nearest)) {
			nearest = s
		}
	}
	return nearest
}

// canCause reports whether the incident of a callee can be the cause of a caller's incident: it
// starts at the same time or earlier, and does not end earlier.
func (g *incidentGraph) canCause(callee, caller *spanmetrics.Incident) bool {
	calleeEnd, callerEnd := g.endOf(callee), g.endOf(caller)
	if callerEnd.After(calleeEnd.Add(sameTime)) {
		return false
	}
	if callee.Start.IsZero() || caller.Start.IsZero() {
		return caller.End.IsZero()
	}
	length, after := calleeEnd.Sub(callee.Start), caller.Start.Sub(callee.Start)
	return after >= -max(sameTime, length/4) && after <= max(laterTime, length/2) && caller.Start.Before(calleeEnd.Add(sameTime))
}

func (g *incidentGraph) endOf(i *spanmetrics.Incident) time.Time {
	if i.End.IsZero() {
		return g.end
	}
	return i.End
}

// chains returns one incident for each source, a service none of whose callees can be the cause.
// Among services that call each other, the worst one is the source.
func (g *incidentGraph) chains() (out []*chain) {
	done := make(map[*spanmetrics.ServiceSeries]bool)
	sorted := g.sorted()
	add := func(s *spanmetrics.ServiceSeries) {
		c := &chain{source: s}
		seen, next := map[*spanmetrics.ServiceSeries]bool{s: true}, []*spanmetrics.ServiceSeries{s}
		for len(next) > 0 {
			one := next[0]
			next = next[1:]
			done[one] = true
			for _, effect := range g.effects[one] {
				if !seen[effect] {
					seen[effect] = true
					next = append(next, effect)
					if !c.hasAny([]string{effect.Name}) {
						c.reached = append(c.reached, effect)
					}
				}
			}
		}
		out = append(out, c)
	}
	for _, s := range sorted {
		if !g.causes[s] {
			add(s)
		}
	}
	for _, s := range sorted {
		if !done[s] {
			add(s)
		}
	}
	slices.SortStableFunc(out, func(a, b *chain) int { return worseFirst(a.source, b.source) })
	return joinSlow(out)
}

// joinSlow adds a slow service to the incident of another service's errors if these errors started
// at the same time and reach all callers of the slow service: its requests became slow for the same
// reason.
func joinSlow(sorted []*chain) (out []*chain) {
	for _, c := range sorted {
		i := slices.IndexFunc(out, func(to *chain) bool { return c.joins(to) })
		if i < 0 {
			out = append(out, c)
		} else {
			out[i].reached = append(out[i].reached, c.source)
		}
	}
	return out
}

func (c *chain) joins(to *chain) bool {
	slow, errors := c.source.Incident, to.source.Incident
	return slow.Kind == spanmetrics.Slow && errors.Kind == spanmetrics.Errors && !slow.Start.IsZero() && !errors.Start.IsZero() &&
		slow.Start.Sub(errors.Start).Abs() <= joinTime && len(c.reached) > 0 &&
		!slices.ContainsFunc(c.reached, func(s *spanmetrics.ServiceSeries) bool { return !slices.Contains(to.reached, s) })
}

// sorted returns the affected services, the worst first.
func (g *incidentGraph) sorted() []*spanmetrics.ServiceSeries {
	out := make([]*spanmetrics.ServiceSeries, 0, len(g.affected))
	for _, list := range g.affected {
		out = append(out, list...)
	}
	slices.SortFunc(out, worseFirst)
	return out
}

// worseFirst orders services with incidents: ongoing incidents first, then errors, then by how far
// above usual.
func worseFirst(a, b *spanmetrics.ServiceSeries) int {
	rank := func(s *spanmetrics.ServiceSeries) int {
		n := 0
		if !s.Incident.End.IsZero() {
			n += 2
		}
		if s.Incident.Kind != spanmetrics.Errors {
			n++
		}
		return n
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(aboveUsual(b), aboveUsual(a)), strings.Compare(a.Name, b.Name))
}

// endedLast reorders sorted incidents: incidents that have ended come last, the latest of them
// first.
func endedLast(a, b *chain) int {
	x, y := a.source.Incident.End, b.source.Incident.End
	if x.IsZero() || y.IsZero() {
		return x.Compare(y) // the zero time is before all others
	}
	return y.Compare(x)
}

// aboveUsual returns the number of errors above usual, or the ratio of p95 to the usual p95.
func aboveUsual(s *spanmetrics.ServiceSeries) float64 {
	i, usual := s.Incident, s.Usual
	switch {
	case i.Kind == spanmetrics.Slow && usual != nil && usual.P95 > 0:
		return i.P95 / usual.P95
	case usual != nil && usual.Calls > 0:
		return float64(i.Errors) - float64(i.Calls)*float64(usual.Errors)/float64(usual.Calls)
	}
	return float64(i.Errors)
}
