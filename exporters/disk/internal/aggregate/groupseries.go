package aggregate

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// canGroupSeries reports whether series may suffice for the groups: nothing else is requested,
// series have all fields of the groups and conditions, and counts of whole minutes suffice.
func (a *aggregation) canGroupSeries() bool {
	t := &a.targets
	if a.counts == nil || t.groups == nil || t.facets != nil || !answeredBySeries(a.query.Where) {
		return false
	}
	if want := t.groups.want; want.Step > 0 || want.Measure != tracestore.MeasureNone || want.Adjusted {
		return false
	}
	for _, f := range t.groups.want.By {
		if f.Place != tracestore.Service && f.Place != tracestore.Name && f.Place != tracestore.Kind {
			return false
		}
	}
	return true
}

// groupSeries counts the groups from statistics for whole minutes, and from rows for the rest. What
// it counts in whole segments is kept. It returns false and counts nothing if the statistics do not
// suffice, or if the rest has more rows than the budget.
func (a *aggregation) groupSeries(ctx context.Context) (done bool, err error) {
	rest := make([]scan.Window, len(a.session.Sources))
	for src := range a.session.Sources {
		n, oldest, newest := a.session.Sources[src].Bounds()
		if n == 0 || newest < a.window.From || oldest > a.window.To {
			continue
		}
		key := rangeKey{source: a.session.Sources[src], first: fromSeries, question: a.counts.question}
		_, canKeep := key.source.(source.Statistics)
		canKeep = canKeep && oldest >= a.window.From && newest <= a.window.To
		var counts *rangeCounts
		if canKeep {
			counts = a.counts.find(key)
		}
		if counts == nil {
			if counts, rest[src], err = a.countSeries(ctx, src, scan.SplitWindow(a.window, oldest, newest)); counts == nil {
				a.newGroups()
				return false, err
			}
			if canKeep && len(rest[src]) == 0 {
				a.counts.keep(key, counts)
			}
		}
		a.targets.groups.add(&counts.groups)
	}
	f, err := a.sampleBlocks(ctx, rest)
	if err != nil || f.share < 1 {
		a.newGroups()
		return false, err
	}
	return true, a.scanRest(ctx, f, targets{groups: a.targets.groups})
}

// countSeries counts the groups of the whole minutes of a source, or returns nil if its statistics
// do not suffice.
func (a *aggregation) countSeries(ctx context.Context, src int, d scan.Split) (*rangeCounts, scan.Window, error) {
	tallies := seriesTallies{by: a.want.Groups.By, byName: hasName(slices.Values(a.want.Groups.By)), memory: a.session.Memory,
		index: make(map[int]*tracestore.Group)}
	defer tallies.release()
	rest, exact, err := a.seriesOf(ctx, src, d, tallies.add)
	if err != nil || !exact || tallies.others || tallies.short {
		return nil, nil, err
	}
	one := groupTotal{counter: storequery.NewGroupCounter(a.query, a.want.Groups)}
	one.counter.ChargeTo(a.session.Memory)
	defer one.counter.Release()
	tallies.addTo(&one)
	if one.counter.OutOfMemory() {
		return nil, nil, nil
	}
	return &rangeCounts{groups: one.counts()}, rest, nil
}

// seriesTallies counts the spans of the series of one source.
type seriesTallies struct {
	by     []tracestore.Field
	groups []*tracestore.Group
	index  map[int]*tracestore.Group // groups by series
	memory *tracestore.Memory        // of the query
	kept   int                       // bytes reserved in memory
	short  bool                      // there is not enough memory
	byName bool                      // names are distinguished
	others bool                      // there are spans whose name is needed but unknown
}

func (t *seriesTallies) add(i int, s *stats.Series, _ uint64, durations *tracestore.Histogram) {
	t.others = t.others || t.byName && s.Operation == tracestore.OtherOperation
	if t.others || t.short {
		return // of no use
	}
	g := t.index[i]
	if g == nil {
		if !t.reserve(tallySize) {
			return
		}
		g = &tracestore.Group{Values: t.valuesOf(s)}
		t.groups, t.index[i] = append(t.groups, g), g
	}
	before := len(countsOf(g))
	g.Durations.Add(durations)
	t.reserve(bucketSize * (len(countsOf(g)) - before))
	if s.Error {
		g.Errors += durations.Count()
	}
}

func countsOf(g *tracestore.Group) []uint64 {
	_, counts := g.Durations.Counts()
	return counts
}

// reserve reserves memory, up to storequery.MaxGroupMemory in all. It sets short if it fails.
func (t *seriesTallies) reserve(bytes int) bool {
	if t.kept+bytes > storequery.MaxGroupMemory || t.memory.Grow(int64(bytes)) != nil {
		t.short = true
		return false
	}
	t.kept += bytes
	return true
}

// release gives the memory back.
func (t *seriesTallies) release() {
	_ = t.memory.Grow(-int64(t.kept)) // cannot fail
}

// valuesOf returns the field values of a series' spans.
func (t *seriesTallies) valuesOf(s *stats.Series) (values storequery.GroupKey) {
	span := tracestore.Span{Resource: &otlpdata.Resource{Service: s.Service}, Scope: &otlpdata.Scope{},
		Span: &otlpdata.Span{Name: s.Operation, Kind: otlpdata.KindOf(s.Kind)}}
	for i, f := range t.by {
		for v := range f.Values(span) {
			values[i] = tracestore.GroupValue{Text: storequery.FacetText(v.AsString()), Present: true}
		}
	}
	return values
}

// addTo adds the groups of this source to the total.
func (t *seriesTallies) addTo(to *groupTotal) {
	for _, g := range t.groups {
		n := g.Durations.Count()
		to.counter.AddTotal(g)
		to.counter.AddGroup(g)
		to.total.spans += n
		to.total.errors += g.Errors
	}
}
