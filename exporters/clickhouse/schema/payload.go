package schema

// payload is the table that holds whole spans, sorted by trace.
func payload() Table {
	return Table{
		Name: "payload",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "trace_id", Type: "FixedString(16)"},
			{Name: "start", Type: "UInt64", Codec: "Delta(8), ZSTD(1)"},
			// Ids of the span and its parent: the compressor finds the parent's id in the row of
			// the parent.
			{Name: "ids", Type: "FixedString(16)"},
			{Name: "duration", Type: "UInt64", Codec: "T64, ZSTD(1)"},
			{Name: "service", Type: "LowCardinality(String)"},
			{Name: "name", Type: "LowCardinality(String)"},
			{Name: "failed", Type: "UInt8"},                // whether the status is an error
			{Name: "call", Type: "LowCardinality(String)"}, // kind, connection and peer: see rows.Call
			{Name: "day", Type: "Date"},
			{Name: "odd", Type: "UInt8"},
			// Arrival, in milliseconds since the Unix epoch: 13 decimal digits.
			{Name: "stored", Type: "LowCardinality(String)", Value: "DEFAULT toString(toUnixTimestamp64Milli(now64(3)))"},
			{Name: "batch", Type: "LowCardinality(String)"},                    // from the deduplication token of the insert
			{Name: "origin", Type: "LowCardinality(String)", Codec: "ZSTD(3)"}, // resource and scope
			// The parts of a span that are not in other columns: see package rows.
			{Name: "shape", Type: "LowCardinality(String)", Codec: "ZSTD(3)"},
			{Name: "texts", Type: "Array(LowCardinality(String))", Codec: "ZSTD(3)"},
			{Name: "rest", Type: "String", Codec: "ZSTD(3)"},
		},
		Indexes: []Index{
			// A trace is in few parts. The sorting key alone selects a granule of each.
			{Name: "by_trace_id", Expr: "trace_id", Type: "bloom_filter(0.01)", Granularity: 1},
			{Name: "by_stored", Expr: "stored", Type: "minmax", Granularity: 1},
		},
		Engine:      "MergeTree",
		OrderBy:     "(tenant, trace_id, start)",
		Partition:   "(day, odd)",
		Granularity: 1024,
		Expires:     WithSpans,
		ShardBy:     shardByTrace,
	}
}
