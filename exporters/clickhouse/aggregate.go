package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Aggregator = (*exporter)(nil)

// Aggregate implements tracestore.Aggregator. The server counts. Spans that it cannot decide or
// count exactly are examined here, one by one; see spanRows.
//
//   - The heatmap and the totals cover all spans. Whole minutes come from the table "minutes" if
//     the condition and the step permit it. So do groups by service, name and kind.
//   - Facets and other groups cover all spans up to Budget.Spans, otherwise a sample: spans whose
//     start has a hash below a limit.
//   - If more spans than the budget must be examined one by one, only a sample is counted.
func (e *exporter) Aggregate(ctx context.Context, q tracestore.Query, want tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := errors.Join(want.Check(q), ctx.Err()); err != nil {
		return tracestore.Aggregate{}, err
	}
	q.Where, want = tracestore.WithContext(ctx, q.Where), want.WithContext(ctx)
	a := newAggregation(e, q, want)
	if from, to, ok := q.Window(); ok && !a.cond.Never() {
		a.from, a.to = from, to
		memory, err := tracestore.Reserve(ctx, 0)
		if err != nil {
			return tracestore.Aggregate{}, err
		}
		defer memory.Release()
		a.chargeTo(memory)
		cached, store := a.cached(ctx)
		if cached != nil {
			return *cached, nil
		}
		if err := errors.Join(a.run(ctx), ctx.Err()); err != nil && !a.isPartial(err) {
			return tracestore.Aggregate{}, fmt.Errorf("counting spans: %w", err)
		}
		a.reasons.Add(e.missingShards(ctx)...)
		found := a.answer()
		store(&found)
		return found, nil
	}
	return a.answer(), nil
}

// aggregation is a running call of Aggregate.
type aggregation struct {
	store                   *exporter
	table                   string // of spans
	query                   tracestore.Query
	want                    tracestore.Aggregation
	from, to                uint64
	cond                    where.Condition
	mayBeSelected, selected string // conditions of the selection; they differ if the server cannot decide
	selectedByWhole         bool   // see where.Condition.Whole
	heatmap                 *storequery.HeatmapCounter
	facetMutex              sync.Mutex // of facets while statements run at the same time
	facets                  *storequery.FacetCounter
	groups                  *storequery.GroupCounter
	picks                   *storequery.ExemplarPicker
	exemplars               []tracestore.Exemplar
	first, last             uint64 // start of the first column of the heatmap with spans, and end of the last one
	totals                  total  // of the heatmap, or if there is none, of all spans
	details                 total  // of facets and groups
	counted                 bool   // totals are known
	scanned                 int
	reasons                 tracestore.Reasons
}

// total is the number of counted spans.
type total struct {
	spans, errors, selected uint64
	share                   float64
	relativeError           float64
}

func newAggregation(e *exporter, q tracestore.Query, want tracestore.Aggregation) *aggregation {
	a := &aggregation{store: e, table: e.db.Table("spans"), query: q, want: want, cond: e.conditionOf(q, q.Where), mayBeSelected: where.Never,
		selected: where.Never, first: math.MaxUint64, totals: total{share: 1}, details: total{share: 1}}
	if want.Heatmap.Step > 0 {
		a.heatmap = storequery.NewHeatmapCounter(q, want.Heatmap)
	}
	if want.Facets.Values > 0 {
		a.facets = storequery.NewFacetCounter(want.Facets)
		a.choose(want.Facets.Selection)
	}
	if want.Groups.Requested() {
		a.groups = storequery.NewGroupCounter(q, want.Groups)
	}
	if want.Exemplars > 0 {
		a.picks = storequery.NewExemplarPicker(want.Exemplars)
	}
	return a
}

// choose sets the conditions of a selection.
func (a *aggregation) choose(s *tracestore.Selection) {
	if s == nil {
		return
	}
	from, to, ok := tracestore.Query{From: s.From, To: s.To}.Window()
	if !ok {
		return
	}
	c := a.store.conditionOf(a.query, s.Where)
	within := fmt.Sprintf("start BETWEEN %d AND %d", from, to)
	a.mayBeSelected, a.selected = within+" AND ("+c.SQL+")", within+" AND ("+c.Sure+")"
	if c.Exact {
		a.mayBeSelected = a.selected
	}
	a.selectedByWhole = c.Whole
}

// isPartial reports whether the counts before an error are a usable result, and sets the reason why
// the result is incomplete.
func (a *aggregation) isPartial(err error) bool {
	limit := serverLimit(err)
	switch {
	case !a.counted:
		return false
	case limit != nil:
		a.reasons = limit
	case errors.Is(err, context.DeadlineExceeded):
		a.reasons = tracestore.Because(tracestore.ReasonTime,
			"deadline exceeded before everything was counted; narrow the query or the time range")
	case tracestore.IsOutOfMemory(err):
		a.reasons = tracestore.Because(tracestore.ReasonLimit, "not everything was counted: "+err.Error())
	default:
		return false
	}
	return true
}

func (a *aggregation) chargeTo(m *tracestore.Memory) {
	if a.facets != nil {
		a.facets.ChargeTo(m)
	}
	if a.groups != nil {
		a.groups.ChargeTo(m)
	}
}

func (a *aggregation) run(ctx context.Context) error {
	all := where.Tenant(a.query.Tenant) + " AND " + where.Window(a.from, a.to) + " AND (" + a.cond.SQL + ")"
	set := spanRows{all: all, examined: undecided(&a.cond)}
	details := a.facets != nil || a.groups != nil
	if a.heatmap == nil && a.picks == nil && details { // which have the totals, too
		return a.countDetails(ctx, all)
	}
	fromMinutes, err := a.heatFromMinutes(ctx)
	if err != nil {
		return err
	}
	if !fromMinutes {
		if set, err = a.countAll(ctx, set); err != nil {
			return err
		}
	}
	a.counted = true
	if a.picks != nil {
		if err := a.pick(ctx, set); err != nil {
			return err
		}
		if a.exemplars, err = a.identify(ctx, a.picks.Answer()); err != nil {
			return err
		}
	}
	if !details {
		return nil
	}
	return a.countDetails(ctx, all)
}

// countAll counts the totals and the heatmap, for a sample if too many spans must be examined one
// by one. It returns the rows that it counted.
func (a *aggregation) countAll(ctx context.Context, set spanRows) (spanRows, error) {
	if set.examined != where.Never {
		s, err := a.sample(ctx, set, math.MaxUint64)
		if err != nil {
			return set, err
		}
		set, a.totals.share = s.rows, s.share
		defer func() { a.totals.relativeError = relativeError(a.totals.spans, s.n.rows, s.share) }()
	}
	if err := a.heatFromSpans(ctx, set.counted()); err != nil {
		return set, err
	}
	return set, a.examine(ctx, set, a.rowColumns(), func(s tracestore.Span, _ bool) {
		a.addTotal(s)
		if a.picks != nil {
			a.offer(s)
		}
	})
}

// addTotal counts a span in the heatmap and the totals.
func (a *aggregation) addTotal(s tracestore.Span) {
	failed := s.StatusCode == otlpdata.StatusError
	a.totals.spans++
	if failed {
		a.totals.errors++
	}
	if a.heatmap != nil {
		duration, _ := s.Duration()
		a.heatmap.AddSpan(s.Start, duration, failed)
	}
}

// rowColumns returns the columns of examined rows that conditions need.
func (a *aggregation) rowColumns() *rowColumns {
	c := &rowColumns{properties: make(map[tracestore.Place]struct{}), someKeys: where.Never}
	for f := range tracestore.Fields(a.query.Where) {
		c.add(f)
	}
	if s := a.want.Facets.Selection; s != nil {
		for f := range tracestore.Fields(s.Where) {
			c.add(f)
		}
	}
	return c
}

// countDetails counts facets and groups.
func (a *aggregation) countDetails(ctx context.Context, all string) error {
	if done, err := a.groupsFromMinutes(ctx); done || err != nil {
		return err
	}
	examined := []string{undecided(&a.cond)}
	if a.selectedByWhole {
		examined = append(examined, where.Always)
	} else if a.mayBeSelected != a.selected {
		examined = append(examined, "("+a.mayBeSelected+") AND NOT ("+a.selected+")")
	}
	if a.facets != nil {
		examined = append(examined, a.severalValues(a.want.Facets.Fields))
	}
	if a.groups != nil {
		examined = append(examined, severalOf(a.groupFields()))
	}
	s, err := a.sample(ctx, spanRows{all: all, examined: where.Any(examined...)}, uint64(max(a.query.Budget.Spans, 0)))
	if err != nil {
		return err
	}
	if s.rows.examined != where.Never && (a.countsErrorGroups() || a.want.Groups.Adjusted) {
		// Rows lack the data that determines the error group or the adjusted count of a span.
		if s, err = a.sample(ctx, spanRows{all: all, examined: where.Always}, uint64(max(a.query.Budget.Spans, 0))); err != nil {
			return err
		}
	}
	a.counted = true
	if err := a.countSet(ctx, s.rows, &s.n); err != nil {
		return err
	}
	a.details.share = s.share
	if !a.cond.Exact { // otherwise, the number of matching spans is known
		a.details.relativeError = relativeError(a.details.spans, s.n.rows, s.share)
	}
	return nil
}

// groupFields returns the fields of groups and of their measured numbers.
func (a *aggregation) groupFields() []tracestore.Field {
	if a.want.Groups.Measure == tracestore.MeasureNone {
		return a.want.Groups.By
	}
	return append(slices.Clip(a.want.Groups.By), a.want.Groups.Of)
}

// countsErrorGroups reports whether a facet or a group uses error groups.
func (a *aggregation) countsErrorGroups() bool {
	return slices.ContainsFunc(slices.Concat(a.want.Facets.Fields, a.want.Groups.By),
		func(f tracestore.Field) bool { return f.Place == tracestore.ErrorGroup })
}

// countSet counts the facets and groups of rows. n is the number of these rows.
func (a *aggregation) countSet(ctx context.Context, set spanRows, n *rowCount) (err error) {
	t := total{spans: n.rows, errors: n.failed, selected: n.selected}
	if set.examined != where.Never {
		if t, err = a.countTotals(ctx, set.counted()); err != nil {
			return err
		}
	}
	a.details.spans, a.details.errors, a.details.selected = t.spans, t.errors, t.selected
	a.scanned += int(t.spans)
	columns := a.rowColumns()
	if a.facets != nil {
		a.facets.AddTotal(t.spans, t.selected)
		if err := a.countFacets(ctx, set.counted(), t, columns); err != nil {
			return err
		}
	}
	if a.groups != nil {
		columns.add(a.groupFields()...)
		if err := a.countGroups(ctx, set.counted()); err != nil {
			return err
		}
	}
	return a.examine(ctx, set, columns, func(s tracestore.Span, selected bool) {
		a.details.spans++
		if s.StatusCode == otlpdata.StatusError {
			a.details.errors++
		}
		if a.facets != nil {
			a.facets.AddSpan(s, selected)
		}
		if a.groups != nil {
			a.groups.AddSpan(s)
		}
	})
}

// countTotals counts rows.
func (a *aggregation) countTotals(ctx context.Context, rows string) (t total, err error) {
	sql := "SELECT count(), countIf(status = 'error'), countIf(" + a.selected + ") FROM " + a.table + " WHERE " + rows
	return t, a.one(ctx, sql, &t.spans, &t.errors, &t.selected)
}

// one reads the only row of a result.
func (a *aggregation) one(ctx context.Context, sql string, to ...any) error {
	return a.each(ctx, sql, to, func() error { return nil })
}

// each reads the rows of a result, and calls take after each.
func (a *aggregation) each(ctx context.Context, sql string, to []any, take func() error) error {
	return a.store.eachScanned(ctx, sql, to, take)
}

func (a *aggregation) answer() tracestore.Aggregate {
	out := tracestore.Aggregate{Scanned: a.scanned, Reasons: a.reasons}
	total := &a.totals
	if a.heatmap == nil && (a.facets != nil || a.groups != nil) {
		total = &a.details
	}
	out.Spans, out.Errors, out.Share, out.RelativeError = total.spans, total.errors, total.share, total.relativeError
	if a.heatmap != nil {
		out.Heatmap = a.heatmap.Answer(a.totals.share)
	}
	if a.facets != nil {
		out.Facets = a.facets.Answer(a.details.share)
		if a.facets.OutOfMemory() {
			out.Reasons.Add(storequery.ReasonFacetMemory)
		}
	}
	if a.groups != nil {
		out.Groups = a.groups.Answer(a.details.share)
		if a.groups.OutOfMemory() {
			out.Reasons.Add(storequery.ReasonGroupMemory)
		}
	}
	if a.picks != nil {
		out.Exemplars = a.exemplars
	}
	return out
}
