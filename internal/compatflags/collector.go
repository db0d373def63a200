package compatflags

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// The flags of a collector's intake in the native formats and in Zipkin's. Those of OTLP are in flags.go.

// NativeReceiver returns the flags of receiver native.
func NativeReceiver() []pipeline.Flag {
	const (
		grpc  = "protocols::grpc"
		http  = "protocols::http"
		alive = grpc + "::keepalive::server_parameters"
	)
	return slices.Concat([]pipeline.Flag{
		{Name: "collector.grpc-server.host-port", Key: grpc + "::endpoint", Value: pipeline.HostPort,
			Doc: "Where the native gRPC service listens."},
		{Name: "collector.grpc-server.max-message-size", Block: grpc, Key: grpc + "::max_recv_msg_size_mib", Value: mebibytes,
			Doc: "Greatest message in bytes, rounded up to MiB."},
		{Name: "collector.grpc-server.max-connection-age", Block: grpc, Key: alive + "::max_connection_age",
			Doc: "Have clients reconnect after so long; 0: never."},
		{Name: "collector.grpc-server.max-connection-age-grace", Block: grpc, Key: alive + "::max_connection_age_grace",
			Doc: "Time for calls beyond that age; 0: no limit."},
		{Name: "collector.http-server.host-port", Key: http + "::endpoint", Value: pipeline.HostPort, Doc: "Where Thrift over HTTP is received."},
		{Name: "collector.http-server.idle-timeout", Block: http, Key: http + "::idle_timeout",
			Doc: "How long a connection may stay open without a request."},
		{Name: "collector.http-server.read-timeout", Block: http, Key: http + "::read_timeout",
			Doc: "How long a client may take to send a whole request."},
		{Name: "collector.http-server.read-header-timeout", Block: http, Key: http + "::read_header_timeout",
			Doc: "How long a client may take to send the headers of a request."},
		{Name: "collector.enable-span-size-metrics", Instead: "the bytes in flight are always measured: tracing_inflight_bytes"},
	},
		tlsFlags("collector.grpc", grpc+"::tls"), tlsFlags("collector.http", http+"::tls"), tenancyFlags(grpc), tenancyFlags(http),
		downsamplingFlags())
}

// ZipkinReceiver returns the flags of receiver zipkin.
func ZipkinReceiver() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "collector.zipkin.host-port", Key: "endpoint", Adds: true, Value: pipeline.HostPort,
			Doc: "Where spans are received as Zipkin's clients send them; empty: nowhere."},
		{Name: "collector.zipkin.keep-alive", Instead: "connections stay open without requests for as long as receivers.zipkin.idle_timeout says"},
	}, tlsFlags("collector.zipkin", "tls"), corsFlags("collector.zipkin", ""), tenancyFlags(""))
}

// downsamplingFlags are accepted, so that existing command lines start.
func downsamplingFlags() []pipeline.Flag {
	const instead = "all spans that arrive are kept; the processor probabilistic_sampler keeps a share of them"
	return []pipeline.Flag{
		{Name: "downsampling.ratio", Instead: instead},
		{Name: "downsampling.hashsalt", Instead: instead},
	}
}
