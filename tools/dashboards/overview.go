package main

func overview() board {
	return board{"Overview", []row{
		{"Health", []chart{
			number("Processes", short, `count(tracing_build_info{@})`),
			number("Not ready", short, `count(tracing_ready{@} == 0) or vector(0)`),
			number("Degraded components", short, `sum(tracing_component_degraded{@})`),
			number("Firing alerts", short, `count(ALERTS{alertname=~"Tracing.+",alertstate="firing"}) or vector(0)`),
			number("Unaccounted spans", short, `sum(tracing_pipeline_unaccounted_spans{@})`),
			number("Lost spans, 24 h", short,
				`sum(increase(tracing_pipeline_spans_total{@,outcome="dropped",reason!="policy"}[24h])) or vector(0)`),
		}},
		{"Spans", []chart{
			lines("Receivers", perSecond, rate("tracing_pipeline_spans_total", "outcome", `kind="receiver"`), "{{outcome}}"),
			lines("Exporters", perSecond,
				rate("tracing_pipeline_spans_total", "component, outcome", `kind="exporter"`), "{{component}} {{outcome}}"),
			lines("Busiest services", perSecond, "topk(10, "+rate("tracing_collector_spans_received", "svc", "")+")", "{{svc}}"),
			lines("Time to store a batch", seconds, quantile("0.5", "tracing_collector_save_latency", "job"), "{{job}} p50",
				quantile("0.99", "tracing_collector_save_latency", "job"), "{{job}} p99"),
			lines("Queries", perSecond, rate("tracing_query_requests_total", "result", ""), "{{result}}"),
			lines("Oldest batch in a queue", seconds, `tracing_queue_oldest_seconds{@}`, "{{instance}} {{component}}"),
		}},
		{"Canary", []chart{
			lines("Readings", perSecond, `sum by (how, result) (rate(tracing_canary_reads[RATE]))`, "{{how}} {{result}}"),
			lines("Writes", perSecond, `sum(rate(tracing_canary_traces_written[RATE]))`, "acknowledged",
				`sum(rate(tracing_canary_write_failures[RATE]))`, "failed"),
			lines("Oldest missing trace", seconds, `max by (instance) (tracing_canary_oldest_missing_seconds)`, "{{instance}}"),
		}},
		{"Processes", []chart{
			lines("CPU", short, `rate(process_cpu_seconds_total{@}[RATE])`, "{{instance}}"),
			lines("Memory", size, `process_resident_memory_bytes{@}`, "{{instance}}"),
			lines("Requests in memory", size,
				`tracing_inflight_bytes{@}`, "{{instance}}", `tracing_inflight_limit_bytes{@}`, "{{instance}} limit"),
		}},
	}}
}
