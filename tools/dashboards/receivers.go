package main

func receivers() board {
	return board{"Receivers", []row{
		{"Spans", []chart{
			lines("Received", perSecond,
				rate("tracing_pipeline_spans_total", "component", `kind="receiver",outcome="received"`), "{{component}}"),
			lines("Refused", perSecond,
				rate("tracing_pipeline_spans_total", "component, reason", `kind="receiver",outcome="refused"`), "{{component}} {{reason}}"),
			lines("Received by format", perSecond,
				rate("tracing_collector_spans_received", "format, transport", ""), "{{format}} {{transport}}"),
			lines("Refused by service", perSecond, "topk(10, "+rate("tracing_collector_spans_rejected", "svc", "")+")", "{{svc}}"),
			lines("Spans in the latest request", short, `tracing_collector_batch_size{@}`, "{{instance}}"),
		}},
		{"Requests", []chart{
			lines("HTTP requests", perSecond,
				rate("tracing_server_http_request_duration_count", "component, status", ""), "{{component}} {{status}}"),
			lines("Duration of HTTP requests, p99", seconds,
				quantile("0.99", "tracing_server_http_request_duration", "component, listener"), "{{component}} {{listener}}"),
			lines("Refused before decoding", perSecond,
				rate("tracing_server_refused_requests_total", "component, reason", ""), "{{component}} {{reason}}"),
			lines("Open connections", short,
				`sum by (component, listener) (tracing_server_open_connections{@})`, "{{component}} {{listener}}"),
			lines("Refused connections", perSecond,
				rate("tracing_server_refused_connections_total", "component, listener", ""), "{{component}} {{listener}}"),
			lines("Panics", perSecond, rate("tracing_server_panics_total", "component", ""), "{{component}}"),
		}},
		{"Datagrams", []chart{
			lines("Datagrams", perSecond, rate("tracing_server_received_datagrams_total", "listener", ""), "{{listener}} received",
				rate("tracing_server_handled_datagrams_total", "listener", ""), "{{listener}} handled"),
			lines("Dropped", perSecond,
				rate("tracing_server_kernel_dropped_datagrams_total", "listener", ""), "{{listener}} by the system",
				rate("tracing_agent_thrift_udp_server_packets_dropped", "protocol", ""), "{{protocol}}, queue full"),
			lines("Not accepted", perSecond,
				rate("tracing_agent_thrift_udp_t_processor_handler_errors", "protocol, model", ""), "{{protocol}} {{model}}"),
		}},
	}}
}

func queues() board {
	return board{"Queues", []row{
		{"Sending queues", []chart{
			lines("Oldest batch", seconds, `tracing_queue_oldest_seconds{@}`, "{{instance}} {{component}}"),
			lines("Used part", ratio, `tracing_queue_usage_ratio{@}`, "{{instance}} {{component}}"),
			lines("Spans", short, `tracing_queue_spans{@}`, "{{instance}} {{component}}"),
			lines("Bytes", size,
				`tracing_queue_bytes{@}`, "{{instance}} {{component}}", `tracing_queue_limit_bytes{@}`, "{{instance}} {{component}} limit"),
			lines("Waiting batches", short, `tracing_queue_requests{@}`, "{{instance}} {{component}}"),
			lines("Retries", perSecond, rate("tracing_exporter_retries_total", "instance, component", ""), "{{instance}} {{component}}"),
		}},
		{"Next hops", []chart{
			lines("Spans in and sent", perSecond,
				rate("tracing_pipeline_spans_total", "component, outcome", `kind="exporter",outcome=~"in|sent"`), "{{component}} {{outcome}}"),
			lines("Dropped", perSecond,
				rate("tracing_pipeline_spans_total", "component, reason", `outcome="dropped",reason!="policy"`)+" or vector(0)", "{{component}} {{reason}}"),
			lines("Connected agents", short, `sum(tracing_agent_connection_status_collector_connected{@})`, "connected"),
			lines("Backends", short, `tracing_load_balancing_backends{@}`, "{{instance}} {{component}}"),
			lines("Spans by backend", perSecond,
				rate("tracing_load_balancing_spans_total", "backend, outcome", ""), "{{backend}} {{outcome}}"),
		}},
		{"Kafka", []chart{
			lines("Oldest record that is not stored", seconds,
				`max by (instance, topic) (tracing_kafka_consumer_lag_seconds{@})`, "{{instance}} {{topic}}"),
			lines("Records that are not stored", short,
				`sum by (instance, topic) (tracing_kafka_consumer_lag_records{@})`, "{{instance}} {{topic}}"),
			lines("Records", perSecond,
				rate("tracing_kafka_producer_records_total", "instance", ""), "{{instance}} written",
				rate("tracing_kafka_consumer_records_total", "instance", ""), "{{instance}} read",
				rate("tracing_kafka_consumer_repeated_records_total", "instance", ""), "{{instance}} read again"),
			lines("Partitions", short,
				`tracing_kafka_consumer_partitions{@}`, "{{instance}}", `tracing_kafka_consumer_paused{@}`, "{{instance}} paused"),
			lines("Failures", perSecond,
				rate("tracing_kafka_producer_failures_total", "instance, reason", ""), "{{instance}} written: {{reason}}",
				rate("tracing_kafka_consumer_commit_failures_total", "instance", ""), "{{instance}} commits",
				rate("tracing_kafka_consumer_dead_letters_total", "instance, reason", ""), "{{instance}} dead letters: {{reason}}",
				rate("tracing_kafka_consumer_expired_records_total", "instance", ""), "{{instance}} expired"),
		}},
		{"Held spans", []chart{
			lines("Held spans", short, `tracing_held_spans{@}`, "{{instance}} {{component}}"),
			lines("Memory of held spans", size,
				`tracing_held_bytes{@}`, "{{instance}}", `tracing_held_limit_bytes{@}`, "{{instance}} limit"),
		}},
	}}
}
