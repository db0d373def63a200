package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// heatFromSpans counts the heatmap, or only the totals, of rows of the table of spans.
func (a *aggregation) heatFromSpans(ctx context.Context, rows string) error {
	if a.heatmap == nil {
		t, err := a.countTotals(ctx, rows)
		a.totals.spans, a.totals.errors = t.spans, t.errors
		return err
	}
	step := uint64(a.want.Heatmap.Step)
	sql := fmt.Sprintf("SELECT intDiv(start, %[1]d) * %[1]d AS heat_start, %[4]s AS heat_bucket, count(), countIf(status = 'error') "+
		"FROM %[2]s WHERE %[3]s GROUP BY heat_start, heat_bucket", step, a.table, rows, where.HeatBucket("duration"))
	_, err := a.readHeat(ctx, sql)
	return err
}

// heatFromMinutes counts the heatmap from the table of minutes, and from spans at the ends of the
// window. done is false if the table does not distinguish spans as the query does.
func (a *aggregation) heatFromMinutes(ctx context.Context) (done bool, err error) {
	step := uint64(a.want.Heatmap.Step)
	condition, ok := minuteCondition(a.query.Where)
	if a.heatmap == nil || step%minute != 0 || !ok || !a.cond.Exact {
		return false, nil
	}
	parts := splitMinutes(a.from, a.to)
	if parts.first < parts.end {
		sql := fmt.Sprintf("SELECT toUInt64(intDiv(minute, %[1]d)) * %[1]d * %[2]d AS heat_start, heat_bucket, "+
			"sum(heat_spans), sumIf(heat_spans, failed = 1) FROM %[3]s "+
			"ARRAY JOIN "+where.HeatBucketsOf("bucketsMap.bucket")+" AS heat_bucket, bucketsMap.spans AS heat_spans "+
			"WHERE %[4]s AND %[5]s AND (%[6]s) AND %[7]s "+
			"GROUP BY heat_start, heat_bucket",
			step/minute, minute, a.store.db.Table("minutes"), where.Tenant(a.query.Tenant), parts.condition(), condition,
			a.store.ifExact(a.query.Tenant))
		exact, err := a.store.fromStatistics(ctx, a.query.Tenant, func(ctx context.Context) (int, error) { return a.readHeat(ctx, sql) })
		if err != nil || !exact {
			return false, err
		}
	}
	for _, w := range parts.rest {
		if err := a.heatFromSpans(ctx, where.Tenant(a.query.Tenant)+" AND "+where.Window(w[0], w[1])+" AND ("+a.cond.SQL+")"); err != nil {
			return false, err
		}
	}
	return true, nil
}

// groupsFromMinutes counts the groups from the table of minutes, and from spans at the ends of the
// window. done is false if the table does not distinguish spans as the query does.
func (a *aggregation) groupsFromMinutes(ctx context.Context) (done bool, err error) {
	condition, ok := minuteCondition(a.query.Where)
	if a.groups == nil || a.facets != nil || !ok || !a.cond.Exact || a.want.Groups.Measure != tracestore.MeasureNone ||
		a.groups.Parts().N > 0 || len(a.want.Groups.By) == 0 || slices.ContainsFunc(a.want.Groups.By, isNotOfMinutes) {
		return false, nil
	}
	parts := splitMinutes(a.from, a.to)
	if parts.first >= parts.end {
		return false, nil
	}
	var found []tracestore.Group
	exact, err := a.store.fromStatistics(ctx, a.query.Tenant, func(ctx context.Context) (int, error) {
		found, err = a.readGroups(ctx, where.Tenant(a.query.Tenant)+" AND "+parts.condition()+" AND ("+condition+") AND "+
			a.store.ifExact(a.query.Tenant))
		return len(found), err
	})
	if errors.Is(err, errAdjusted) || err == nil && (!exact || len(found) >= storequery.MaxGroupsCounted) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a.counted = true
	for i := range found {
		a.groups.AddTotal(&found[i])
		a.groups.AddGroup(&found[i])
		a.details.spans += found[i].Durations.Count()
		a.details.errors += found[i].Errors
	}
	for _, w := range parts.rest {
		set := where.Tenant(a.query.Tenant) + " AND " + where.Window(w[0], w[1]) + " AND (" + a.cond.SQL + ")"
		t, err := a.countTotals(ctx, set)
		if err != nil {
			return false, err
		}
		if t.spans == 0 {
			continue
		}
		if err := a.countGroups(ctx, set); err != nil {
			return false, err
		}
		a.details.spans, a.details.errors = a.details.spans+t.spans, a.details.errors+t.errors
	}
	return true, nil
}

// errAdjusted means that spans have adjusted counts. The table of minutes has no sum of the
// durations of such spans.
var errAdjusted = errors.New("spans have adjusted counts")

// readGroups returns the largest groups of rows of the table of minutes.
func (a *aggregation) readGroups(ctx context.Context, rows string) (found []tracestore.Group, _ error) {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer memory.Release()
	values, names := a.groupValues()
	histogram := packed("tupleElement(sumMap(bucketsMap.bucket, bucketsMap.spans) AS histogram, 1) AS buckets",
		"arrayWithConstant(length(buckets), toUInt16(0))", "tupleElement(histogram, 2)")
	sql := fmt.Sprintf("SELECT %s, sum(bucketed.spans) AS spans, sumIf(bucketed.spans, failed = 1), %s, toUInt64(0), toUInt64(0), "+
		"%s, toUInt8(spans != sum(calls)) FROM %s AS bucketed WHERE %s%s",
		values, saturated("sum(duration)"), histogram, a.store.db.Table("minutes"), rows, largestGroups(names))
	g := groupRow{of: &a.want.Groups}
	var adjusted uint8
	err = a.each(ctx, sql, append(g.targets(), &adjusted), func() error {
		if adjusted != 0 {
			return errAdjusted
		}
		one, err := g.withValues(a.groups.Parts())
		if err != nil {
			return err
		}
		found = append(found, one)
		return memory.Grow(callsOverhead + bucketOverhead*int64(len(g.counts)))
	})
	return found, err
}

// isNotOfMinutes reports whether the table of minutes lacks a field.
func isNotOfMinutes(f tracestore.Field) bool {
	return f.Parent || f.Place != tracestore.Service && f.Place != tracestore.Name && f.Place != tracestore.Kind
}

// readHeat adds the cells that a statement returns to the heatmap and the totals. It returns their
// number.
func (a *aggregation) readHeat(ctx context.Context, sql string) (cells int, err error) {
	var start, spans, errors uint64
	var bucket uint16
	step := uint64(a.want.Heatmap.Step)
	err = a.each(ctx, sql, []any{&start, &bucket, &spans, &errors}, func() error {
		cells++
		if bucket >= tracestore.HeatBuckets || start/step < a.from/step || start/step > a.to/step {
			return tracestore.Damaged(fmt.Sprintf("heatmap cell at %d with bucket %d is outside of the query", start, bucket), nil)
		}
		if spans == 0 {
			return nil
		}
		a.first, a.last = min(a.first, max(start, a.from)), max(a.last, min(start+min(step-1, math.MaxUint64-start), a.to))
		a.totals.spans += spans
		a.totals.errors += errors
		a.heatmap.AddSpans(max(start, a.from), int(bucket), spans, errors)
		return nil
	})
	return cells, err
}

// minuteCondition translates a condition on the columns of the table of minutes: services, names,
// kinds, and whether spans failed. ok is false if it depends on anything else.
func minuteCondition(e tracestore.Expr) (sql string, ok bool) {
	switch e := e.(type) {
	case nil:
		return where.Always, true
	case tracestore.And:
		return minuteConditions(e, where.Always, " AND ")
	case tracestore.Or:
		return minuteConditions(e, where.Never, " OR ")
	case tracestore.Not:
		part, ok := minuteCondition(e.Expr)
		return "NOT (" + part + ")", ok
	case tracestore.Cond:
		return minuteCond(e)
	}
	return "", false
}

func minuteConditions(parts []tracestore.Expr, empty, operator string) (string, bool) {
	all := make([]string, 0, len(parts))
	for _, part := range parts {
		sql, ok := minuteCondition(part)
		if !ok {
			return "", false
		}
		all = append(all, "("+sql+")")
	}
	if len(all) == 0 {
		return empty, true
	}
	return strings.Join(all, operator), true
}

func minuteCond(c tracestore.Cond) (sql string, ok bool) {
	if c.Value.IsNumber || c.Op != tracestore.Eq && c.Op != tracestore.Ne {
		return "", false
	}
	operator := map[tracestore.Op]string{tracestore.Eq: " = ", tracestore.Ne: " != "}[c.Op]
	switch column, _ := where.Column(c.Field.Place); c.Field.Place {
	case tracestore.Service, tracestore.Name, tracestore.Kind:
		return column + operator + where.Text(c.Value.Text), true
	case tracestore.Status:
		return "failed" + operator + "1", c.Value.Text == "error"
	}
	return "", false
}
