package aggregate

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// canUseSeries reports whether series may have what the heatmap needs: its columns are whole
// minutes and the query has no condition on fields that series lack.
func (a *aggregation) canUseSeries() bool {
	return uint64(a.want.Heatmap.Step)%scan.Minute == 0 && answeredBySeries(a.query.Where)
}

// answeredBySeries reports whether an expression has the same result for all spans of a series with
// the same status.
func answeredBySeries(e tracestore.Expr) bool {
	for f := range tracestore.Fields(e) {
		switch f.Place {
		case tracestore.Service, tracestore.Name, tracestore.Kind, tracestore.Status:
		default:
			return false
		}
	}
	return true
}

// heatFromSeries makes the heatmap from statistics for whole minutes, and from rows for the rest.
// It leaves heatmapDone false and counts nothing if statistics lack what is needed, or if the rest
// has more rows than the budget (with facets or groups: than half of the budget).
func (a *aggregation) heatFromSeries(ctx context.Context) error {
	rest := make([]scan.Window, len(a.session.Sources))
	a.matchWindows = make([]scan.Window, len(a.session.Sources))
	for src := range a.session.Sources {
		n, oldest, newest := a.session.Sources[src].Bounds()
		if n == 0 || newest < a.window.From || oldest > a.window.To {
			continue
		}
		before := a.targets.heat.total.spans
		var exact bool
		var err error
		if rest[src], exact, err = a.heatFromSource(ctx, src, scan.SplitWindow(a.window, oldest, newest)); err != nil || !exact {
			a.newHeat()
			return err
		}
		if a.targets.heat.total.spans > before || len(rest[src]) > 0 {
			a.matchWindows[src] = scan.Window{a.window}
		}
	}
	f, err := a.sampleBlocks(ctx, rest)
	if err != nil {
		return err
	}
	n := countRows(f.blocks)
	if f.share < 1 || (a.targets.facets != nil || a.targets.groups != nil) && a.query.Budget.Spans > 0 && n > a.query.Budget.Spans/2 {
		a.newHeat()
		return nil
	}
	a.heatmapDone, a.spent = true, n
	return a.scan(ctx, f, targets{heat: a.targets.heat})
}

// heatFromSource adds the whole minutes of a source, and returns the start times for which rows
// must be read.
func (a *aggregation) heatFromSource(ctx context.Context, src int, d scan.Split) (rest scan.Window, exact bool, _ error) {
	known, exact := false, true
	err := a.session.Decode(ctx, func() (err error) {
		switch s := a.session.Sources[src].(type) {
		case source.Statistics:
			known, exact, err = a.heatFromStatistics(s, d)
		case source.Tally:
			known, err = s.Tally(ctx, func(c *stats.Collector, oldest, newest uint64) {
				d = scan.SplitWindow(a.window, oldest, newest) // the memtable may have newer rows than the source
				exact = a.heatFromTally(c, d)
			})
		}
		return err
	})
	if known {
		return d.Rest, exact, err
	}
	return d.All, exact, err
}

// heatFromStatistics adds the whole minutes of a segment. known is false if its statistics are
// damaged, which loses no spans, or incomplete.
func (a *aggregation) heatFromStatistics(s source.Statistics, d scan.Split) (known, exact bool, _ error) {
	if !d.HasMinutes {
		return true, true, nil
	}
	series, err := s.Series()
	if damage := (*source.DamageError)(nil); errors.As(err, &damage) {
		a.session.ReportDamage(damage)
		return false, true, nil
	}
	if err != nil || series.Dropped > 0 {
		return false, true, err
	}
	wanted, some, exact := a.wantedSeries(series.Series)
	if some && exact {
		for p := range series.PointsOf(d.Minutes.From, d.Minutes.To, wanted) {
			a.heatPoint(p.Minute, &p.Durations, series.Series[p.Series].Error)
		}
	}
	return true, exact, nil
}

// heatFromTally adds the whole minutes of a memtable.
func (a *aggregation) heatFromTally(c *stats.Collector, d scan.Split) (exact bool) {
	all := c.AllSeries()
	wanted, some, exact := a.wantedSeries(all)
	if some && exact && d.HasMinutes {
		c.EachPoint(d.Minutes.From, d.Minutes.To, wanted, func(i int, minute uint64, durations *tracestore.Histogram) {
			a.heatPoint(minute, durations, all[i].Error)
		})
	}
	return exact
}

// wantedSeries returns which series match the query. exact is false if only a part of the spans of
// a series matches, because series do not distinguish the statuses ok and unset. Heatmaps count
// stored spans, so series of adjusted counts are left out.
func (a *aggregation) wantedSeries(series []stats.Series) (wanted []bool, some, exact bool) {
	wanted = make([]bool, len(series))
	for i := range series {
		s := &series[i]
		if s.Tenant != a.query.Tenant || s.Unsampled {
			continue
		}
		span := otlpdata.Span{Name: s.Operation, Kind: kindOf(s.Kind), StatusCode: otlpdata.StatusError}
		of := tracestore.Span{Resource: &otlpdata.Resource{Service: s.Service}, Scope: &otlpdata.Scope{}, Span: &span}
		if !s.Error {
			span.StatusCode = otlpdata.StatusUnset
		}
		wanted[i] = tracestore.Match(a.query.Where, of)
		if !s.Error {
			span.StatusCode = otlpdata.StatusOK
			if tracestore.Match(a.query.Where, of) != wanted[i] {
				return nil, false, false
			}
		}
		some = some || wanted[i]
	}
	return wanted, some, true
}

// kindOf returns the kind whose name is name; see otlpdata.Span.KindName.
func kindOf(name string) int32 {
	for kind := int32(otlpdata.KindInternal); kind <= otlpdata.KindConsumer; kind++ {
		if s := (otlpdata.Span{Kind: kind}); s.KindName() == name {
			return kind
		}
	}
	return 0
}

func (a *aggregation) heatPoint(at uint64, durations *tracestore.Histogram, failed bool) {
	first, counts := durations.Counts()
	for i, n := range counts {
		if n == 0 {
			continue
		}
		errors := uint64(0)
		if failed {
			errors = n
		}
		// The first minute can begin before the window, but all counted spans start inside it:
		// clamp to the start of the window.
		a.targets.heat.counter.AddSpans(max(at*scan.Minute, a.window.From), first+i, n, errors)
		a.targets.heat.total.add(int(n), failed)
	}
}
