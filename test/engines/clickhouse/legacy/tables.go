package legacy

import (
	"regexp"
	"strings"
)

// copies are the columns that the view for minutes reads.
const copies = "`calls_copy` UInt64 MATERIALIZED calls,\n    `duration_copy` UInt64 MATERIALIZED duration,\n    "

// storedAt replaces the time of arrival by the start of the span. 18.16 has no deduplication
// tokens: it recognizes a block that is inserted again by its content, which must not depend on the
// time.
const storedAt = "DEFAULT toString(intDiv(start, 1000000))"

// statement returns a statement as 18.16 understands it. It has no numbers of 128 bits, so that
// sums of durations wrap around.
func statement(sql string) string {
	sql = strings.Replace(sql, "optimize_read_in_order = 1, ", "", 1)
	switch {
	case strings.HasPrefix(sql, "SELECT "):
		sql = strings.ReplaceAll(sql, "toUInt128(", "toUInt64(")
	case strings.HasPrefix(sql, "CREATE TABLE "):
		sql = table(sql)
	case strings.HasPrefix(sql, "CREATE MATERIALIZED VIEW "):
		sql = view(sql)
	}
	return sql
}

// clauses are the parts of the definition of a table that 18.16 does not have: columns that are
// computed, indexes, retention, settings of later versions, and codecs.
var clauses = regexp.MustCompile("(?m),\n    (`[^`]*` .* ALIAS |INDEX ).*[^,\n]|\nTTL .*|(\nSETTINGS|,) [a-z]\\w* = \\d+| CODEC\\(.*\\)")

// aggregates are columns whose rows are merged. An engine that never merges rows does not need the
// type, and readers merge rows anyway.
var aggregates = regexp.MustCompile(`SimpleAggregateFunction\(\w+, (\w+)\)`)

// table returns the definition of a table that holds the same values. LowCardinality is
// experimental in 18.16, and fails between servers.
func table(sql string) string {
	sql = clauses.ReplaceAllStringFunc(sql, func(part string) string {
		if strings.HasPrefix(part, "\nSETTINGS index_granularity") {
			return part
		}
		return ""
	})
	sql = aggregates.ReplaceAllString(sql, "$1")
	sql = strings.NewReplacer("LowCardinality(String)", "String", " UInt128", " UInt64", "AggregatingMergeTree", "MergeTree",
		"DEFAULT toString(toUnixTimestamp64Milli(now64(3)))", storedAt,
		"toUnixTimestamp64Nano(now64(9))", "toUnixTimestamp(now()) * 1000000000").Replace(sql)
	if strings.Contains(sql, "spans_local` ON CLUSTER ") {
		sql = strings.Replace(sql, "`trace_id` ", copies+"`trace_id` ", 1)
	}
	return sql
}

// view returns the definition of a view. In 18.16 a column that has the name of a result is the
// result, even with a qualifier, so that the view of minutes reads copies of two columns.
func view(sql string) string {
	sql = strings.ReplaceAll(sql, "toUInt128", "toUInt64")
	if strings.Contains(sql, "`minutes_view`") {
		sql = strings.NewReplacer("s.calls", "s.calls_copy", "s.duration", "s.duration_copy").Replace(sql)
	}
	return sql
}
