package aggregate

import (
	"context"
	"errors"
	"iter"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// answeredBySeries reports whether an expression has the same result for all spans of a series with
// the same status.
func answeredBySeries(e tracestore.Expr) bool {
	for f := range tracestore.Fields(e) {
		if !ofSeries(f) {
			return false
		}
	}
	return true
}

// ofSeries reports whether series distinguish the values of a field.
func ofSeries(f tracestore.Field) bool {
	switch f.Place {
	case tracestore.Service, tracestore.Name, tracestore.Kind, tracestore.Status:
		return !f.Parent
	}
	return false
}

// seriesPoint adds the durations of spans of a series, whose index is i, in a minute.
type seriesPoint func(i int, s *stats.Series, minute uint64, durations *tracestore.Histogram)

// seriesOf adds the matching spans in the whole minutes of a source, and returns the start times
// for which rows must be read. exact is false if series do not distinguish spans as the query does.
func (a *aggregation) seriesOf(ctx context.Context, src int, d scan.Split, add seriesPoint) (rest scan.Window, exact bool, _ error) {
	known, exact := false, true
	err := a.session.Decode(ctx, func() (err error) {
		switch s := a.session.Sources[src].(type) {
		case source.Statistics:
			known, exact, err = a.seriesOfSegment(s, d, add)
		case source.Tally:
			known, err = s.Tally(ctx, func(c *stats.Collector, oldest, newest uint64) {
				d = scan.SplitWindow(a.window, oldest, newest) // the memtable may have newer rows than the source
				exact = a.seriesOfTally(c, d, add)
			})
		}
		return err
	})
	if known {
		return d.Rest, exact, err
	}
	return d.All, exact, err
}

// seriesOfSegment adds the whole minutes of a segment. known is false if its statistics are
// incomplete, or damaged, which loses no spans.
func (a *aggregation) seriesOfSegment(s source.Statistics, d scan.Split, add seriesPoint) (known, exact bool, _ error) {
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
			add(p.Series, &series.Series[p.Series], p.Minute, &p.Durations)
		}
	}
	return true, exact, nil
}

// seriesOfTally adds the whole minutes of a memtable.
func (a *aggregation) seriesOfTally(c *stats.Collector, d scan.Split, add seriesPoint) (exact bool) {
	all := c.AllSeries()
	wanted, some, exact := a.wantedSeries(all)
	if some && exact && d.HasMinutes {
		c.EachPoint(d.Minutes.From, d.Minutes.To, wanted, func(i int, minute uint64, durations *tracestore.Histogram) {
			add(i, &all[i], minute, durations)
		})
	}
	return exact
}

// wantedSeries returns which series match the query. exact is false if only a part of the spans of
// a series may match, because series do not distinguish the statuses ok and unset, and the series
// OtherOperation does not distinguish names. Heatmaps count stored spans, so series of adjusted
// counts are left out.
func (a *aggregation) wantedSeries(series []stats.Series) (wanted []bool, some, exact bool) {
	named := hasName(tracestore.Fields(a.query.Where))
	wanted = make([]bool, len(series))
	for i := range series {
		s := &series[i]
		if s.Tenant != a.query.Tenant || s.Unsampled {
			continue
		}
		if named && s.Operation == tracestore.OtherOperation {
			return nil, false, false
		}
		span := otlpdata.Span{Name: s.Operation, Kind: otlpdata.KindOf(s.Kind), StatusCode: otlpdata.StatusError}
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

// hasName reports whether the name of a span is one of the fields.
func hasName(fields iter.Seq[tracestore.Field]) bool {
	for f := range fields {
		if f.Place == tracestore.Name {
			return true
		}
	}
	return false
}
