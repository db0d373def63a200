package compare

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// otel writes the schema of the exporter of OpenTelemetry Collector Contrib as that exporter does:
// one insert for each batch, row by row, without a deduplication token. The statements that read
// are of this comparison.
type otel struct{ *server }

func newOtel(tb testing.TB, s *server) subject {
	s.create(tb, "otel.sql")
	return otel{s}
}

const otelInsert = "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName, SpanKind, ServiceName, " +
	"ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, Duration, StatusCode, StatusMessage, Events.Timestamp, Events.Name, " +
	"Events.Attributes, Links.TraceId, Links.SpanId, Links.TraceState, Links.Attributes)"

func (o otel) write(ctx context.Context, b batch) error {
	insert, err := o.PrepareBatch(ctx, otelInsert)
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // after Send it has no effect
	for _, rs := range b.otel.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		resource := texts(rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if err := insert.Append(otelRow(service.Str(), resource, ss.Scope(), span)...); err != nil {
					return err
				}
			}
		}
	}
	return insert.Send()
}

func otelRow(service string, resource textMap, scope pcommon.InstrumentationScope, span ptrace.Span) []any {
	var eventTimes []time.Time
	var eventNames, linkTraces, linkSpans, linkStates []string
	var eventAttributes, linkAttributes []textMap
	for _, e := range span.Events().All() {
		eventTimes, eventNames = append(eventTimes, e.Timestamp().AsTime()), append(eventNames, e.Name())
		eventAttributes = append(eventAttributes, texts(e.Attributes()))
	}
	for _, l := range span.Links().All() {
		linkTraces, linkSpans = append(linkTraces, l.TraceID().String()), append(linkSpans, l.SpanID().String())
		linkStates, linkAttributes = append(linkStates, l.TraceState().AsRaw()), append(linkAttributes, texts(l.Attributes()))
	}
	return []any{span.StartTimestamp().AsTime(), span.TraceID().String(), span.SpanID().String(), span.ParentSpanID().String(),
		span.TraceState().AsRaw(), span.Name(), span.Kind().String(), service, resource, scope.Name(), scope.Version(),
		texts(span.Attributes()), uint64(span.EndTimestamp() - span.StartTimestamp()), span.Status().Code().String(),
		span.Status().Message(), eventTimes, eventNames, eventAttributes, linkTraces, linkSpans, linkStates, linkAttributes}
}

// textMap is a map column in the order of the attributes.
type textMap struct{ keys, values []string }

func texts(m pcommon.Map) (t textMap) {
	for k, v := range m.All() {
		t.keys, t.values = append(t.keys, k), append(t.values, v.AsString())
	}
	return t
}

// Put is for reading, which this comparison does with Go's maps.
func (t textMap) Put(any, any) {}

// Iterator iterates over the pairs.
func (t textMap) Iterator() column.MapIterator { return &textIterator{textMap: t} }

type textIterator struct {
	textMap
	next int
}

// Next moves to the next pair.
func (i *textIterator) Next() bool { i.next++; return i.next <= len(i.keys) }

// Key returns the key of the current pair.
func (i *textIterator) Key() any { return i.keys[i.next-1] }

// Value returns the value of the current pair.
func (i *textIterator) Value() any { return i.values[i.next-1] }

// trace is the statement in the README of the exporter, with all columns.
func (o otel) trace(ctx context.Context, id otlpdata.TraceID) (spans int, err error) {
	rows, err := o.Query(ctx, "WITH ? AS trace_id, (SELECT min(Start) FROM otel_traces_trace_id_ts WHERE TraceId = trace_id) AS start, "+
		"(SELECT max(End) + 1 FROM otel_traces_trace_id_ts WHERE TraceId = trace_id) AS end "+
		"SELECT * FROM otel_traces WHERE TraceId = trace_id AND Timestamp >= start AND Timestamp <= end", id.String())
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

// newOf returns a pointer to a new value of a type.
func newOf(t reflect.Type) any { return reflect.New(t).Interface() }

func (o otel) newest(ctx context.Context, q search) ([]otlpdata.TraceID, error) {
	sql, args := "SELECT TraceId FROM otel_traces WHERE Timestamp >= ? AND Timestamp <= ?", []any{q.from, q.to}
	if q.service != "" {
		sql, args = sql+" AND ServiceName = ?", append(args, q.service)
	}
	if q.user != "" {
		sql, args = sql+" AND SpanAttributes['enduser.id'] = ?", append(args, q.user)
	}
	return ids(o.Query(ctx, sql+" ORDER BY Timestamp DESC LIMIT 1 BY TraceId LIMIT ?", append(args, q.limit)...))
}

func (o otel) summaries(context.Context, search) (int, error) { return 0, errNone }

func (o otel) red(ctx context.Context, q search) (calls uint64, err error) {
	rows, err := o.Query(ctx, "SELECT toStartOfInterval(Timestamp, toIntervalSecond(60)) AS ts, count() AS n, countIf(StatusCode = 'Error') "+
		"AS errors, quantile(0.95)(Duration) AS p95 FROM otel_traces WHERE Timestamp >= ? AND Timestamp < ? AND ServiceName = ? "+
		"GROUP BY ts ORDER BY ts", q.from, q.to, q.service)
	var ts time.Time
	var n, errors uint64
	var p95 float64
	err = all(rows, err, func() error { calls += n; return nil }, &ts, &n, &errors, &p95)
	return calls, err
}

func (o otel) heatmap(ctx context.Context, q search) (spans uint64, err error) {
	rows, err := o.Query(ctx, "SELECT toStartOfInterval(Timestamp, toIntervalSecond(60)) AS ts, toUInt16(8 * log2(1 + Duration)) AS bucket, "+
		"count() AS n, countIf(StatusCode = 'Error') AS errors FROM otel_traces WHERE Timestamp >= ? AND Timestamp < ? AND ServiceName = ? "+
		"GROUP BY ts, bucket ORDER BY ts, bucket", q.from, q.to, q.service)
	return countCells(rows, err)
}

// countCells reads the cells of a heatmap and returns the sum of their spans.
func countCells(rows driver.Rows, err error) (spans uint64, _ error) {
	var ts time.Time
	var bucket uint16
	var n, errors uint64
	err = all(rows, err, func() error { spans += n; return nil }, &ts, &bucket, &n, &errors)
	return spans, err
}
