package baseline

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	typicalParts  = 8   // parts of the times
	typicalTraces = 480 // maximum number of traces with the root to find
	typicalRounds = 4   // searches of a part
	// maxTypicalRead is the maximum number of traces that are read to compare their operations, and
	// maxTypicalSpans the maximum number of their spans.
	maxTypicalRead  = 200
	maxTypicalSpans = 200_000
	// keyMemory is the approximate number of bytes of an operation in a set.
	keyMemory = 192
	// usualShare is the minimum share of traces with a set of operations for the set to be usual.
	usualShare = 0.05
)

// typicalAnswer is the data of GET /api/ui/v1/typical/{id}: the trace with the median duration
// among the traces with the same root and the same operations, preferably without errors.
type typicalAnswer struct {
	TraceID  string `json:"traceID"` // "" if there is no other trace with this root
	Duration uint64 `json:"duration"`
	// ChosenFrom is the number of traces from which it was chosen: traces with the same operations
	// or, if Same is false because these operations are unusual, with the most similar usual
	// operations.
	ChosenFrom int         `json:"chosenFrom"`
	Same       bool        `json:"same"`
	Examined   int         `json:"examined"` // traces with the root whose operations were compared
	Calls      uint64      `json:"calls"`    // calls of the root operation in the searched times, 0 if unknown
	Service    string      `json:"service"`  // of the root
	Name       string      `json:"name"`     // of the root
	Start      route.Nanos `json:"start"`
	End        route.Nanos `json:"end"` // exclusive
}

// candidate is a trace with the same root.
type candidate struct {
	id       otlpdata.TraceID
	duration uint64
	spans    int
	failed   bool                            // has failed spans
	set      map[tracestore.OperationKey]int // nil until it is read
}

// typical serves GET /api/ui/v1/typical/{id}.
func (a *API) typical(slot *core.Slot, t *trace) (any, tracestore.Reasons, error) {
	times, err := a.quietTimes(slot, t)
	if err != nil {
		return nil, nil, err
	}
	found, err := findCandidates(slot, t, times)
	if err == nil && len(found) == 0 {
		times = []core.Window{a.window(t)}
		found, err = findCandidates(slot, t, times)
	}
	if err != nil {
		return nil, nil, err
	}
	read, err := readSets(slot, withoutErrors(found))
	if err != nil {
		return nil, nil, err
	}
	answer := &typicalAnswer{Service: t.RootService, Name: t.RootName,
		Start: route.NanosOf(times[0].From), End: route.NanosOf(times[len(times)-1].To.Add(1))}
	answer.choose(t, read)
	answer.Calls, err = rootCalls(slot, t, times)
	return answer, t.incomplete, err
}

// findCandidates returns traces with the same root as a trace, except the trace itself. They are
// the newest ones in each part of the given times, about the same number for each part if possible.
func findCandidates(slot *core.Slot, t *trace, times []core.Window) (found []candidate, _ error) {
	var parts []tracestore.Query
	for _, w := range core.Split(times, typicalParts) {
		q := rootQuery(slot, t)
		q.From, q.To = w.From, w.To
		parts = append(parts, q)
	}
	for round := 0; round < typicalRounds && len(parts) > 0 && len(found) < typicalTraces; round++ {
		limit := max(1, (typicalTraces-len(found))/len(parts))
		more := parts[:0]
		for _, q := range parts {
			q.Limit = limit
			read := 0
			o, err := slot.FindSummaries(q, nil, func(s *tracestore.Summary) {
				read++
				if s.ID != t.ID && s.RootService == t.RootService && s.RootName == t.RootName && s.End > s.Start {
					found = append(found, candidate{id: s.ID, duration: s.End - s.Start, spans: s.Spans, failed: s.Errors > 0})
				}
			})
			if err != nil {
				return nil, err
			}
			t.incomplete.Add(o.Reasons...)
			// A full page may be followed by others even if a part of the store cannot be read.
			if o.Next.Set && o.Next != q.After && (o.Complete() || read >= limit) {
				q.After = o.Next
				more = append(more, q)
			}
		}
		parts = more
	}
	return found, nil
}

// withoutErrors returns the candidates without failed spans, or all of them if there are none.
func withoutErrors(found []candidate) []candidate {
	sound := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return c.failed })
	if len(sound) == 0 {
		return found
	}
	return sound
}

// rootQuery returns a search for traces with the root of a trace.
func rootQuery(slot *core.Slot, t *trace) tracestore.Query {
	is := func(p tracestore.Place, text string) tracestore.Expr {
		return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: tracestore.Eq, Value: tracestore.Text(text)}
	}
	return tracestore.Query{Tenant: slot.Tenant(), Budget: slot.Budget(),
		Where:   tracestore.And{is(tracestore.Service, t.RootService), is(tracestore.Name, t.RootName)},
		OfTrace: tracestore.And{is(tracestore.RootService, t.RootService), is(tracestore.RootName, t.RootName)}}
}

// readSets reads the operations of evenly spaced candidates. The result is ordered by duration.
func readSets(slot *core.Slot, found []candidate) (read []candidate, _ error) {
	memory, err := tracestore.Reserve(slot.Context(), 0)
	if err != nil {
		return nil, err
	}
	defer memory.Release()
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.duration, b.duration), slices.Compare(a.id[:], b.id[:]))
	})
	found = slices.CompactFunc(found, func(a, b candidate) bool { return a.id == b.id }) // in two parts of the time
	n, total := len(found), 0
	for _, c := range found {
		total += c.spans
	}
	if total > maxTypicalSpans {
		n = max(1, int(float64(n)*maxTypicalSpans/float64(total)))
	}
	n = min(n, maxTypicalRead)
	spans := 0
	for i := range n {
		c := found[(2*i+1)*len(found)/(2*n)]
		if spans += c.spans; spans > maxTypicalSpans && len(read) > 0 {
			break
		}
		t, err := readTrace(slot, tracestore.TraceRef{ID: c.id})
		if err != nil {
			return nil, err
		}
		if err := memory.Grow(int64(len(t.calls)) * keyMemory); err != nil {
			return nil, err
		}
		c.set = t.calls
		read = append(read, c)
	}
	return read, nil
}

// choose chooses the typical trace for a trace from candidates that are ordered by duration.
func (a *typicalAnswer) choose(t *trace, read []candidate) {
	a.Examined = len(read)
	chosen, similarity := []candidate(nil), -1.0
	for _, group := range groupBySet(read) {
		if s := similar(t.calls, group[0].set); float64(len(group)) >= usualShare*float64(len(read)) && s > similarity {
			chosen, similarity = group, s
		}
	}
	if chosen == nil { // no set is usual
		slices.SortStableFunc(read, func(x, y candidate) int {
			return cmp.Compare(similar(t.calls, y.set), similar(t.calls, x.set))
		})
		chosen = read[:(len(read)+1)/2]
		slices.SortStableFunc(chosen, func(x, y candidate) int { return cmp.Compare(x.duration, y.duration) })
	}
	if len(chosen) == 0 {
		return
	}
	c := chosen[(len(chosen)-1)/2]
	a.TraceID, a.Duration = hex.EncodeToString(c.id[:]), c.duration
	a.ChosenFrom, a.Same = len(chosen), similarity == 1
}

// groupBySet groups candidates with equal sets of operations and keeps their order within a group.
func groupBySet(read []candidate) (groups [][]candidate) {
	index := make(map[string]int)
	for _, c := range read {
		name := setName(c.set)
		at, known := index[name]
		if !known {
			at = len(groups)
			index[name] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], c)
	}
	return groups
}

// setName returns a text that is unique for a set of operations.
func setName(set map[tracestore.OperationKey]int) string {
	keys := slices.SortedFunc(maps.Keys(set), compareKeys)
	var name []byte
	for _, k := range keys {
		for _, part := range []string{k.Service, k.Operation, k.Kind} {
			name = strconv.AppendQuote(name, part)
		}
	}
	return string(name)
}

// similar returns the share of operations that two sets have in common, from 0 to 1.
func similar(a, b map[tracestore.OperationKey]int) float64 {
	both := 0
	for k := range a {
		if b[k] > 0 {
			both++
		}
	}
	return float64(both) / float64(max(1, len(a)+len(b)-both))
}

// rootCalls returns the number of calls of a trace's root operation in the given times, or 0 if the
// store does not know it.
func rootCalls(slot *core.Slot, t *trace, times []core.Window) (calls uint64, _ error) {
	store, ok := core.SlotAs[tracestore.Metrics](slot)
	if !ok {
		return 0, nil
	}
	var roots []tracestore.OperationKey
	for key := range t.calls {
		if key.Service == t.RootService && key.Operation == t.RootName {
			roots = append(roots, key)
		}
	}
	durations, err := readDurations(slot, store, t, roots, times)
	for i := range durations {
		calls += durations[i].Count()
	}
	return calls, err
}
