package tracing

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// The flags of what decides which traces clients sample: in a collector a file, in an agent the collector.

func samplingFlags() []pipeline.Flag {
	flags := []pipeline.Flag{
		{Name: "sampling.strategies-file", Block: "file", Key: "file::path", Doc: "Strategies file, or http or https URL of one."},
		{Name: "sampling.strategies-reload-interval", Block: "file", Key: "file::reload_interval",
			Doc: "How often to look whether the strategies have changed; 0: never."},
		{Name: "sampling.strategies.bugfix-5270", Instead: "strategies are merged by one rule: a service with a limit gets no operations of the default"},
		{Name: "http-server.host-port", Block: "http", Key: "http::endpoint", Value: pipeline.HostPort,
			Doc: "Where clients ask an agent which traces to sample."},
		{Name: "reporter.grpc.host-port", Block: "remote", Key: "remote::endpoint", Value: hostPorts, Doc: "Collectors to send to and to ask."},
	}
	for _, name := range []string{"target-samples-per-second", "delta-tolerance", "buckets-for-calculation", "calculation-interval",
		"aggregation-buckets", "delay", "initial-sampling-probability", "min-sampling-probability", "min-samples-per-second",
		"leader-lease-refresh-interval", "follower-lease-refresh-interval"} {
		flags = append(flags, pipeline.Flag{Name: "sampling." + name,
			Instead: "strategies come from a file or a collector in this version, not from what is observed"})
	}
	tls := clientTLSFlags("reporter.grpc", "remote::tls")
	for i := range tls {
		tls[i].Block = "remote"
	}
	return slices.Concat(flags, tls)
}
