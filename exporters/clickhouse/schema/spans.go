package schema

import (
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
)

// spans is the table that searches and statistics read.
//
// A row belongs to the day in which its span starts, and odd is 0. If the span starts before the
// retention or more than a day ahead, day is the day of arrival and odd is 1, so that no span
// expires on arrival.
//
// Attributes of all places are in pairs of arrays; see [rows.Pair]. A key has a prefix for its
// place: span., resource., scope., event. or link.
func spans() Table {
	return Table{
		Name: "spans",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "service", Type: "LowCardinality(String)"},
			{Name: "start", Type: "UInt64", Codec: "Delta(8), ZSTD(1)"}, // nanoseconds since the Unix epoch
			{Name: "day", Type: "Date"},
			{Name: "odd", Type: "UInt8"},
			{Name: "name", Type: "LowCardinality(String)"},
			{Name: "kind", Type: "LowCardinality(String)"},   // otlpdata.Span.KindName
			{Name: "status", Type: "LowCardinality(String)"}, // unset, ok, error
			{Name: "status_message", Type: "String"},
			{Name: "error_group", Type: "LowCardinality(String)"},     // tracestore.ErrorGroup, or "" if the span has none
			{Name: "duration", Type: "UInt64", Codec: "T64, ZSTD(1)"}, // otlpdata.Span.Duration
			{Name: "calls", Type: "UInt64", Codec: "T64, ZSTD(1)"},    // otlpdata.Span.AdjustedCount
			{Name: "trace_id", Type: "FixedString(16)"},
			{Name: "root", Type: "UInt8"}, // whether the span has no parent
			{Name: "scope_name", Type: "LowCardinality(String)"},
			{Name: "scope_version", Type: "LowCardinality(String)"},
			{Name: "event_names", Type: "Array(LowCardinality(String))"},
			{Name: "origin.key", Type: "Array(LowCardinality(String))"},
			{Name: "origin.value", Type: "Array(LowCardinality(String))"},
			{Name: "str.key", Type: "Array(LowCardinality(String))"},
			{Name: "str.value", Type: "Array(LowCardinality(String))"},
			{Name: "text.key", Type: "Array(LowCardinality(String))"},
			{Name: "text.value", Type: "Array(String)"},
			{Name: "int.key", Type: "Array(LowCardinality(String))"},
			{Name: "int.value", Type: "Array(Int64)"},
			{Name: "float.key", Type: "Array(LowCardinality(String))"},
			{Name: "float.value", Type: "Array(Float64)"},
			{Name: "other.key", Type: "Array(LowCardinality(String))"},
			{Name: "other.value", Type: "Array(LowCardinality(String))"},
			// Whether a key of the span or its resource occurs twice.
			{Name: "repeated", Type: "UInt8", Value: "DEFAULT " + where.Repeats(where.OfSpanOrResource("x"))},
			{Name: "strings", Type: "Map(String, String)", Value: "ALIAS mapFromArrays(" +
				"arrayConcat(`origin.key`, `str.key`, `text.key`), arrayConcat(`origin.value`, `str.value`, `text.value`))"},
			{Name: "ints", Type: "Map(String, Int64)", Value: "ALIAS mapFromArrays(`int.key`, `int.value`)"},
			{Name: "floats", Type: "Map(String, Float64)", Value: "ALIAS mapFromArrays(`float.key`, `float.value`)"},
			{Name: "others", Type: "Map(String, String)", Value: "ALIAS mapFromArrays(`other.key`, `other.value`)"},
		},
		Indexes: []Index{
			{Name: "by_trace_id", Expr: "trace_id", Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_duration", Expr: "duration", Type: "minmax", Granularity: 1},
			{Name: "by_name", Expr: "name", Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_status", Expr: "status", Type: "set(4)", Granularity: 1},
			{Name: "by_origin", Expr: where.Searched(rows.PairOrigin), Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_string", Expr: where.Searched(rows.PairStr), Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_text", Expr: where.Searched(rows.PairText), Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_int", Expr: where.Searched(rows.PairInt), Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_float", Expr: where.Searched(rows.PairFloat), Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_other", Expr: where.Searched(rows.PairOther), Type: "bloom_filter(0.01)", Granularity: 1},
		},
		Engine:    "MergeTree",
		OrderBy:   "(tenant, service, start)",
		Partition: "(day, odd)",
		// Searches for rare values read one granule for each span that they find.
		Granularity: 2048,
		Expires:     WithSpans,
		ShardBy:     shardByTrace,
	}
}

// shardByTrace is the sharding key of tables with a trace id: a trace is on one shard.
const shardByTrace = "cityHash64(trace_id)"
