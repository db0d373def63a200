package schema

// Tables of this file are written by programs.

// today is the clause of the column day of rows that expire by their arrival.
const today = "DEFAULT toDate(now(), 'UTC')"

// edges caches the calls between services, one row per hour. The most recently counted row is
// valid.
func edges() Table {
	return Table{
		Name: "edges",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "hour", Type: "UInt32"}, // since the Unix epoch
			{Name: "day", Type: "Date", Value: today},
			{Name: "counted", Type: "UInt64", Value: nowNano},
			{Name: "state", Type: "UInt64"},  // fingerprint of the spans that were counted
			{Name: "omitted", Type: "UInt8"}, // whether calls to some peers are missing
			{Name: "calls.parent", Type: "Array(LowCardinality(String))"},
			{Name: "calls.child", Type: "Array(LowCardinality(String))"},
			{Name: "calls.flags", Type: "Array(UInt8)"},
			{Name: "calls.connection", Type: "Array(UInt8)"}, // tracestore.Connection
			{Name: "calls.calls", Type: "Array(UInt64)"},
			{Name: "calls.errors", Type: "Array(UInt64)"},
			{Name: "calls.duration", Type: "Array(UInt64)"}, // sum
			{Name: "calls.first", Type: "Array(UInt16)"},    // first bucket of counts
			{Name: "calls.counts", Type: "Array(Array(UInt64))"},
		},
		Engine:    "ReplacingMergeTree(counted)",
		OrderBy:   "(tenant, hour)",
		Partition: "day",
		Expires:   WithStatistics,
		ShardBy:   shardByTenant,
	}
}

// nowNano is the clause of a column with the time of arrival in nanoseconds since the Unix epoch.
const nowNano = "DEFAULT toUInt64(toUnixTimestamp64Nano(now64(9)))"

// deletions is the log of deletions.
func deletions() Table {
	return Table{
		Name: "deletions",
		Columns: []Column{
			{Name: "tenant", Type: "LowCardinality(String)"},
			{Name: "epoch", Type: "UInt64"}, // see exporter.deletionEpoch
			{Name: "at", Type: "UInt64"},    // nanoseconds since the Unix epoch
			{Name: "day", Type: "Date"},     // of at
			{Name: "what", Type: "String"},  // for users
		},
		Engine:    "MergeTree",
		OrderBy:   "(tenant, epoch)",
		Partition: "day",
		Expires:   WithStatistics,
		ShardBy:   shardByTenant,
	}
}

// samplingThroughput has the trace counts of collectors. Times are in nanoseconds since the Unix
// epoch.
func samplingThroughput() Table {
	return Table{
		Name: "sampling_throughput",
		Columns: []Column{
			{Name: "added", Type: "UInt64", Value: nowNano},
			{Name: "day", Type: "Date", Value: today},
			{Name: "until", Type: "Int64"}, // end of the interval
			{Name: "since", Type: "Int64"}, // intervals that ended at or before this time are no longer needed
			{Name: "body", Type: "String"}, // sampling.Throughput as JSON
		},
		Engine:    "MergeTree",
		OrderBy:   "added",
		Partition: "day",
		Expires:   WithSpans,
		ShardBy:   "1",
	}
}

// samplingCalculations has the latest calculations of sampling probabilities.
func samplingCalculations() Table {
	return Table{
		Name: "sampling_calculations",
		Columns: []Column{
			{Name: "added", Type: "UInt64", Value: nowNano},
			{Name: "day", Type: "Date", Value: today},
			{Name: "body", Type: "String"}, // sampling.Calculation as JSON
		},
		Engine:    "MergeTree",
		OrderBy:   "added",
		Partition: "day",
		Expires:   WithSpans,
		ShardBy:   "1",
	}
}

// samplingLeases has the leases of resources. The row with the highest term is valid; older ones
// are dropped when parts are merged.
func samplingLeases() Table {
	return Table{
		Name: "sampling_leases",
		Columns: []Column{
			{Name: "resource", Type: "String"},
			{Name: "term", Type: "UInt64"},
			{Name: "owner", Type: "String"},
			{Name: "until", Type: "Int64"}, // nanoseconds since the Unix epoch; 0: the lease was released
		},
		Engine:  "ReplacingMergeTree(term)",
		OrderBy: "resource",
		ShardBy: "1",
	}
}

// meta describes the schema. A row is never changed; the row with the highest version is valid.
func meta() Table {
	return Table{
		Name: "meta",
		Columns: []Column{
			{Name: "version", Type: "UInt32"}, // of the schema
			{Name: "oldest", Type: "UInt32"},  // oldest version whose programs can use the schema
			{Name: "at", Type: "DateTime", Value: "DEFAULT now()"},
		},
		Engine:  "MergeTree",
		OrderBy: "version",
		ShardBy: "1",
	}
}
