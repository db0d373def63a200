package compatflags

import (
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
)

// The flags of what decides which traces clients sample: in a collector a file, in an agent the collector.

// Sampling returns the flags of extension sampling.
func Sampling() []pipeline.Flag {
	flags := []pipeline.Flag{
		{Name: "sampling.strategies-file", Block: "file", Key: "file::path", Doc: "Strategies file, or http or https URL of one."},
		{Name: "sampling.strategies-reload-interval", Block: "file", Key: "file::reload_interval",
			Doc: "How often to look whether the strategies have changed; 0: never."},
		{Name: "sampling.strategies.bugfix-5270",
			Instead: "strategies are merged by one rule: a service with a limit gets no operations of the default"},
		{Name: "http-server.host-port", Block: "http", Key: "http::endpoint", Value: pipeline.HostPort,
			Doc: "Where clients ask an agent which traces to sample."},
		{Name: "reporter.grpc.host-port", Block: "remote", Key: "remote::endpoint", Value: hostPorts,
			Doc: "Collectors to send to and to ask."},
	}
	for flag, key := range map[string]string{"target-samples-per-second": "target_samples_per_second", "delta-tolerance": "delta_tolerance",
		"buckets-for-calculation": "calculation_buckets", "calculation-interval": "calculation_interval",
		"aggregation-buckets": "aggregation_buckets",
		"delay":               "calculation_delay", "initial-sampling-probability": "initial_sampling_probability",
		"min-sampling-probability": "min_sampling_probability",
		"min-samples-per-second":   "min_samples_per_second", "leader-lease-refresh-interval": "leader_lease_refresh_interval",
		"follower-lease-refresh-interval": "follower_lease_refresh_interval"} {
		flags = append(flags, pipeline.Flag{Name: "sampling." + flag, Block: "adaptive", Key: "adaptive::" + key,
			Doc: "Of adaptive sampling: sets " + key + "."})
	}
	flags = append(flags, pipeline.Flag{Name: samplingType, Block: "file", Key: "file", Value: whenAdaptive(nil, struct{}{})},
		pipeline.Flag{Name: samplingType, Block: "file", Key: "adaptive", Value: whenAdaptive(map[string]string{"storage": "disk"}, nil)})
	tls := clientTLSFlags("reporter.grpc", "remote::tls")
	for i := range tls {
		tls[i].Block = "remote"
	}
	return slices.Concat(flags, tls)
}

// samplingType is the variable SAMPLING_CONFIG_TYPE. Its flags are applied when components are added, before --span-storage.type moves
// references to the store of the presets, which is the disk.
const samplingType = "sampling-config.type"

// AdaptiveSampling returns the flags of processor adaptive_sampling.
func AdaptiveSampling() []pipeline.Flag {
	return []pipeline.Flag{{Name: samplingType, Key: "sampling", Adds: true, Value: whenAdaptive("sampling", nil),
		Doc: "Where strategies come from: file, or adaptive, that is, from the traces that are seen."}}
}

// whenAdaptive is a [pipeline.Flag.Value] that is one thing for adaptive, and another one for file.
func whenAdaptive(adaptive, file any) func(string) (any, error) {
	return func(text string) (any, error) {
		switch text {
		case "adaptive":
			return adaptive, nil
		case "file":
			return file, nil
		}
		return nil, fmt.Errorf("%q is not file or adaptive", text)
	}
}
