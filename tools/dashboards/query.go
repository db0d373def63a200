package main

func query() board {
	return board{"Query", []row{
		{"Queries", []chart{
			lines("Queries", perSecond, rate("tracing_query_requests_total", "operation", ""), "{{operation}}"),
			lines("Failed queries", perSecond, rate("tracing_query_requests_total", "operation", `result="err"`), "{{operation}}"),
			lines("Duration, p50", seconds, quantile("0.5", "tracing_query_latency", "operation"), "{{operation}}"),
			lines("Duration, p99", seconds, quantile("0.99", "tracing_query_latency", "operation"), "{{operation}}"),
			lines("Results, p90", short, quantile("0.9", "tracing_query_responses", "operation"), "{{operation}}"),
			lines("Cut lists of names", perSecond, rate("tracing_query_cut_lists_total", "operation", ""), "{{operation}}"),
		}},
		{"Resources", []chart{
			lines("Memory of queries", size,
				`tracing_queries_bytes{@}`, "{{instance}}", `tracing_queries_limit_bytes{@}`, "{{instance}} limit"),
			lines("HTTP requests", perSecond,
				rate("tracing_server_http_request_duration_count", "status", `component="query"`), "{{status}}"),
			lines("Open connections", short,
				`sum by (instance, component) (tracing_server_open_connections{@,component=~"query|remote_storage"})`, "{{instance}} {{component}}"),
		}},
	}}
}

func sampling() board {
	return board{"Sampling", []row{
		{"Strategies", []chart{
			lines("Requests for strategies", perSecond,
				rate("tracing_sampling_requests_total", "transport, result", ""), "{{transport}} {{result}}"),
			lines("Leader of adaptive sampling", short, `tracing_sampling_leader{@}`, "{{instance}}"),
			lines("Operations with a probability", short, `tracing_sampling_operations{@}`, "{{instance}}"),
			lines("Calculations", perSecond, `rate(tracing_sampling_calculations_total{@}[RATE])`, "{{instance}}"),
			lines("Root spans that were not counted", perSecond,
				`rate(tracing_sampling_unobserved_roots_total{@}[RATE])`, "{{instance}}"),
		}},
		{"Processors", []chart{
			lines("Dropped on purpose", perSecond,
				rate("tracing_pipeline_spans_total", "component", `outcome="dropped",reason="policy"`), "{{component}}"),
			lines("probabilistic_sampler", perSecond, rate("tracing_probabilistic_sampler_spans_total", "decision", ""), "{{decision}}"),
			lines("Held spans", short, `tracing_held_spans{@}`, "{{instance}} {{component}}"),
		}},
	}}
}
