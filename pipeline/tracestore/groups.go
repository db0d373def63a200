package tracestore

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// GroupQuery requests the number, errors and durations of spans by the values of some fields, and
// the numbers of a field.
type GroupQuery struct {
	// By lists the fields, at most MaxGroupFields, without duplicates. If it is empty, all spans
	// are one group. Fields of the trace have no values, except if whole traces are
	// counted; see storequery.SetAggregation.
	By []Field
	// Limit is the maximum number of groups to return, from 1 to MaxGroups.
	Limit int
	Sort  GroupOrder
	// Parts is the number of equal parts of the window in which spans of each group are counted, at
	// most MaxGroupParts. 0 requests none.
	Parts int
	// Step, if above 0, is the length of parts that end at multiples of Step since the Unix epoch.
	// A span that starts at such a multiple belongs to the part that ends there. Parts must be 0.
	// There may be at most MaxGroupSteps parts.
	Step time.Duration
	// Measure says what Group.Numbers holds of the values of Of.
	Measure Measure
	Of      Field
	// Adjusted counts a span as the spans that it represents; see otlpdata.Span.AdjustedCount.
	Adjusted bool
	// All requests all groups that were counted, in any order, so that the results of several
	// stores can be added up. Limit and Sort must be valid but are otherwise ignored.
	All bool
}

// GroupOrder is the order of groups, always descending.
type GroupOrder uint8

// The orders. Groups that are equal are sorted by GroupsBySpans and then by their values,
// ascending.
const (
	GroupsBySpans  GroupOrder = iota // number of spans
	GroupsByErrors                   // number of spans with the status error
	GroupsByErrorShare
	GroupsByP50 // quantiles of durations
	GroupsByP95
	GroupsByP99
	GroupsByTime // sum of durations
	numGroupOrders
)

// Limits of groups.
const (
	MaxGroupFields = 5
	MaxGroups      = 1000
	MaxGroupParts  = 120
	MaxGroupSteps  = 12_000
)

// Requested reports whether the query requests groups. A query without a Limit is then invalid.
func (g *GroupQuery) Requested() bool {
	return g.Limit != 0 || len(g.By) > 0 || g.Step != 0 || g.Measure != MeasureNone
}

// Groups counts spans in groups with the same values.
type Groups struct {
	// All counts all matching spans that were examined. It has no values.
	All Group
	// Groups are in the order of GroupQuery.Sort, at most GroupQuery.Limit, except with
	// GroupQuery.All.
	Groups []Group
	// Distinct is the number of groups that were counted, including groups that are not returned.
	Distinct int
	// Other is the number of spans in further groups, which were not counted individually because
	// there were too many; see storequery.MaxGroupsCounted.
	Other uint64
	Share float64 // see Heatmap.Share
}

// Group counts the spans that have the same values.
//
// A span without a value of a field belongs to a group whose value is absent. A span with several
// distinct values of a field counts once for each combination of its values. Only the first
// storequery.MaxGroupValues values of each field are examined, and only the first
// storequery.MaxGroupCombinations combinations are groups of the span.
type Group struct {
	Values [MaxGroupFields]GroupValue // in the order of GroupQuery.By
	Errors uint64                     // spans with the status error
	// Durations holds the durations of the spans as corrected by otlpdata.Span.Duration. Its Count
	// is the number of spans.
	Durations Histogram
	// First and Last are the first and last start of the spans. Without Parts they are 0, so that
	// stores can count groups without reading spans.
	First, Last uint64
	// Parts are the numbers of spans in the parts of the window; see GroupQuery.PartsOf.
	Parts []uint64
	// Numbers describe the values of GroupQuery.Of in the parts of the window, or in the whole
	// window if it has no parts. It is empty if GroupQuery.Measure is MeasureNone.
	Numbers []Numbers
}

// Parts divides a window into equal parts. Parts of a GroupQuery.Step contain their end instead of
// their beginning.
type Parts struct {
	From, Length uint64 // of the first part, in nanoseconds; with OfStep, From is the end of the first part
	N            int
	OfStep       bool
}

// Parts returns n equal parts of the window. The last one may be shorter.
func (q Query) Parts(n int) Parts {
	from, to, ok := q.Window()
	if n < 1 || !ok {
		return Parts{}
	}
	length := (to - from) / uint64(n)
	if length < math.MaxUint64 {
		length++
	}
	return Parts{From: from, Length: length, N: n}
}

// PartsOf returns the parts of a query's window in which spans are counted. Parts of a Step end at
// its multiples; the first and the last one may extend beyond the window. There are none if there
// would be more than MaxGroupSteps.
func (g *GroupQuery) PartsOf(q Query) Parts {
	from, to, ok := q.Window()
	if g.Step <= 0 || !ok {
		return q.Parts(g.Parts)
	}
	step := uint64(g.Step)
	first, last := stepOf(from, step), stepOf(to, step)
	if last-first >= MaxGroupSteps {
		return Parts{}
	}
	return Parts{From: saturatingMul(first, step), Length: step, N: int(last-first) + 1, OfStep: true}
}

// stepOf returns the number of the part that contains a start: start / step, rounded up.
func stepOf(start, step uint64) uint64 {
	if start%step == 0 {
		return start / step
	}
	return start/step + 1
}

// At returns the number of the part to which a start within the window belongs.
func (p Parts) At(start uint64) int {
	switch {
	case !p.OfStep:
		return int((start - p.From) / p.Length)
	case start <= p.From:
		return 0
	}
	return int((start-p.From-1)/p.Length) + 1
}

// isEmpty reports whether the group has no spans.
func (g *Group) isEmpty() bool {
	_, counts := g.Durations.Counts()
	return len(counts) == 0
}

// Observation is a span as groups count it.
type Observation struct {
	Start, Duration uint64
	Failed          bool
	Count           uint64 // number of spans that it stands for, at least 1
	Number          float64
	HasNumber       bool // it has a value of GroupQuery.Of
}

// Observe counts a span whose start is within the window of the parts, and returns how many buckets
// were added.
func (g *Group) Observe(o *Observation, p Parts, m Measure) (added int) {
	at := 0
	if p.N > 0 {
		if g.isEmpty() {
			g.First, g.Last = o.Start, o.Start
		}
		g.First, g.Last = min(g.First, o.Start), max(g.Last, o.Start)
		if g.Parts == nil {
			g.Parts = make([]uint64, p.N)
		}
		at = p.At(o.Start)
		g.Parts[at] += o.Count
	}
	if m != MeasureNone {
		if g.Numbers == nil {
			g.Numbers = make([]Numbers, max(p.N, 1))
		}
		if o.HasNumber {
			added = g.Numbers[at].Observe(o.Number, o.Count, m)
		}
	}
	before := len(g.Durations.counts)
	g.Durations.ObserveN(o.Duration, o.Count)
	if o.Failed {
		g.Errors += o.Count
	}
	return added + len(g.Durations.counts) - before
}

// Add adds the spans of another group with the same parts, and returns how many buckets were added.
func (g *Group) Add(o *Group) (added int) {
	switch {
	case o.isEmpty():
		return 0
	case g.isEmpty():
		g.First, g.Last = o.First, o.Last
	}
	g.First, g.Last = min(g.First, o.First), max(g.Last, o.Last)
	before := len(g.Durations.counts)
	g.Durations.Add(&o.Durations)
	added = len(g.Durations.counts) - before
	g.Errors += o.Errors
	if len(g.Parts) < len(o.Parts) {
		g.Parts = append(g.Parts, make([]uint64, len(o.Parts)-len(g.Parts))...)
	}
	for i, n := range o.Parts {
		g.Parts[i] += n
	}
	if len(g.Numbers) < len(o.Numbers) {
		g.Numbers = append(g.Numbers, make([]Numbers, len(o.Numbers)-len(g.Numbers))...)
	}
	for i := range o.Numbers {
		added += g.Numbers[i].Add(&o.Numbers[i])
	}
	return added
}

// GroupValue is a value of a field, or none.
type GroupValue struct {
	Text    string // otlpdata.Value.AsString, shortened by storequery.FacetText
	Present bool
}

func (g *GroupQuery) check(q Query) error {
	switch {
	case !g.Requested():
		return nil
	case len(g.By) > MaxGroupFields:
		return fmt.Errorf("%d fields to group by exceed the maximum of %d", len(g.By), MaxGroupFields)
	case g.Limit < 1 || g.Limit > MaxGroups:
		return fmt.Errorf("%d groups requested; the number must be from 1 to %d", g.Limit, MaxGroups)
	case g.Parts < 0 || g.Parts > MaxGroupParts:
		return fmt.Errorf("%d parts of the window requested; the number must be from 0 to %d", g.Parts, MaxGroupParts)
	case g.Step < 0 || g.Step > 0 && g.Parts > 0:
		return fmt.Errorf("step %s with %d parts of the window; one of them must be 0", g.Step, g.Parts)
	case g.Sort >= numGroupOrders:
		return fmt.Errorf("unknown order of groups %d", g.Sort)
	case g.Measure >= numMeasures:
		return fmt.Errorf("unknown measure of groups %d", g.Measure)
	}
	if _, _, ok := q.Window(); ok && g.Step > 0 && g.PartsOf(q).N == 0 {
		return fmt.Errorf("time range has more than %d steps of %s; use a longer step", MaxGroupSteps, g.Step)
	}
	for i, f := range g.By {
		if err := g.checkField(f, "group by"); err != nil {
			return err
		}
		same := func(o Field) bool { return o == f || f.Names != "" && o.Place == f.Place && o.Names == f.Names }
		if slices.ContainsFunc(g.By[:i], same) {
			return fmt.Errorf("duplicate field to group by: place %d, key %q", f.Place, f.Key)
		}
	}
	if g.Measure == MeasureNone {
		return nil
	}
	return g.checkField(g.Of, "measure")
}

func (*GroupQuery) checkField(f Field, use string) error {
	if !f.Place.known() {
		return fmt.Errorf("unknown place %d of a field to %s", f.Place, use)
	}
	if f.Place.Info().SearchOnly {
		return fmt.Errorf("%s is not available as a field to %s, because it is only for searches", f.Place.Info().Name, use)
	}
	return nil
}
