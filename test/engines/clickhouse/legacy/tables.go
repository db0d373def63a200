package legacy

import (
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
)

// tables returns the dialect of the tables.
func tables() *schema.Dialect {
	return &schema.Dialect{Type: typeOf, Engine: engine, Select: view, Blind: true}
}

// typeOf returns the type of a column that holds the same values. LowCardinality is experimental in
// 18.16, and fails between servers.
func typeOf(t string) string {
	t = strings.ReplaceAll(t, "LowCardinality(String)", "String")
	if arguments, ok := strings.CutPrefix(t, "SimpleAggregateFunction("); ok {
		_, t, _ = strings.Cut(strings.TrimSuffix(arguments, ")"), ", ")
	}
	if t == "UInt128" {
		return "UInt64"
	}
	return t
}

// engine returns an engine that never merges rows instead of one that needs the type
// SimpleAggregateFunction. Readers merge rows anyway.
func engine(e string) string { return strings.Replace(e, "AggregatingMergeTree", "MergeTree", 1) }

// view returns the query of a view. In 18.16 a column that has the name of a result is the result,
// even with a qualifier, so that the view of minutes reads copies of two columns.
func view(table, query string) string {
	query = strings.ReplaceAll(query, "toUInt128", "toUInt64")
	if table == "minutes" {
		query = strings.NewReplacer("s.calls", "s.calls_copy", "s.duration", "s.duration_copy").Replace(query)
	}
	return query
}

// copies are the columns that the view of minutes reads.
const copies = "`calls_copy` UInt64 MATERIALIZED calls,\n    `duration_copy` UInt64 MATERIALIZED duration,\n    "

// storedAt replaces the time of arrival by the start of the span. 18.16 has no deduplication
// tokens: it recognizes a block that is inserted again by its content, which must not depend on the
// time.
const storedAt = "DEFAULT toString(intDiv(start, 1000000))"

// statement returns a statement as 18.16 understands it. It has no numbers of 128 bits, so that
// sums of durations wrap around.
func statement(sql string) string {
	sql = strings.Replace(sql, "optimize_read_in_order = 1, ", "", 1)
	if strings.HasPrefix(sql, "SELECT ") {
		sql = strings.ReplaceAll(sql, "toUInt128(", "toUInt64(")
	}
	if strings.HasPrefix(sql, "CREATE TABLE ") {
		sql = strings.Replace(sql, "DEFAULT toString(toUnixTimestamp64Milli(now64(3)))", storedAt, 1)
		sql = strings.ReplaceAll(sql, "toUnixTimestamp64Nano(now64(9))", "toUnixTimestamp(now()) * 1000000000")
		if strings.Contains(sql, "spans_local` ON CLUSTER ") {
			sql = strings.Replace(sql, "`trace_id` ", copies+"`trace_id` ", 1)
		}
	}
	return sql
}
