package aggregate

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// canGroupSeries reports whether series may have what the groups need: nothing else is counted, and
// neither the fields nor the conditions are others than those of series.
func (a *aggregation) canGroupSeries() bool {
	t := &a.targets
	if t.groups == nil || t.heat != nil || t.facets != nil || t.picks != nil || a.want.Groups.Parts > 0 || !answeredBySeries(a.query.Where) {
		return false
	}
	for _, f := range t.groups.by {
		if f.Place != tracestore.Service && f.Place != tracestore.Name && f.Place != tracestore.Kind {
			return false
		}
	}
	return true
}

// groupSeries counts the groups from statistics for whole minutes, and from rows for the rest. It
// returns false and counts nothing if statistics lack what is needed, or if the rest has more rows
// than the budget.
func (a *aggregation) groupSeries(ctx context.Context) (done bool, err error) {
	rest := make([]scan.Window, len(a.session.Sources))
	for src := range a.session.Sources {
		n, oldest, newest := a.session.Sources[src].Bounds()
		if n == 0 || newest < a.window.From || oldest > a.window.To {
			continue
		}
		tallies := seriesTallies{by: a.targets.groups.by, byName: hasName(slices.Values(a.targets.groups.by))}
		exact := false
		rest[src], exact, err = a.seriesOf(ctx, src, scan.SplitWindow(a.window, oldest, newest), tallies.add)
		if err != nil || !exact || tallies.others {
			a.newGroups()
			return false, err
		}
		tallies.addTo(a.targets.groups)
	}
	f, err := a.sampleBlocks(ctx, rest)
	if err != nil || f.share < 1 {
		a.newGroups()
		return false, err
	}
	return true, a.scan(ctx, f, targets{groups: a.targets.groups})
}

// seriesTallies counts the spans of the series of one source.
type seriesTallies struct {
	by     []tracestore.Field
	groups []tracestore.Group // by series
	byName bool               // names are distinguished
	others bool               // there are spans whose name is needed and not known
}

func (t *seriesTallies) add(i int, s *stats.Series, _ uint64, durations *tracestore.Histogram) {
	if i >= len(t.groups) {
		t.groups = append(t.groups, make([]tracestore.Group, i+1-len(t.groups))...)
	}
	g := &t.groups[i]
	if _, counts := g.Durations.Counts(); len(counts) == 0 {
		g.Values = t.valuesOf(s)
		t.others = t.others || t.byName && s.Operation == tracestore.OtherOperation
	}
	g.Durations.Add(durations)
	if s.Error {
		g.Errors += durations.Count()
	}
}

// valuesOf returns the values of the fields of the spans of a series.
func (t *seriesTallies) valuesOf(s *stats.Series) (values storequery.GroupKey) {
	span := tracestore.Span{Resource: &otlpdata.Resource{Service: s.Service}, Scope: &otlpdata.Scope{},
		Span: &otlpdata.Span{Name: s.Operation, Kind: kindOf(s.Kind)}}
	for i, f := range t.by {
		for v := range f.Values(span) {
			values[i] = tracestore.GroupValue{Text: storequery.FacetText(v.AsString()), Present: true}
		}
	}
	return values
}

// addTo adds the groups to those of all sources.
func (t *seriesTallies) addTo(to *groupTotal) {
	for i := range t.groups {
		g := &t.groups[i]
		n := g.Durations.Count()
		if n == 0 {
			continue
		}
		to.counter.AddTotal(g)
		to.counter.AddGroup(g)
		to.total.spans += n
		to.total.errors += g.Errors
	}
}
