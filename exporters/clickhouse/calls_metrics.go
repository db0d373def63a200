package clickhouse

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Metrics = (*exporter)(nil)

// Metrics implements tracestore.Metrics. Whole minutes are counted from the table "minutes" if it
// is exact (see statistics), and the rest of the window from "spans".
func (e *exporter) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	counter := storequery.NewMetricsCounter(q)
	from, to, ok := q.Window()
	if !ok {
		return counter.Answer(), ctx.Err()
	}
	c := callQuery{tenant: tenant, from: from, to: to, byOperation: q.ByOperation, step: q.StepLength()}
	for column, names := range map[string][]string{"service": q.Services, "kind": q.Kinds} {
		if len(names) > 0 {
			c.conditions = append(c.conditions, column+" IN ("+where.Texts(names)+")")
		}
	}
	reasons, err := e.countCalls(ctx, c, counter)
	if err != nil {
		return tracestore.MetricsAnswer{}, fmt.Errorf("counting calls: %w", err)
	}
	a := counter.Answer()
	a.Reasons.Add(reasons...)
	return a, nil
}

// callQuery selects calls and how they are grouped.
type callQuery struct {
	tenant              string
	from, to            uint64 // start of spans, both inclusive
	byOperation, byKind bool
	step                uint64   // length of a point in nanoseconds, whole minutes; 0: one point
	conditions          []string // on service, name and kind
}

// countCalls passes the calls that a query selects to a counter. It returns the reasons if some
// could not be counted.
func (e *exporter) countCalls(ctx context.Context, q callQuery, counter storequery.DurationCounter) (tracestore.Reasons, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer memory.Release()
	parts := splitMinutes(q.from, q.to)
	counted := false
	if parts.first < parts.end {
		counted, err = e.fromStatistics(ctx, q.tenant, func(ctx context.Context) (int, error) {
			return e.readCalls(ctx, q.fromMinutes(e.db.Table("minutes"), parts, e.ifExact(q.tenant)), counter, memory)
		})
		if err != nil {
			return nil, err
		}
		if !counted {
			parts.rest = [][2]uint64{{q.from, q.to}}
		}
	}
	for _, w := range parts.rest {
		_, err := e.readCalls(ctx, q.fromSpans(e.db.Table("spans"), w), counter, memory)
		if limit := serverLimit(err); limit != nil && counted {
			return append(limit, e.missingShards(ctx)...), nil
		}
		if err != nil {
			return nil, err
		}
		counted = true
	}
	return e.missingShards(ctx), ctx.Err()
}

const minute = uint64(time.Minute)

// minuteParts are the whole minutes of a window, from first to before end, and the windows before
// and after them.
type minuteParts struct {
	first, end uint64
	rest       [][2]uint64
}

// condition returns the condition on rows of the table "minutes".
func (p *minuteParts) condition() string {
	last := (p.end - 1) * minute
	return where.Days(p.first*minute, last) + fmt.Sprintf(" AND minute BETWEEN %d AND %d", p.first, p.end-1)
}

// splitMinutes splits a window, both ends inclusive. The last possible minute counts as a whole one
// although it is shorter.
func splitMinutes(from, to uint64) (p minuteParts) {
	p.first, p.end = from/minute, to/minute
	if from%minute > 0 {
		p.first++
	}
	if to == math.MaxUint64 || to%minute == minute-1 {
		p.end++
	}
	if p.first >= p.end {
		return minuteParts{rest: [][2]uint64{{from, to}}}
	}
	if from%minute > 0 {
		p.rest = append(p.rest, [2]uint64{from, p.first*minute - 1})
	}
	if to != math.MaxUint64 && to >= p.end*minute {
		p.rest = append(p.rest, [2]uint64{p.end * minute, to})
	}
	return p
}

// fromMinutes returns the statement that counts the calls of whole minutes, on a further condition.
func (q *callQuery) fromMinutes(table string, p minuteParts, further string) string {
	point := "toUInt64(0)"
	if q.step > 0 {
		point = fmt.Sprintf("toUInt64(intDiv(minute, %[1]d)) * %[1]d * %[2]d", q.step/minute, minute)
	}
	conditions := append([]string{where.Tenant(q.tenant), p.condition(), further}, q.conditions...)
	return fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE %s"+callsInOrder, q.keys("failed", point), saturated("sum(duration)"),
		packed("sumMap(bucketsMap.bucket, bucketsMap.calls)"), table, strings.Join(conditions, " AND "))
}

// fromSpans returns the statement that counts the calls that start within a window.
func (q *callQuery) fromSpans(table string, w [2]uint64) string {
	point := "toUInt64(0)"
	if q.step > 0 {
		point = fmt.Sprintf("intDiv(start, %[1]d) * %[1]d", q.step)
	}
	conditions := append([]string{where.Tenant(q.tenant), where.Window(w[0], w[1])}, q.conditions...)
	// Counting calls by bucket first is faster than adding up histograms.
	return fmt.Sprintf("SELECT "+callKeys+", %s, %s FROM ("+
		"SELECT %s, %s AS call_bucket, sum(calls) AS n, sum(toUInt128(duration) * calls) AS time FROM %s WHERE %s "+
		"GROUP BY "+callKeys+", call_bucket)"+callsInOrder,
		saturated("sum(time)"), packed("groupArray(call_bucket)", "groupArray(n)"), q.keys("status = 'error'", point),
		where.Bucket("duration"), table, strings.Join(conditions, " AND "))
}

const (
	// callKeys are the names of the columns that identify the calls of a result row.
	callKeys = "call_service, call_name, call_kind, call_failed, point"
	// callsInOrder ends the statements that count calls.
	callsInOrder = " GROUP BY " + callKeys + " ORDER BY call_service, call_name, call_kind, point, call_failed"
)

// keys returns the expressions of the callKeys.
func (q *callQuery) keys(failed, point string) string {
	column := func(name string, use bool) string {
		if use {
			return name
		}
		return "''"
	}
	return fmt.Sprintf("service AS call_service, %s AS call_name, %s AS call_kind, toUInt8(%s) AS call_failed, %s AS point",
		column("name", q.byOperation), column("kind", q.byKind), failed, point)
}

// saturated returns the expression of the UInt64 next to a UInt128.
func saturated(expression string) string {
	return "toUInt64(least(" + expression + ", toUInt128(" + strconv.FormatUint(math.MaxUint64, 10) + ")))"
}

// Memory of counted calls in bytes.
const (
	callsOverhead  = 256
	bucketOverhead = 16
)

// readCalls passes the rows of a statement of a callQuery to a counter. It returns their number.
func (e *exporter) readCalls(
	ctx context.Context, sql string, counter storequery.DurationCounter, memory *tracestore.Memory,
) (rows int, err error) {
	var service, operation, kind string
	var failed uint8
	var point, sum uint64
	var histogram []byte
	columns := []any{&service, &operation, &kind, &failed, &point, &sum, &histogram}
	err = e.eachScanned(ctx, sql, columns, func() error {
		rows++
		arrays := packedArrays{rest: histogram}
		buckets, counts := nextArray[uint16](&arrays), nextArray[uint64](&arrays)
		if err := arrays.end(); err != nil {
			return err
		}
		durations, err := histogramOf(sum, buckets, counts)
		if err != nil {
			return err
		}
		if err := memory.Grow(callsOverhead + bucketOverhead*int64(len(counts))); err != nil {
			return err
		}
		if series, ok := counter.Series(service, operation, kind); ok && durations.Count() > 0 {
			counter.AddHistogram(series, point, &durations, failed != 0)
		}
		return nil
	})
	return rows, err
}

// histogramOf returns a histogram of counts by bucket, in any order.
func histogramOf(sum uint64, buckets []uint16, counts []uint64) (h tracestore.Histogram, err error) {
	if len(buckets) != len(counts) {
		return h, tracestore.Damaged(fmt.Sprintf("histogram with %d buckets and %d counts", len(buckets), len(counts)), nil)
	}
	for i, b := range buckets {
		if int(b) >= tracestore.Buckets {
			return h, tracestore.Damaged(fmt.Sprintf("histogram with bucket %d; the last one is %d", b, tracestore.Buckets-1), nil)
		}
		if counts[i] > 0 {
			h.AddBucket(int(b), counts[i])
		}
	}
	h.Sum = sum
	return h, nil
}

// Baselines implements tracestore.Metrics.
func (e *exporter) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	counter := storequery.NewBaselineCounter(q)
	from, to, ok := q.Window()
	if !ok || len(q.Operations) == 0 {
		return counter.Answer(), ctx.Err()
	}
	c := callQuery{tenant: tenant, from: from, to: to, byOperation: true, byKind: true, conditions: []string{anyOperation(q.Operations)}}
	reasons, err := e.countCalls(ctx, c, counter)
	if err != nil {
		return tracestore.BaselineAnswer{}, fmt.Errorf("counting calls of operations: %w", err)
	}
	a := counter.Answer()
	a.Reasons = reasons
	return a, nil
}

// anyOperation returns the condition that a row belongs to one of some operations. It names the
// services separately, because they select a range of the table.
func anyOperation(operations []tracestore.OperationKey) string {
	services, all := make([]string, len(operations)), make([]string, len(operations))
	for i, o := range operations {
		services[i] = o.Service
		all[i] = "(" + where.Texts([]string{o.Service, o.Operation, o.Kind}) + ")"
	}
	return "service IN (" + where.Texts(services) + ") AND (service, name, kind) IN (" + strings.Join(all, ", ") + ")"
}
