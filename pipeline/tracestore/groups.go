package tracestore

import (
	"errors"
	"fmt"
	"math"
)

// GroupQuery requests the number, errors and durations of spans by the values of one or two fields.
type GroupQuery struct {
	// By lists the fields, at most MaxGroupFields, without duplicates. An empty list requests no
	// groups. Fields of the trace have no values, except if whole traces are counted; see
	// storequery.SetAggregation.
	By []Field
	// Limit is the maximum number of groups to return, from 1 to MaxGroups.
	Limit int
	Sort  GroupOrder
	// Parts is the number of equal parts of the window in which spans of each group are counted, at
	// most MaxGroupParts. 0 requests none.
	Parts int
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
	MaxGroupFields = 2
	MaxGroups      = 1000
	MaxGroupParts  = 120
)

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
// storequery.MaxGroupValues values of each field are examined.
type Group struct {
	Values [MaxGroupFields]GroupValue // in the order of GroupQuery.By
	Errors uint64                     // spans with the status error
	// Durations holds the durations of the spans as corrected by otlpdata.Span.Duration. Its Count
	// is the number of spans.
	Durations Histogram
	// First and Last are the first and last start of the spans. Without Parts they are 0, so that
	// stores can count groups without reading spans.
	First, Last uint64
	// Parts are the numbers of spans in GroupQuery.Parts equal parts of the window; see Parts.At.
	Parts []uint64
}

// Parts divides a window into equal parts.
type Parts struct {
	From, Length uint64 // of the first part, in nanoseconds
	N            int
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
	return Parts{from, length, n}
}

// At returns the number of the part to which a start within the window belongs.
func (p Parts) At(start uint64) int { return int((start - p.From) / p.Length) }

// isEmpty reports whether the group has no spans.
func (g *Group) isEmpty() bool {
	_, counts := g.Durations.Counts()
	return len(counts) == 0
}

// Observe counts a span whose start is within the window of the parts.
func (g *Group) Observe(start, duration uint64, failed bool, p Parts) {
	if p.N > 0 {
		if g.isEmpty() {
			g.First, g.Last = start, start
		}
		g.First, g.Last = min(g.First, start), max(g.Last, start)
		if g.Parts == nil {
			g.Parts = make([]uint64, p.N)
		}
		g.Parts[p.At(start)]++
	}
	g.Durations.Observe(duration)
	if failed {
		g.Errors++
	}
}

// Add adds the spans of another group with the same parts.
func (g *Group) Add(o *Group) {
	switch {
	case o.isEmpty():
		return
	case g.isEmpty():
		g.First, g.Last = o.First, o.Last
	}
	g.First, g.Last = min(g.First, o.First), max(g.Last, o.Last)
	g.Durations.Add(&o.Durations)
	g.Errors += o.Errors
	if len(g.Parts) < len(o.Parts) {
		g.Parts = append(g.Parts, make([]uint64, len(o.Parts)-len(g.Parts))...)
	}
	for i, n := range o.Parts {
		g.Parts[i] += n
	}
}

// GroupValue is a value of a field, or none.
type GroupValue struct {
	Text    string // otlpdata.Value.AsString, shortened by storequery.FacetText
	Present bool
}

func (g *GroupQuery) check() error {
	switch {
	case len(g.By) == 0:
		return nil
	case len(g.By) > MaxGroupFields:
		return fmt.Errorf("%d fields to group by exceed the maximum of %d", len(g.By), MaxGroupFields)
	case g.Limit < 1 || g.Limit > MaxGroups:
		return fmt.Errorf("%d groups requested; the number must be from 1 to %d", g.Limit, MaxGroups)
	case g.Parts < 0 || g.Parts > MaxGroupParts:
		return fmt.Errorf("%d parts of the window requested; the number must be from 0 to %d", g.Parts, MaxGroupParts)
	case g.Sort >= numGroupOrders:
		return fmt.Errorf("unknown order of groups %d", g.Sort)
	case len(g.By) == MaxGroupFields && g.By[0] == g.By[1]:
		return errors.New("duplicate field to group by")
	}
	for _, f := range g.By {
		if !f.Place.known() {
			return fmt.Errorf("unknown place %d of a field to group by", f.Place)
		}
		if f.Place.Info().SearchOnly {
			return fmt.Errorf("spans cannot be grouped by %s, which is only for searches", f.Place.Info().Name)
		}
	}
	return nil
}
