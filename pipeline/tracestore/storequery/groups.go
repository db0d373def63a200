package storequery

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
)

// Limits of a GroupCounter.
const (
	// MaxGroupsCounted is the maximum number of groups that are counted. Spans of further groups
	// count as Groups.Other.
	MaxGroupsCounted = 10_000
	// MaxGroupMemory is the approximate size in bytes of all groups. Spans of further groups count
	// as Groups.Other.
	MaxGroupMemory = 64 << 20
	// MaxGroupValues is the maximum number of distinct values of a field that are examined for each
	// span.
	MaxGroupValues = 16
)

// GroupKey is the values of a group.
type GroupKey = [tracestore.MaxGroupFields]tracestore.GroupValue

// GroupCounter counts spans in groups, within the limits above. Callers either add spans with
// AddSpan, or count elsewhere and add the counts with AddTotal and AddGroup. Not safe for
// concurrent use.
type GroupCounter struct {
	query   tracestore.GroupQuery
	parts   tracestore.Parts // of the window
	grouper failure.Grouper
	all     tracestore.Group
	groups  map[GroupKey]*tracestore.Group
	other   uint64
	memory  int // at most limit, except for the last buckets
	limit   int
	account *tracestore.Memory // see ChargeTo
	short   bool               // see OutOfMemory
	values  [tracestore.MaxGroupFields][]tracestore.GroupValue
}

// NewGroupCounter returns a GroupCounter for the groups of a query that are valid according to
// Aggregation.Check and have fields.
func NewGroupCounter(q tracestore.Query, g tracestore.GroupQuery) *GroupCounter {
	return &GroupCounter{query: g, limit: MaxGroupMemory, parts: q.Parts(g.Parts), groups: make(map[GroupKey]*tracestore.Group)}
}

// AddSpan counts a span.
func (c *GroupCounter) AddSpan(s tracestore.Span) {
	for i, f := range c.query.By {
		values := c.values[i][:0]
		if f.Place == tracestore.ErrorGroup { // slow without the cache of a Grouper
			if s.StatusCode == otlpdata.StatusError {
				values = append(values, tracestore.GroupValue{Text: c.grouper.Group(s.Resource.Service, s.Span), Present: true})
			}
			c.values[i] = values
			continue
		}
		for v := range f.Values(s) {
			if len(values) == MaxGroupValues {
				break
			}
			if one := (tracestore.GroupValue{Text: FacetText(v.AsString()), Present: true}); !slices.Contains(values, one) {
				values = append(values, one)
			}
		}
		c.values[i] = values
	}
	duration, _ := s.Duration()
	c.addValues(s.Start, duration, s.StatusCode == otlpdata.StatusError)
}

// addTrace counts a trace, with a start within the window; see SetAggregation.Traces. Only fields
// of the trace and the services of its spans have values.
func (c *GroupCounter) addTrace(s *tracestore.Summary, start uint64) {
	for i, f := range c.query.By {
		values := c.values[i][:0]
		add := func(text string) {
			values = append(values, tracestore.GroupValue{Text: FacetText(text), Present: true})
		}
		switch f.Place {
		case tracestore.RootService:
			add(s.RootService)
		case tracestore.RootName:
			add(s.RootName)
		case tracestore.Service:
			for _, one := range s.Services[:min(len(s.Services), MaxGroupValues)] {
				add(one.Name)
			}
		}
		c.values[i] = values
	}
	c.addValues(start, s.End-min(s.Start, s.End), s.Errors > 0)
}

// addValues counts a span once for each combination of c.values.
func (c *GroupCounter) addValues(start, duration uint64, failed bool) {
	c.all.Observe(start, duration, failed, c.parts)
	for i := range c.query.By {
		if len(c.values[i]) == 0 {
			c.values[i] = append(c.values[i], tracestore.GroupValue{})
		}
	}
	var key GroupKey
	for _, key[0] = range c.values[0] {
		if len(c.query.By) == 1 {
			c.add(key, start, duration, failed)
			continue
		}
		for _, key[1] = range c.values[1] {
			c.add(key, start, duration, failed)
		}
	}
}

// add counts a span in a group.
func (c *GroupCounter) add(key GroupKey, start, duration uint64, failed bool) {
	g := c.group(key)
	if g == nil {
		c.other++
		return
	}
	before := bucketsOf(g)
	g.Observe(start, duration, failed, c.parts)
	c.grown(bucketsOf(g) - before)
}

// Parts returns the parts of the window in which spans are counted.
func (c *GroupCounter) Parts() tracestore.Parts { return c.parts }

// AddTotal counts spans without their groups.
func (c *GroupCounter) AddTotal(o *tracestore.Group) { c.all.Add(o) }

// AddGroup counts spans of a group with the same parts. It does not retain the texts.
func (c *GroupCounter) AddGroup(o *tracestore.Group) {
	g := c.group(o.Values)
	if g == nil {
		c.other += o.Durations.Count()
		return
	}
	before := bucketsOf(g)
	g.Add(o)
	c.grown(bucketsOf(g) - before)
}

// Merge adds the counts of another counter of the same query. The largest groups come first, so
// that the order of a map does not determine which of them are counted individually.
func (c *GroupCounter) Merge(o *GroupCounter) {
	c.all.Add(&o.all)
	c.other += o.other
	c.short = c.short || o.short
	for _, g := range o.ranked(tracestore.GroupsBySpans) {
		c.AddGroup(g.group)
	}
}

// Append appends what was counted, without parts of the window, to dst, in a form that Add reads.
func (c *GroupCounter) Append(dst []byte) []byte {
	dst = appendGroup(appendNumbers(dst, one(c.short), c.other), &c.all)
	for _, g := range c.ranked(tracestore.GroupsBySpans) {
		dst = appendGroup(dst, g.group)
	}
	return dst
}

// appendGroup appends a group. For each bucket it appends its distance from the preceding one.
func appendGroup(dst []byte, g *tracestore.Group) []byte {
	for _, v := range g.Values {
		dst = appendText(appendNumbers(dst, one(v.Present)), v.Text)
	}
	first, counts := g.Durations.Counts()
	dst = appendNumbers(dst, g.Errors, g.Durations.Sum, uint64(first))
	last := 0
	for i, n := range counts {
		if n > 0 {
			dst = appendNumbers(dst, n, uint64(i-last))
			last = i
		}
	}
	return append(dst, 0)
}

// Add counts what Append has appended.
func (c *GroupCounter) Add(kept string) {
	r := keptReader{kept}
	c.short = r.number() == 1 || c.short
	c.other += r.number()
	var g tracestore.Group
	r.group(&g)
	c.all.Add(&g)
	for len(r.rest) > 0 {
		r.group(&g)
		c.AddGroup(&g)
	}
}

// group reads a group that appendGroup has appended.
func (r *keptReader) group(g *tracestore.Group) {
	for i := range g.Values {
		g.Values[i] = tracestore.GroupValue{Present: r.number() == 1, Text: r.text()}
	}
	g.Durations.Reset()
	g.Errors, g.Durations.Sum = r.number(), r.number()
	bucket := int(r.number())
	for n := r.number(); n > 0; n = r.number() {
		bucket += int(r.number())
		g.Durations.AddBucket(bucket, n)
	}
}

// AddOther counts spans of further groups, which are not counted individually.
func (c *GroupCounter) AddOther(spans uint64) { c.other += spans }

// Memory of a group in addition to its texts: the group and two keys, a slot of a map, which is at
// least half full, and the first buckets. A bucket is counted twice, because the capacity of a list
// grows in advance.
const (
	groupOverhead  = 400
	bucketOverhead = 16
	partOverhead   = 8
)

// group returns a group, or nil if a limit is reached.
func (c *GroupCounter) group(key GroupKey) *tracestore.Group {
	g := c.groups[key]
	if g != nil {
		return g
	}
	if len(c.groups) >= MaxGroupsCounted || !c.reserve(groupOverhead+partOverhead*c.parts.N+len(key[0].Text)+len(key[1].Text)) {
		return nil
	}
	for i := range key {
		key[i].Text = strings.Clone(key[i].Text)
	}
	g = &tracestore.Group{Values: key}
	c.groups[key] = g
	return g
}

func bucketsOf(g *tracestore.Group) int {
	_, counts := g.Durations.Counts()
	return len(counts)
}

// grown charges for new buckets of existing groups. They are kept even if no memory is left,
// because their number is limited.
func (c *GroupCounter) grown(buckets int) {
	if buckets == 0 {
		return
	}
	bytes := buckets * bucketOverhead
	if c.account.Grow(int64(bytes)) != nil {
		c.short = true
		return
	}
	c.memory += bytes
}

// ChargeTo charges the counter's memory to a query, which releases it. Spans of groups that do not
// fit count as Groups.Other.
func (c *GroupCounter) ChargeTo(m *tracestore.Memory) { c.account = m }

// DivideMemory divides MaxGroupMemory among a number of counters of the same query.
func (c *GroupCounter) DivideMemory(counters int) { c.limit = MaxGroupMemory / counters }

// Release releases the memory of a counter that is no longer used.
func (c *GroupCounter) Release() {
	_ = c.account.Grow(-int64(c.memory)) // cannot fail
	c.memory = 0
}

// OutOfMemory reports whether groups were not counted because the memory for all queries was
// exhausted.
func (c *GroupCounter) OutOfMemory() bool { return c.short }

// ReasonGroupMemory is the reason of a result after GroupCounter.OutOfMemory.
var ReasonGroupMemory = tracestore.Reason{Kind: tracestore.ReasonLimit,
	Text: "not all groups were counted, because other queries use up service.limits.query_memory"}

// reserve is like FacetCounter.reserve.
func (c *GroupCounter) reserve(bytes int) bool {
	if c.memory+bytes > c.limit {
		return false
	}
	if c.account.Grow(int64(bytes)) != nil {
		c.short = true
		return false
	}
	c.memory += bytes
	return true
}

// Answer returns the groups for the examined share of the spans; see Heatmap.Share.
func (c *GroupCounter) Answer(share float64) *tracestore.Groups {
	out := &tracestore.Groups{All: c.all, Distinct: len(c.groups), Other: c.other, Share: share}
	if c.query.All {
		for _, g := range c.groups {
			out.Groups = append(out.Groups, *g)
		}
		return out
	}
	list := c.ranked(c.query.Sort)
	for _, g := range list[:min(len(list), c.query.Limit)] {
		out.Groups = append(out.Groups, *g.group)
	}
	return out
}

// ranked returns all groups in an order.
func (c *GroupCounter) ranked(order tracestore.GroupOrder) []rankedGroup {
	list := make([]rankedGroup, 0, len(c.groups))
	for _, g := range c.groups {
		list = append(list, rankedGroup{g, rankOf(g, order), g.Durations.Count()})
	}
	slices.SortFunc(list, compareGroups)
	return list
}

// rankedGroup is a group with its sort key.
type rankedGroup struct {
	group *tracestore.Group
	rank  float64
	spans uint64
}

func compareGroups(a, b rankedGroup) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.spans, a.spans),
		compareGroupValues(a.group.Values[0], b.group.Values[0]), compareGroupValues(a.group.Values[1], b.group.Values[1]))
}

// compareGroupValues orders values by text; absent values come first.
func compareGroupValues(a, b tracestore.GroupValue) int {
	if a.Present != b.Present {
		return int(one(a.Present)) - int(one(b.Present))
	}
	return strings.Compare(a.Text, b.Text)
}

func rankOf(g *tracestore.Group, order tracestore.GroupOrder) float64 {
	switch order {
	case tracestore.GroupsByErrors:
		return float64(g.Errors)
	case tracestore.GroupsByErrorShare:
		return float64(g.Errors) / float64(g.Durations.Count())
	case tracestore.GroupsByP50:
		return g.Durations.Quantile(0.5)
	case tracestore.GroupsByP95:
		return g.Durations.Quantile(0.95)
	case tracestore.GroupsByP99:
		return g.Durations.Quantile(0.99)
	case tracestore.GroupsByTime:
		return float64(g.Durations.Sum)
	}
	return float64(g.Durations.Count())
}
