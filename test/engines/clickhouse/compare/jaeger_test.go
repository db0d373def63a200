package compare

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// jaeger writes and reads the schema of Jaeger 2 with its statements: one insert for each batch,
// row by row, without a deduplication token.
type jaeger struct{ *server }

func newJaeger(tb testing.TB, s *server) subject {
	s.create(tb, "jaeger.sql")
	return jaeger{s}
}

// jaegerTypes are the parts of a name of columns with attributes.
var jaegerTypes = []string{"bool", "double", "int", "str", "complex"}

// jaegerPairs returns the columns of attributes at one place.
func jaegerPairs(prefix string) (columns []string) {
	for _, typ := range jaegerTypes {
		columns = append(columns, prefix+typ+"_attributes.key", prefix+typ+"_attributes.value")
	}
	return columns
}

func jaegerColumns(events, links []string) string {
	columns := []string{"id", "trace_id", "trace_state", "parent_span_id", "name", "kind", "start_time", "status_code", "status_message",
		"duration"}
	columns = append(columns, jaegerPairs("")...)
	columns = append(columns, "events.name", "events.timestamp")
	columns = append(columns, events...)
	columns = append(columns, "links.trace_id", "links.span_id", "links.trace_state")
	columns = append(columns, links...)
	columns = append(columns, "service_name")
	columns = append(columns, jaegerPairs("resource_")...)
	columns = append(columns, "scope_name", "scope_version")
	columns = append(columns, jaegerPairs("scope_")...)
	return strings.Join(columns, ", ")
}

func nested(prefix string) (columns []string) {
	for _, typ := range jaegerTypes {
		columns = append(columns, prefix+typ+"_attributes")
	}
	return columns
}

func (j jaeger) write(ctx context.Context, b batch) error {
	insert, err := j.PrepareBatch(ctx, "INSERT INTO spans ("+jaegerColumns(nested("events."), nested("links."))+")")
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // after Send it has no effect
	for _, rs := range b.otel.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if err := insert.Append(jaegerRow(service.Str(), rs.Resource(), ss.Scope(), span)...); err != nil {
					return err
				}
			}
		}
	}
	return insert.Send()
}

func jaegerRow(service string, resource pcommon.Resource, scope pcommon.InstrumentationScope, span ptrace.Span) []any {
	row := []any{span.SpanID().String(), span.TraceID().String(), span.TraceState().AsRaw(), span.ParentSpanID().String(), span.Name(),
		strings.ToLower(span.Kind().String()), span.StartTimestamp().AsTime(), span.Status().Code().String(), span.Status().Message(),
		span.EndTimestamp().AsTime().Sub(span.StartTimestamp().AsTime()).Nanoseconds()}
	row = append(row, typed(span.Attributes()).row()...)
	var names []string
	var times []time.Time
	var attributes tuples
	for _, e := range span.Events().All() {
		names, times = append(names, e.Name()), append(times, e.Timestamp().AsTime())
		attributes.add(typed(e.Attributes()))
	}
	row = append(append(row, names, times), attributes.row()...)
	var traces, spans, states []string
	attributes = tuples{}
	for _, l := range span.Links().All() {
		traces, spans = append(traces, l.TraceID().String()), append(spans, l.SpanID().String())
		states = append(states, l.TraceState().AsRaw())
		attributes.add(typed(l.Attributes()))
	}
	row = append(append(row, traces, spans, states), attributes.row()...)
	row = append(append(row, service), typed(resource.Attributes()).row()...)
	return append(append(row, scope.Name(), scope.Version()), typed(scope.Attributes()).row()...)
}

// typedAttributes are attributes by type.
type typedAttributes struct {
	boolKeys, doubleKeys, intKeys, strKeys, complexKeys []string
	bools                                               []bool
	doubles                                             []float64
	ints                                                []int64
	strs, complexes                                     []string
}

func typed(m pcommon.Map) (t typedAttributes) {
	for k, v := range m.All() {
		switch v.Type() {
		case pcommon.ValueTypeBool:
			t.boolKeys, t.bools = append(t.boolKeys, k), append(t.bools, v.Bool())
		case pcommon.ValueTypeDouble:
			t.doubleKeys, t.doubles = append(t.doubleKeys, k), append(t.doubles, v.Double())
		case pcommon.ValueTypeInt:
			t.intKeys, t.ints = append(t.intKeys, k), append(t.ints, v.Int())
		case pcommon.ValueTypeStr:
			t.strKeys, t.strs = append(t.strKeys, k), append(t.strs, v.Str())
		case pcommon.ValueTypeBytes:
			t.complexKeys = append(t.complexKeys, "@bytes@"+k)
			t.complexes = append(t.complexes, base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()))
		default:
			t.complexKeys, t.complexes = append(t.complexKeys, "@map@"+k), append(t.complexes, v.AsString())
		}
	}
	return t
}

func (t typedAttributes) row() []any {
	return []any{t.boolKeys, t.bools, t.doubleKeys, t.doubles, t.intKeys, t.ints, t.strKeys, t.strs, t.complexKeys, t.complexes}
}

// tuples are the attributes of several events or links: for each a list of pairs.
type tuples [5][][][]any

func (t *tuples) add(a typedAttributes) {
	t[0] = append(t[0], pairs(a.boolKeys, a.bools))
	t[1] = append(t[1], pairs(a.doubleKeys, a.doubles))
	t[2] = append(t[2], pairs(a.intKeys, a.ints))
	t[3] = append(t[3], pairs(a.strKeys, a.strs))
	t[4] = append(t[4], pairs(a.complexKeys, a.complexes))
}

func pairs[T any](keys []string, values []T) [][]any {
	list := make([][]any, len(keys))
	for i := range keys {
		list[i] = []any{keys[i], values[i]}
	}
	return list
}

func (t tuples) row() []any { return []any{t[0], t[1], t[2], t[3], t[4]} }

// trace reads all columns, as the query service does.
func (j jaeger) trace(ctx context.Context, id otlpdata.TraceID) (spans int, err error) {
	rows, err := j.Query(ctx, "SELECT "+jaegerColumns(jaegerPairs("events."), jaegerPairs("links."))+" FROM spans s WHERE s.trace_id = ?",
		id.String())
	if err != nil {
		return 0, err
	}
	types := rows.ColumnTypes()
	dest := make([]any, len(types))
	for i, t := range types {
		dest[i] = newOf(t.ScanType())
	}
	err = all(rows, nil, func() error { spans++; return nil }, dest...)
	return spans, err
}

// selection returns the subquery with which Jaeger finds the ids of traces. It has no order.
func (j jaeger) selection(q search) (sql string, args []any) {
	sql = "SELECT DISTINCT s.trace_id FROM spans s WHERE 1=1"
	if q.service != "" {
		sql, args = sql+" AND s.service_name = ?", append(args, q.service)
	}
	sql, args = sql+" AND s.start_time >= ? AND s.start_time <= ?", append(args, q.from, q.to)
	if q.user != "" { // attribute_metadata says that it is a string of spans
		sql += " AND (arrayExists((key, value) -> key = ? AND value = ?, s.str_attributes.key, s.str_attributes.value))"
		args = append(args, "enduser.id", q.user)
	}
	return sql + " LIMIT ?", append(args, q.limit)
}

func (j jaeger) newest(ctx context.Context, q search) ([]otlpdata.TraceID, error) {
	inner, args := j.selection(q)
	return ids(j.Query(ctx, "SELECT trace_id FROM (SELECT l.trace_id AS trace_id, min(t.start) AS start, max(t.end) AS end FROM ("+inner+
		") l LEFT JOIN trace_id_timestamps t ON l.trace_id = t.trace_id GROUP BY l.trace_id)", args...))
}

// jaegerSummaries computes summaries as in internal/storage/v2/clickhouse/sql/queries.go of Jaeger.
const jaegerSummaries = `WITH selected AS (SELECT trace_id FROM (%s ORDER BY s.trace_id LIMIT ?)),
agg AS (
    SELECT s.trace_id AS trace_id, min(s.start_time) AS min_start, max(s.start_time + toIntervalNanosecond(s.duration)) AS max_end,
        count() AS span_count, countIf(s.status_code = 'Error') AS error_span_count,
        argMinIf((s.service_name, s.name), (s.start_time, s.id), s.parent_span_id = '') AS root,
        sumMap([s.service_name], [toUInt64(1)], [toUInt64(s.status_code = 'Error')]) AS svc_stats
    FROM spans s
    WHERE s.trace_id IN (SELECT trace_id FROM selected)
    GROUP BY s.trace_id
)
SELECT agg.trace_id AS trace_id, agg.span_count AS span_count, agg.root.1 AS root_service, agg.root.2 AS root_operation,
    agg.svc_stats.1 AS svc_names, toUInt64(ifNull(orph.orphan_count, 0)) AS orphan_count
FROM agg
LEFT JOIN (
    SELECT s.trace_id AS trace_id, count() AS orphan_count
    FROM spans s
    LEFT ANTI JOIN spans p ON s.trace_id = p.trace_id AND s.parent_span_id = p.id
    WHERE s.parent_span_id != '' AND s.trace_id IN (SELECT trace_id FROM selected)
    GROUP BY s.trace_id
) AS orph ON agg.trace_id = orph.trace_id`

func (j jaeger) summaries(ctx context.Context, q search) (traces int, err error) {
	inner, args := j.selection(q)
	rows, err := j.Query(ctx, fmt.Sprintf(jaegerSummaries, strings.TrimSuffix(inner, " LIMIT ?")), args...)
	var id, service, operation string
	var spans, orphans uint64
	var services []string
	err = all(rows, err, func() error { traces++; return nil }, &id, &spans, &service, &operation, &services, &orphans)
	return traces, err
}

// jaegerKinds are the kinds of spans that the query service counts.
var jaegerKinds = []string{"server", "client", "internal", "producer", "consumer"}

// red runs the three statements of the query service.
func (j jaeger) red(ctx context.Context, q search) (calls uint64, err error) {
	var ts time.Time
	var service string
	var value float64
	for _, expression := range []string{"quantile(0.95)(duration) / 1e6", "countIf(status_code = 'Error') / count(*)", "count(*) / 60"} {
		calls = 0
		rows, err := j.Query(ctx, "SELECT toStartOfInterval(start_time, toIntervalSecond(60)) AS ts, service_name, "+expression+
			" AS val FROM spans WHERE start_time >= ? AND start_time < ? AND service_name IN (?) AND kind IN (?) GROUP BY ts, service_name "+
			"ORDER BY ts", q.from, q.to, []string{q.service}, jaegerKinds)
		err = all(rows, err, func() error { calls += uint64(value*60 + 0.5); return nil }, &ts, &service, &value)
		if err != nil {
			return 0, err
		}
	}
	return calls, nil
}

// heatmap runs a statement of this comparison. Jaeger has none.
func (j jaeger) heatmap(ctx context.Context, q search) (spans uint64, err error) {
	rows, err := j.Query(ctx, "SELECT toStartOfInterval(start_time, toIntervalSecond(60)) AS ts, toUInt16(8 * log2(1 + duration)) AS bucket, "+
		"count() AS n, countIf(status_code = 'Error') AS errors FROM spans WHERE start_time >= ? AND start_time < ? AND service_name = ? "+
		"GROUP BY ts, bucket ORDER BY ts, bucket", q.from, q.to, q.service)
	return countCells(rows, err)
}
