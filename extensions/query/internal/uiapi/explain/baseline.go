package explain

import (
	"errors"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

// baseline selects the traces that selected traces are compared with.
type baseline string

const (
	allOthers  baseline = "others" // other traces of the time range
	sameTime   baseline = "time"   // other traces of the time of the selection
	dayEarlier baseline = "day"    // all traces of the time of the selection, one day earlier
)

var errBaseline = errors.New("must be others, time or day")

func baselineParam(v url.Values) (baseline, error) {
	switch b := baseline(v.Get("baseline")); b {
	case "":
		return allOthers, nil
	case allOthers, sameTime, dayEarlier:
		return b, nil
	}
	return "", httpapi.ParamError("baseline", errBaseline)
}

// profile returns the profile of the selected traces and of the baseline.
func (r request) profile(slot *core.Slot) (tracestore.PathProfile, error) {
	q := r.query
	sets := r.sets()
	if r.baseline == allOthers {
		return r.profilePaths(slot, q, r.selection, sets)
	}
	q.From, q.To = later(q.From, r.selection.From), earlier(q.To, r.selection.To)
	if r.baseline == sameTime {
		return r.profilePaths(slot, q, r.selection, sets)
	}
	const day = 24 * time.Hour
	now, err := r.profilePaths(slot, q, r.selection, sets)
	if err != nil {
		return now, err
	}
	q.From, q.To = q.From.Add(-day), q.To.Add(-day)
	before, err := r.profilePaths(slot, q, nothing, sets)
	if err != nil {
		return before, err
	}
	return withRest(&now, &before), nil
}

// nothing is the selection of no trace.
var nothing = tracestore.Selection{Where: tracestore.Or{}}

// sets returns the sets of the query and of the selection.
func (r *request) sets() callpath.Sets {
	var out callpath.Sets
	if r.set != nil {
		out.All = append(out.All, r.set)
	}
	if r.chosen != nil {
		out.Selected = append(out.Selected, r.chosen)
	}
	return out
}

// profilePaths describes the traces of a query and of a selection. The store finds them alone
// unless they depend on the structure of traces.
func (r *request) profilePaths(
	slot *core.Slot, q tracestore.Query, sel tracestore.Selection, sets callpath.Sets,
) (tracestore.PathProfile, error) {
	q.Tenant, q.Budget = slot.Tenant(), slot.Budget()
	options := tracestore.PathOptions{Traces: r.traces}
	if !r.hasSets() {
		return r.store.ProfilePaths(slot.Context(), q, sel, options)
	}
	return callpath.ProfileSets(slot.Context(), slot.Store(), q, sel, sets, options)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// withRest returns the selected traces of one profile and the rest of another.
func withRest(a, b *tracestore.PathProfile) tracestore.PathProfile {
	out := tracestore.PathProfile{Selected: a.Selected, Rest: b.Rest, Scanned: a.Scanned + b.Scanned, Reasons: a.Reasons}
	out.Reasons.Add(b.Reasons...)
	m := merger{out: &out, paths: make(map[pathID]int), operations: make(map[operationID]int)}
	m.addPaths(a.Paths, func(to, from *tracestore.CallPath) { to.Selected = from.Selected })
	m.addPaths(b.Paths, func(to, from *tracestore.CallPath) { to.Rest = from.Rest })
	m.addOperations(a.Operations, func(to, from *tracestore.OperationProfile) { to.Selected = from.Selected })
	m.addOperations(b.Operations, func(to, from *tracestore.OperationProfile) { to.Rest = from.Rest })
	return out
}

// pathID identifies a call path of a merged profile.
type pathID struct {
	parent        int
	service, name string
	kind          int32
}

type operationID struct{ service, name string }

// merger joins profiles.
type merger struct {
	out        *tracestore.PathProfile
	paths      map[pathID]int // index
	operations map[operationID]int
}

// addPaths adds call paths; set copies the counts of one side.
func (m *merger) addPaths(paths []tracestore.CallPath, set func(to, from *tracestore.CallPath)) {
	index := make([]int, len(paths))
	for i := range paths {
		p := paths[i]
		id := pathID{-1, p.Service, p.Name, p.Kind}
		if p.Parent >= 0 {
			id.parent = index[p.Parent]
		}
		at, ok := m.paths[id]
		if !ok {
			at = len(m.out.Paths)
			m.paths[id] = at
			m.out.Paths = append(m.out.Paths, tracestore.CallPath{Parent: id.parent, Service: p.Service, Name: p.Name, Kind: p.Kind})
		}
		index[i] = at
		set(&m.out.Paths[at], &p)
	}
}

// addOperations is like addPaths.
func (m *merger) addOperations(operations []tracestore.OperationProfile, set func(to, from *tracestore.OperationProfile)) {
	for i := range operations {
		o := &operations[i]
		id := operationID{o.Service, o.Name}
		at, ok := m.operations[id]
		if !ok {
			at = len(m.out.Operations)
			m.operations[id] = at
			m.out.Operations = append(m.out.Operations, tracestore.OperationProfile{Service: o.Service, Name: o.Name})
		}
		set(&m.out.Operations[at], o)
	}
}
