package errorgroups

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	parts     = 60 // of the time range
	maxListed = 10 // maximum number of listed operations, and versions, of a group
)

// period is what was counted of a window.
type period struct {
	Spans    uint64      `json:"spans"`           // failed spans; an estimate if Share is below 1
	Complete bool        `json:"complete"`        // all failed spans of the window were counted
	Share    float64     `json:"share"`           // of the spans that were examined; all counts are estimates if it is below 1
	Since    route.Nanos `json:"since,omitempty"` // no span that starts before this was counted; missing: the whole window was counted
}

// counted is the groups of a window.
type counted struct {
	period
	parts   tracestore.Parts
	first   uint64 // no span before this was counted or stored
	groups  map[string]*group
	reasons tracestore.Reasons
}

// group counts the failed spans with one id.
type group struct {
	id         string
	spans      tracestore.Group
	operations []countedText
	versions   []countedText
	before     *tracestore.Group // nil: not seen then
	days       []uint64          // spans at the same time of the days before, the latest first; nil: not counted
	trend      trend
	example    *example // nil until it was read
}

// countedText is a text and how often it occurs.
type countedText struct {
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}

// counter counts groups: with the store if it supports this, otherwise from the newest failed
// spans.
type counter struct {
	slot   *core.Slot
	where  condition
	memory *tracestore.Memory
	// grouper finds the group ids of spans that are read.
	grouper failure.Grouper
	store   tracestore.Aggregator // nil: it cannot
	// examples has the example of each group for which one was read, by id of the group.
	examples map[string]*example
}

func newCounter(slot *core.Slot, where condition, memory *tracestore.Memory) *counter {
	c := &counter{slot: slot, where: where, memory: memory, examples: make(map[string]*example)}
	c.store, _ = core.SlotAs[tracestore.Aggregator](slot)
	return c
}

// fields are the fields by which the spans of a window are counted.
var (
	byOperation = []tracestore.Field{{Place: tracestore.ErrorGroup}, {Place: tracestore.Name}}
	byVersion   = []tracestore.Field{{Place: tracestore.ErrorGroup}, {Place: tracestore.ResourceAttribute, Key: "service.version"}}
	byGroup     = []tracestore.Field{{Place: tracestore.ErrorGroup}}
)

// count counts the groups of a window with their operations and versions.
func (c *counter) count(w core.Window) (*counted, error) {
	operations := tracestore.GroupQuery{By: byOperation, Limit: tracestore.MaxGroups, Parts: parts, All: true}
	versions := tracestore.GroupQuery{By: byVersion, Limit: tracestore.MaxGroups, All: true}
	out, found, err := c.countBy(w, operations, versions)
	if err != nil {
		return nil, err
	}
	for i := range found[0].Groups {
		g := &found[0].Groups[i]
		one := out.group(g)
		one.spans.Add(g)
		one.operations = append(one.operations, countedText{g.Values[1].Text, g.Durations.Count()})
	}
	for i := range found[1].Groups {
		g := &found[1].Groups[i]
		if one := out.groups[g.Values[0].Text]; one != nil && g.Values[1].Present {
			one.versions = append(one.versions, countedText{g.Values[1].Text, g.Durations.Count()})
		}
	}
	return out, nil
}

// countGroups counts the groups of a window.
func (c *counter) countGroups(w core.Window) (*counted, error) {
	out, found, err := c.countBy(w, tracestore.GroupQuery{By: byGroup, Limit: tracestore.MaxGroups, Parts: parts, All: true})
	if err != nil {
		return nil, err
	}
	for i := range found[0].Groups {
		out.group(&found[0].Groups[i]).spans.Add(&found[0].Groups[i])
	}
	return out, nil
}

func (c *counted) group(g *tracestore.Group) *group {
	id := g.Values[0].Text
	one := c.groups[id]
	if one == nil {
		one = &group{id: id}
		c.groups[id] = one
	}
	return one
}

// countBy groups the failed spans of a window in several ways, and returns the groups and what was
// counted.
func (c *counter) countBy(w core.Window, by ...tracestore.GroupQuery) (*counted, []*tracestore.Groups, error) {
	q := tracestore.Query{From: w.From, To: w.To}
	out := &counted{parts: q.Parts(parts), groups: make(map[string]*group)}
	from, _, _ := q.Window()
	out.first, out.Share, out.Complete = from, 1, true
	var found []*tracestore.Groups
	var err error
	if c.store == nil {
		found, err = c.countRead(w, out, by)
	} else {
		found, err = c.countStored(w, out, by)
	}
	if err != nil {
		return nil, nil, err
	}
	out.Spans = route.Estimate(found[0].All.Durations.Count(), out.Share)
	out.Complete = out.Complete && out.Share == 1 && found[0].Other == 0 && out.reasons.Complete()
	for _, g := range found {
		if err := c.memory.Grow(int64(len(g.Groups)) * groupMemory); err != nil {
			return nil, nil, err
		}
	}
	return out, found, nil
}

// firstSpan returns the approximate start of the first span (failed or not) of a window, or the
// beginning of the window if the store cannot tell.
func (c *counter) firstSpan(w core.Window) (uint64, error) {
	from, to, _ := tracestore.Query{From: w.From, To: w.To}.Window()
	if c.store == nil {
		return from, nil
	}
	step := time.Duration((to-from)/(2*parts)).Truncate(time.Minute) + time.Minute
	a := core.Aggregation{Store: c.store, Window: w, Spec: tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: step}}}
	answer, err := c.slot.Aggregate(&a)
	if err != nil || len(answer.Heatmap.Cells) == 0 {
		return from, err
	}
	return max(from, answer.Heatmap.Cells[0].Start), nil
}

// groupMemory is the approximate maximum memory of a group in bytes, without its example.
const groupMemory = 2*storequery.MaxFacetText + 8*parts + 512

// countStored counts with the store.
func (c *counter) countStored(w core.Window, out *counted, by []tracestore.GroupQuery) (found []*tracestore.Groups, _ error) {
	for _, g := range by {
		a := core.Aggregation{Store: c.store, Window: w, Where: c.where.ofFailed(), Set: c.where.set, OfErrors: true,
			Spec: tracestore.Aggregation{Groups: g}}
		answer, err := c.slot.Aggregate(&a)
		if err != nil {
			return nil, err
		}
		if out.reasons.Complete() {
			out.reasons = answer.Reasons
		}
		out.Share = min(out.Share, answer.Groups.Share)
		found = append(found, answer.Groups)
	}
	return found, nil
}

// countRead counts the newest failed spans, which also become examples.
func (c *counter) countRead(w core.Window, out *counted, by []tracestore.GroupQuery) (found []*tracestore.Groups, err error) {
	q := tracestore.Query{From: w.From, To: w.To}
	counters := make([]*storequery.GroupCounter, len(by))
	for i, g := range by {
		counters[i] = storequery.NewGroupCounter(q, g)
		counters[i].ChargeTo(c.memory)
	}
	r := newReader(c.slot, w, c.where, func(s tracestore.Span) error {
		for _, counter := range counters {
			counter.AddSpan(s)
		}
		_, err := c.addExample(s)
		return err
	})
	out.reasons, err = r.read()
	if err != nil {
		return nil, err
	}
	if out.Complete = r.complete; r.since > out.first {
		out.first, out.Since = r.since, route.Nanos(r.since)
	}
	for _, counter := range counters {
		found = append(found, counter.Answer(1))
		if counter.OutOfMemory() {
			out.reasons.Add(storequery.ReasonGroupMemory)
		}
	}
	return found, nil
}

// setTrends sets the trends of the groups. before is nil if the time before was not counted.
func (c *counted) setTrends(before *counted) {
	for id, g := range c.groups {
		if before != nil && before.groups[id] != nil {
			g.before = &before.groups[id].spans
		}
		g.trend = c.trendOf(g, before)
	}
}

// sorted returns the groups, by number of spans or by growth, descending.
func (c *counted) sorted(byGrowth bool) []*group {
	all := slices.Collect(maps.Values(c.groups))
	slices.SortFunc(all, func(a, b *group) int {
		order := 0
		if byGrowth {
			order = cmp.Compare(b.trend.excess, a.trend.excess)
		}
		return cmp.Or(order, cmp.Compare(b.spans.Durations.Count(), a.spans.Durations.Count()), cmp.Compare(b.spans.Last, a.spans.Last),
			strings.Compare(a.id, b.id))
	})
	return all
}
