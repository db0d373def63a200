// Package udp provides the listener for protocols over UDP: [Server]. Datagrams get no response, so
// the server counts every datagram that it cannot process. Datagrams wait for workers in a queue
// that is limited in bytes.
//
// Metrics carry the label listener, which is the path of the listener's block below its component.
// When no datagrams are waiting, received = handled + refused requests:
//
//	tracing_server_received_datagrams_total       counter: read from the socket
//	tracing_server_handled_datagrams_total        counter: data entered the pipeline
//	tracing_server_refused_requests_total         counter, by reason
//	tracing_server_panics_total                   counter: handlers that panicked
//	tracing_server_waiting_datagrams              gauge: in the queue
//	tracing_server_kernel_dropped_datagrams_total counter, Linux only
//	tracing_server_read_errors_total              counter: failed reads
package udp
