package schema

import (
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Tables of this file are filled by views of the table spans. Their engines merge rows in the
// background, so readers must always group and add up. A view qualifies each column with the alias
// of its source, because a column of the result may have the same name.

// bounds has the time range and the size of each trace.
func bounds() Table {
	return Table{
		Name: "bounds",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "trace_id", Type: "FixedString(16)"},
			{Name: "day", Type: "Date"},
			{Name: "odd", Type: "UInt8"},
			{Name: "first", Type: "SimpleAggregateFunction(min, UInt64)"}, // start of the first span
			{Name: "last", Type: "SimpleAggregateFunction(max, UInt64)"},  // start of the last span
			{Name: "spans", Type: "SimpleAggregateFunction(sum, UInt64)"},
			{Name: "errors", Type: "SimpleAggregateFunction(sum, UInt64)"},
			{Name: "stored", Type: "SimpleAggregateFunction(max, UInt64)"}, // arrival, in seconds
		},
		Engine:      "AggregatingMergeTree",
		OrderBy:     "(tenant, trace_id, day, odd)",
		Partition:   "(day, odd)",
		Granularity: 1024,
		Expires:     WithSpans,
		ShardBy:     shardByTrace,
		Source:      "spans",
		Select: `SELECT s.tenant AS tenant, s.trace_id AS trace_id, s.day AS day, s.odd AS odd,
    min(s.start) AS first, max(s.start) AS last, count() AS spans, countIf(s.status = 'error') AS errors,
    toUInt64(max(toUnixTimestamp(now()))) AS stored
FROM {source} AS s
GROUP BY s.tenant, s.trace_id, s.day, s.odd`,
	}
}

// operations has the names of spans by service and kind, for each day.
func operations() Table {
	return Table{
		Name: "operations",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "service", Type: "LowCardinality(String)"},
			{Name: "name", Type: "LowCardinality(String)"},
			{Name: "kind", Type: "LowCardinality(String)"},
			{Name: "day", Type: "Date"},
			{Name: "odd", Type: "UInt8"},
		},
		Engine:    "ReplacingMergeTree",
		OrderBy:   "(tenant, service, name, kind, day, odd)",
		Partition: "day",
		Expires:   WithSpans,
		ShardBy:   shardByTenant,
		Source:    "spans",
		Select: `SELECT s.tenant AS tenant, s.service AS service, s.name AS name, s.kind AS kind, s.day AS day, s.odd AS odd
FROM {source} AS s
GROUP BY s.tenant, s.service, s.name, s.kind, s.day, s.odd`,
	}
}

// shardByTenant is the sharding key of tables without a trace id into which programs insert.
const shardByTenant = "cityHash64(tenant)"

// attributes says when services had attributes: the first and the last span of each hour. Keys have
// prefixes. Values are kept if they are texts or integers of [storequery.IdentityKeys] of
// resources; others are "".
func attributes() Table {
	pairs := func(keys, values string) string {
		return "arrayMap((k, v) -> (toString(k), if(k IN (" + where.Texts(rows.ResourceKeys(storequery.IdentityKeys())) +
			"), toString(v), '')), s.`" + keys + "`, s.`" + values + "`)"
	}
	return Table{
		Name: "attributes",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "service", Type: "LowCardinality(String)"},
			{Name: "key", Type: "LowCardinality(String)"},
			{Name: "value", Type: "String"},
			{Name: "hour", Type: "UInt32"}, // since the Unix epoch
			{Name: "day", Type: "Date"},
			{Name: "odd", Type: "UInt8"},
			{Name: "spans", Type: "SimpleAggregateFunction(sum, UInt64)"},
			{Name: "first", Type: "SimpleAggregateFunction(min, UInt64)"}, // start of the first span
			{Name: "last", Type: "SimpleAggregateFunction(max, UInt64)"},  // start of the last span
		},
		Engine:    "AggregatingMergeTree",
		OrderBy:   "(tenant, service, key, value, hour, day, odd)",
		Partition: "(day, odd)",
		Expires:   WithSpans,
		ShardBy:   shardByTenant,
		Source:    "spans",
		// Servers of the oldest version do not run a view with a subquery and ARRAY JOIN.
		Select: `SELECT s.tenant AS tenant, s.service AS service, tupleElement(pair, 1) AS key, tupleElement(pair, 2) AS value,
    toUInt32(intDiv(s.start, 3600000000000)) AS hour, s.day AS day, s.odd AS odd,
    count() AS spans, min(s.start) AS first, max(s.start) AS last
FROM {source} AS s
ARRAY JOIN arrayConcat(
    ` + pairs("origin.key", "origin.value") + `,
    ` + pairs("int.key", "int.value") + `,
    arrayMap(k -> (toString(k), ''), arrayConcat(s.` + "`str.key`, s.`text.key`, s.`float.key`, s.`other.key`" + `))) AS pair
GROUP BY s.tenant, s.service, key, value, hour, s.day, s.odd`,
	}
}

// minutes counts spans and their durations by operation and minute. Buckets are as in
// tracestore.BucketOf; their counts are added up by bucket when rows are merged, which the engine
// does for columns whose prefix ends with Map.
func minutes() Table {
	return Table{
		Name: "minutes",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "service", Type: "LowCardinality(String)"},
			{Name: "name", Type: "LowCardinality(String)"},
			{Name: "kind", Type: "LowCardinality(String)"},
			{Name: "failed", Type: "UInt8"},
			{Name: "minute", Type: "UInt32", Codec: "Delta(4), ZSTD(1)"}, // since the Unix epoch
			{Name: "day", Type: "Date"},
			{Name: "odd", Type: "UInt8"},
			{Name: "spans", Type: "UInt64", Codec: "T64, ZSTD(1)"},
			{Name: "calls", Type: "UInt64", Codec: "T64, ZSTD(1)"},
			{Name: "duration", Type: "UInt128"}, // sum over calls, each at most 2^64-1 times its span
			{Name: "bucketsMap.bucket", Type: "Array(UInt16)"},
			{Name: "bucketsMap.spans", Type: "Array(UInt64)", Codec: "T64, ZSTD(1)"},
			{Name: "bucketsMap.calls", Type: "Array(UInt64)", Codec: "T64, ZSTD(1)"},
		},
		Engine:      "SummingMergeTree",
		OrderBy:     "(tenant, service, name, kind, failed, minute, day, odd)",
		Partition:   "(day, odd)",
		Granularity: 512, // a query reads few rows with long histograms
		Expires:     WithStatistics,
		ShardBy:     shardByTenant,
		Source:      "spans",
		Select: `SELECT s.tenant AS tenant, s.service AS service, s.name AS name, s.kind AS kind, s.status = 'error' AS failed,
    toUInt32(intDiv(s.start, 60000000000)) AS minute, s.day AS day, s.odd AS odd,
    count() AS spans, sum(s.calls) AS calls,
    sum(least(toUInt128(s.duration) * s.calls, toUInt128(18446744073709551615))) AS duration,
    tupleElement(sumMap([` + where.Bucket("s.duration") + ` AS span_bucket], [toUInt64(1)], [s.calls]), 1) AS ` + "`bucketsMap.bucket`" + `,
    tupleElement(sumMap([span_bucket], [toUInt64(1)], [s.calls]), 2) AS ` + "`bucketsMap.spans`" + `,
    tupleElement(sumMap([span_bucket], [toUInt64(1)], [s.calls]), 3) AS ` + "`bucketsMap.calls`" + `
FROM {source} AS s
GROUP BY s.tenant, s.service, s.name, s.kind, failed, minute, s.day, s.odd`,
	}
}

// hours counts the spans that start in each hour, which shows whether cached results that depend on
// the hour are still valid.
func hours() Table {
	return Table{
		Name: "hours",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "hour", Type: "UInt32"}, // since the Unix epoch
			{Name: "day", Type: "Date"},
			{Name: "odd", Type: "UInt8"},
			{Name: "spans", Type: "SimpleAggregateFunction(sum, UInt64)"},
			{Name: "stored", Type: "SimpleAggregateFunction(max, UInt64)"}, // arrival, in seconds
		},
		Engine:    "AggregatingMergeTree",
		OrderBy:   "(tenant, hour, day, odd)",
		Partition: "(day, odd)",
		Expires:   WithStatistics,
		ShardBy:   shardByTenant,
		Source:    "spans",
		Select: `SELECT s.tenant AS tenant, toUInt32(intDiv(s.start, 3600000000000)) AS hour, s.day AS day, s.odd AS odd,
    count() AS spans, toUInt64(max(toUnixTimestamp(now()))) AS stored
FROM {source} AS s
GROUP BY s.tenant, hour, s.day, s.odd`,
	}
}
