// Package server opens listeners: one way for all components, custom receivers included, to serve HTTP, gRPC, and protocols of their own
// over TCP and UDP.
//
// An [HTTP], [GRPC] or [TCP] is made of a config that components embed in their own, and brings what every listener needs: a cap on
// connections, timeouts against slow clients, size limits before and after decompression, admission of bytes to the process's budget
// before they are read into memory, TLS, recovery from panics, draining on stop, and metrics. HTTP and gRPC also have authentication and
// tenants, and gRPC servers answer grpc.health.v1 and reflection.
//
//	socket ─▶ connection cap ─▶ admission (pipeline.Budget) ─▶ size limits, decompression ─▶ handler
//
// What a request takes of the budget is given back when its handler has returned, so a handler that consumes before it answers holds
// the bytes for as long as they are in flight.
//
// A [UDP] has nobody to answer: what it cannot take it counts. Datagrams wait in a queue of its own, bounded in bytes, for workers that take
// all that wait at once.
//
// Metrics carry the label listener, which is the path of the listener's block below its component, such as `protocols.grpc`:
//
//	tracing_server_open_connections         gauge
//	tracing_server_refused_connections_total counter: closed at accept, over max_connections
//	tracing_server_refused_requests_total   counter, by reason: see the Reason constants
//	tracing_server_panics_total             counter: handlers that panicked; the process lives on
//
// and for UDP, where received = handled + refused requests + waiting:
//
//	tracing_server_received_datagrams_total       counter: read from the system
//	tracing_server_handled_datagrams_total        counter: handed on
//	tracing_server_waiting_datagrams              gauge: in the queue
//	tracing_server_kernel_dropped_datagrams_total counter: dropped by the system before they were read, where it tells (Linux)
//	tracing_server_read_errors_total              counter: reads that failed
package server
