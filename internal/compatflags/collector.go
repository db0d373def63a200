package compatflags

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline"
)

// NativeReceiver returns the flags of the `native` receiver.
func NativeReceiver() []pipeline.Flag {
	return slices.Concat(
		grpcFlags("collector.grpc-server.", "Address on which to accept spans in the native format over gRPC."),
		httpFlags("collector.http-server.", "Address on which to accept Thrift over HTTP."), []pipeline.Flag{
			{Name: "collector.grpc-port", Key: grpc + "::endpoint", Value: hostPort, Doc: "Earlier name of collector.grpc-server.host-port."},
			{Name: "collector.http-port", Key: http + "::endpoint", Value: hostPort, Doc: "Earlier name of collector.http-server.host-port."},
			{Name: "collector.enable-span-size-metrics", Switch: true, Always: "false",
				Instead: "the metric tracing_inflight_bytes always measures the bytes in flight"},
		},
		tlsFlags("collector.grpc", grpc+"::tls"), tlsFlags("collector.http", http+"::tls"), tenancyFlags(grpc), tenancyFlags(http))
}

// ZipkinReceiver returns the flags of the `zipkin` receiver.
func ZipkinReceiver() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "collector.zipkin.host-port", Distinctive: "COLLECTOR_ZIPKIN_", Key: "endpoint", Adds: true, Value: hostPort,
			Doc: "Address on which to accept spans in the Zipkin formats. Empty disables the listener."},
		{Name: "collector.zipkin.http-port", Key: "endpoint", Adds: true, Value: hostPort,
			Doc: "Earlier name of collector.zipkin.host-port."},
		{Name: "collector.zipkin.keep-alive", Switch: true, Always: "true",
			Instead: "idle connections stay open until receivers.zipkin.idle_timeout"},
	}, tlsFlags("collector.zipkin", "tls"), corsFlags("collector.zipkin", ""), tenancyFlags(""))
}

// ProbabilisticSampler returns the flags of the `probabilistic_sampler` processor.
func ProbabilisticSampler() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "downsampling.ratio", Key: "sampling_percentage", Adds: true, Value: percentage,
			Doc: "Share of traces to store, from 0 to 1."},
		{Name: "downsampling.hashsalt", Instead: "all collectors select the same traces: the decision depends only on the trace id"},
	}
}

// percentage converts a probability to a percentage. The probability 1 needs no processor.
func percentage(text string) (any, error) {
	share, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil, !(share >= 0 && share <= 1):
		return nil, fmt.Errorf("%q is not a share from 0 to 1", text)
	case share == 1:
		return nil, nil
	}
	return math.Round(share*1e8) / 1e6, nil // 0.07 * 100 is not 7
}
