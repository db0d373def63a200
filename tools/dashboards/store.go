package main

func store() board {
	return board{"Store", []row{
		{"Retention", []chart{
			lines("Age of the oldest span", seconds,
				`tracing_disk_oldest_span_seconds{@}`, "{{instance}}", `tracing_disk_retention_seconds{@}`, "{{instance}} retention.time"),
			lines("Size", size,
				`tracing_disk_segment_bytes{@} + tracing_disk_log_bytes{@}`, "{{instance}}", `tracing_disk_retention_bytes{@}`, "{{instance}} retention.size"),
			lines("Free space", size,
				`tracing_disk_free_bytes{@}`, "{{instance}}", `tracing_disk_min_free_bytes{@}`, "{{instance}} min_free"),
			lines("Deleted spans", perSecond, rate("tracing_disk_expired_spans_total", "reason", ""), "{{reason}}"),
			lines("Stored spans", short, `tracing_disk_segment_spans{@} + tracing_disk_memtable_spans{@}`, "{{instance}}"),
		}},
		{"Writes", []chart{
			lines("Spans passed to the store", perSecond, rate("tracing_collector_spans_saved_by_svc", "result", ""), "{{result}}"),
			lines("Time to store a batch", seconds, quantile("0.99", "tracing_collector_save_latency", "instance"), "{{instance}} p99"),
			lines("Requests that waited for a flush", perSecond, `rate(tracing_disk_waits_total{@}[RATE])`, "{{instance}}"),
			lines("Written bytes", "Bps",
				`rate(tracing_disk_flushed_bytes_total{@}[RATE])`, "{{instance}} flushed", `rate(tracing_disk_merged_bytes_total{@}[RATE])`, "{{instance}} merged"),
			lines("Segments", short,
				`tracing_disk_level_segments{@}`, "{{instance}} {{level}}", `tracing_disk_merge_backlog_segments{@}`, "{{instance}} to merge"),
			lines("Memory of memtables", size, `tracing_disk_memtable_bytes{@}`, "{{instance}}"),
		}},
		{"Problems", []chart{
			lines("Failed writes", perSecond,
				`rate(tracing_disk_flush_failures_total{@}[RATE])`, "{{instance}} flush", `rate(tracing_disk_log_failures_total{@}[RATE])`, "{{instance}} log",
				`rate(tracing_disk_merge_failures_total{@}[RATE])`, "{{instance}} merge"),
			lines("Damage", short,
				`tracing_disk_damaged_reads_total{@}`, "{{instance}} damaged reads", `tracing_disk_quarantined_segments_total{@}`, "{{instance}} quarantined segments"),
			lines("Lost at start", short,
				`tracing_disk_lost_spans_total{@}`, "{{instance}} spans", `tracing_disk_lost_deletions_total{@}`, "{{instance}} deletions"),
		}},
		{"ClickHouse", []chart{
			lines("Inserted rows", perSecond, rate("tracing_clickhouse_inserted_rows_total", "table", ""), "{{table}}"),
			lines("Duration of inserts, p99", seconds, quantile("0.99", "tracing_clickhouse_insert_seconds", "table"), "{{table}}"),
			lines("Failed inserts", perSecond,
				rate("tracing_clickhouse_insert_failures_total", "table, reason", ""), "{{table}} {{reason}}"),
		}},
	}}
}
