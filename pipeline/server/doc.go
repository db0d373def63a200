// Package server provides listeners for components, including custom receivers: [HTTP] and [GRPC].
// The sub-package udp serves datagrams.
//
// Components embed the config of a listener in their own. Every listener limits connections, slow
// clients, and sizes before and after decompression; reserves memory in the budget of the process
// before it reads a request; and has TLS, authentication, tenancy, metrics, recovery from panics,
// and draining on stop. gRPC servers also serve grpc.health.v1 and reflection.
//
//	socket ─▶ connection limit ─▶ admission (pipeline.Budget) ─▶ decompression ─▶ handler
//
// The budget of a request is released when its handler returns. A handler that waits for Consume
// before it responds therefore holds the bytes while they are in flight.
//
// Metrics carry the label listener, which is the path of the listener's block below its component,
// such as `protocols.grpc`:
//
//	tracing_server_open_connections          gauge
//	tracing_server_refused_connections_total counter: closed because of max_connections
//	tracing_server_refused_requests_total    counter, by reason: see the Reason constants
//	tracing_server_password_checks_total     counter, by result; with passwords only
//	tracing_server_password_checks_waiting   gauge: comparisons of passwords that run or wait
//	tracing_server_password_clients          gauge: addresses whose wrong passwords are counted
//	tracing_server_stalled_connections_total counter, gRPC only: clients that stopped reading
//	tracing_server_panics_total              counter: handlers that panicked
//	tracing_server_http_request_duration     histogram, HTTP only, by method and status
package server
