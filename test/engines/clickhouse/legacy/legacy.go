// Package legacy is the dialect of ClickHouse 18.16, which tests use to run on a cluster. It
// leaves out what that version does not have: codecs, secondary indexes, retention, maps, and the
// settings of later versions.
package legacy

import (
	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
)

// Dialect returns the dialect.
func Dialect() clickhouse.Dialect {
	return clickhouse.Dialect{Statement: statement, Setting: setting, Blind: true}
}

// Components returns a list of components in which the clickhouse exporter uses the dialect.
func Components(all []pipeline.Factory) []pipeline.Factory {
	changed := make([]pipeline.Factory, len(all))
	for i, f := range all {
		if f.Kind() == pipeline.KindExporter && f.Type() == "clickhouse" {
			f = clickhouse.FactoryFor(Dialect()).Flags(f.FlagList()...).Commands(f.CommandList()...)
		}
		changed[i] = f
	}
	return changed
}

// known are the settings of a statement that 18.16 has, of those that the exporter uses.
var known = map[string]bool{
	"max_execution_time": true, "max_memory_usage": true, "max_rows_to_read": true, "max_result_rows": true, "max_threads": true,
	"max_bytes_to_read": true, "max_block_size": true, "max_insert_block_size": true, "max_query_size": true,
	"read_overflow_mode": true, "result_overflow_mode": true, "timeout_overflow_mode": true,
	"skip_unavailable_shards": true, "insert_distributed_sync": true, "insert_quorum": true, "insert_quorum_timeout": true,
	"insert_deduplicate": true, "distributed_product_mode": true, "log_queries": true,
}

// setting returns the value of a setting as 18.16 understands it: the protocol of that version has
// only integers.
func setting(name string, value any) (any, bool) {
	if !known[name] {
		return nil, false
	}
	switch v := value.(type) {
	case int:
		return v, true
	case bool:
		return v, true
	case int64:
		return int(v), true
	case uint64:
		return int(v), true
	default:
		return nil, false
	}
}
