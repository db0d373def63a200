package aggregate

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// canUseSeries reports whether series may suffice for the heatmap: its columns are whole minutes
// and the query has no condition on fields that series lack.
func (a *aggregation) canUseSeries() bool {
	return uint64(a.want.Heatmap.Step)%scan.Minute == 0 && answeredBySeries(a.query.Where)
}

// heatFromSeries makes the heatmap from statistics for whole minutes, and from rows for the rest.
// It leaves heatmapDone false and counts nothing if the statistics do not suffice, or if the rest
// has more rows than the budget (than half of it with facets or groups).
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
		if rest[src], exact, err = a.seriesOf(ctx, src, scan.SplitWindow(a.window, oldest, newest), a.heatPoint); err != nil || !exact {
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
	return a.scanRest(ctx, f, targets{heat: a.targets.heat})
}

// heatPoint adds spans to the heatmap.
func (a *aggregation) heatPoint(_ int, series *stats.Series, minute uint64, durations *tracestore.Histogram) {
	first, counts := durations.Counts()
	for i, n := range counts {
		if n == 0 {
			continue
		}
		errors := uint64(0)
		if series.Error {
			errors = n
		}
		// The first minute can begin before the window, but all counted spans start within the
		// window, so clamp to its start.
		a.targets.heat.counter.AddSpans(max(minute*scan.Minute, a.window.From), tracestore.HeatBucket(first+i), n, errors)
		a.targets.heat.total.add(int(n), series.Error)
	}
}
