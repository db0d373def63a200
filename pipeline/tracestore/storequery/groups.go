package storequery

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"

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
	// MaxGroupCombinations is the maximum number of groups in which each span counts. In further
	// groups it counts as Groups.Other.
	MaxGroupCombinations = MaxGroupValues * MaxGroupValues
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

// NewGroupCounter returns a GroupCounter for the groups that a query requests and that are valid
// according to Aggregation.Check.
func NewGroupCounter(q tracestore.Query, g tracestore.GroupQuery) *GroupCounter {
	return &GroupCounter{query: g, limit: MaxGroupMemory, parts: g.PartsOf(q), groups: make(map[GroupKey]*tracestore.Group)}
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
	o := tracestore.Observation{Start: s.Start, Failed: s.StatusCode == otlpdata.StatusError, Count: 1}
	o.Duration, _ = s.Duration()
	if c.query.Adjusted {
		o.Count = s.AdjustedCount()
	}
	if c.query.Measure != tracestore.MeasureNone {
		o.Number, o.HasNumber = tracestore.NumberOf(c.query.Of, s)
	}
	c.addValues(&o)
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
	c.addValues(&tracestore.Observation{Start: start, Duration: s.End - min(s.Start, s.End), Failed: s.Errors > 0, Count: 1})
}

// addValues counts a span once for each combination of c.values, up to MaxGroupCombinations.
func (c *GroupCounter) addValues(o *tracestore.Observation) {
	c.all.Observe(o, c.parts, c.query.Measure)
	fields, all := len(c.query.By), 1
	for i := range fields {
		if len(c.values[i]) == 0 {
			c.values[i] = append(c.values[i], tracestore.GroupValue{})
		}
		all *= len(c.values[i])
	}
	counted := min(all, MaxGroupCombinations)
	var key GroupKey
	for n := range counted {
		for i := fields - 1; i >= 0; i-- { // the value of the last field changes first
			values := c.values[i]
			key[i] = values[n%len(values)]
			n /= len(values)
		}
		c.add(key, o)
	}
	c.other += uint64(all-counted) * o.Count
}

// add counts a span in a group.
func (c *GroupCounter) add(key GroupKey, o *tracestore.Observation) {
	g := c.group(key)
	if g == nil {
		c.other += o.Count
		return
	}
	c.grown(g.Observe(o, c.parts, c.query.Measure))
}

// Parts returns the parts of the window in which spans are counted.
func (c *GroupCounter) Parts() tracestore.Parts { return c.parts }

// PartMemory returns the approximate size in bytes of the parts of a group, without buckets.
func (c *GroupCounter) PartMemory() int {
	size := partOverhead * c.parts.N
	if c.query.Measure != tracestore.MeasureNone {
		size += numbersOverhead * max(c.parts.N, 1)
	}
	return size
}

// AddTotal counts spans without their groups.
func (c *GroupCounter) AddTotal(o *tracestore.Group) { c.all.Add(o) }

// AddGroup counts spans of a group with the same parts. It does not retain the texts.
func (c *GroupCounter) AddGroup(o *tracestore.Group) {
	g := c.group(o.Values)
	if g == nil {
		c.other += o.Durations.Count()
		return
	}
	c.grown(g.Add(o))
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

// Append appends what was counted to dst, in a form that Add reads. Parts of the window must be
// those of a GroupQuery.Step.
func (c *GroupCounter) Append(dst []byte) []byte {
	dst = appendNumbers(dst, one(c.short), c.other)
	if len(c.query.By) > 0 { // otherwise there is one group
		dst = c.appendGroup(dst, &c.all)
	}
	for _, g := range c.ranked(tracestore.GroupsBySpans) {
		dst = c.appendGroup(dst, g.group)
	}
	return dst
}

// firstStep returns the number of the first part among all parts of the same length since the Unix
// epoch.
func (c *GroupCounter) firstStep() int { return int(c.parts.From / max(c.parts.Length, 1)) }

// appendGroup appends a group. For each bucket and part it appends its distance from the preceding
// one.
func (c *GroupCounter) appendGroup(dst []byte, g *tracestore.Group) []byte {
	for _, v := range g.Values[:len(c.query.By)] {
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
	dst = appendNumbers(dst, 0, g.First, g.Last)
	last = 0
	for i, n := range g.Parts {
		if n > 0 {
			dst = appendNumbers(dst, n, uint64(c.firstStep()+i-last))
			last = c.firstStep() + i
		}
	}
	dst = append(dst, 0)
	last = 0
	for i := range g.Numbers {
		if n := &g.Numbers[i]; n.Count > 0 {
			dst = appendFloats(appendNumbers(dst, n.Count, uint64(c.firstStep()+i-last)), n.Sum)
			if n.Count > 1 { // otherwise they are the same
				dst = appendFloats(dst, n.Min, n.Max)
			}
			last = c.firstStep() + i
			bucket := 0
			for _, b := range n.Buckets {
				dst = binary.AppendVarint(appendNumbers(dst, b.Count), int64(b.Bucket-bucket))
				bucket = b.Bucket
			}
			dst = append(dst, 0)
		}
	}
	return append(dst, 0)
}

// Add counts what Append has appended for a part of the window of this counter.
func (c *GroupCounter) Add(kept string) {
	r := keptReader{kept}
	c.short = r.number() == 1 || c.short
	c.other += r.number()
	var g tracestore.Group
	if len(c.query.By) > 0 {
		c.readGroup(&r, &g)
		c.all.Add(&g)
	}
	for len(r.rest) > 0 {
		c.readGroup(&r, &g)
		if c.AddGroup(&g); len(c.query.By) == 0 {
			c.all.Add(&g)
		}
	}
}

// readGroup reads a group that appendGroup has appended. It reuses the memory of g.
func (c *GroupCounter) readGroup(r *keptReader, g *tracestore.Group) {
	for i := range c.query.By {
		g.Values[i] = tracestore.GroupValue{Present: r.number() == 1, Text: r.text()}
	}
	g.Durations.Reset()
	g.Errors, g.Durations.Sum = r.number(), r.number()
	bucket := int(r.number())
	for n := r.number(); n > 0; n = r.number() {
		bucket += int(r.number())
		g.Durations.AddBucket(bucket, n)
	}
	g.First, g.Last = r.number(), r.number()
	if g.Parts == nil && c.parts.N > 0 {
		g.Parts = make([]uint64, c.parts.N)
	}
	clear(g.Parts)
	part := -c.firstStep()
	for n := r.number(); n > 0; n = r.number() {
		part += int(r.number())
		g.Parts[part] = n
	}
	if g.Numbers == nil && c.query.Measure != tracestore.MeasureNone {
		g.Numbers = make([]tracestore.Numbers, max(c.parts.N, 1))
	}
	clear(g.Numbers)
	part = -c.firstStep()
	for n := r.number(); n > 0; n = r.number() {
		part += int(r.number())
		to := &g.Numbers[part]
		to.Count, to.Sum = n, r.float()
		if to.Min, to.Max = to.Sum, to.Sum; n > 1 {
			to.Min, to.Max = r.float(), r.float()
		}
		bucket := 0
		for count := r.number(); count > 0; count = r.number() {
			zigzag := r.number()
			bucket += int(zigzag>>1) ^ -int(zigzag&1)
			to.Buckets = append(to.Buckets, tracestore.NumberBucket{Bucket: bucket, Count: count})
		}
	}
}

// AddOther counts spans of further groups, which are not counted individually.
func (c *GroupCounter) AddOther(spans uint64) { c.other += spans }

// Memory of a group in addition to its texts: the group and two keys, a slot of a map, which is at
// least half full, and the first buckets. A bucket is counted twice, because the capacity of a list
// grows in advance.
const (
	groupOverhead   = 700
	bucketOverhead  = 32
	partOverhead    = 8
	numbersOverhead = int(unsafe.Sizeof(tracestore.Numbers{}))
)

// group returns a group, or nil if a limit is reached.
func (c *GroupCounter) group(key GroupKey) *tracestore.Group {
	g := c.groups[key]
	if g != nil {
		return g
	}
	size := groupOverhead + c.PartMemory()
	for i := range key {
		size += len(key[i].Text)
	}
	if len(c.groups) >= MaxGroupsCounted || !c.reserve(size) {
		return nil
	}
	for i := range key {
		key[i].Text = strings.Clone(key[i].Text)
	}
	g = &tracestore.Group{Values: key}
	c.groups[key] = g
	return g
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
		slices.CompareFunc(a.group.Values[:], b.group.Values[:], compareGroupValues))
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
