package compatflags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Sampling returns the flags of the `sampling` extension.
func Sampling() []pipeline.Flag {
	flags := []pipeline.Flag{
		{Name: "sampling.strategies-file", Distinctive: "SAMPLING_STRATEGIES_", Block: "file", Key: "file::path",
			Doc: "Path or HTTP URL of the strategies file."},
		{Name: "sampling.strategies-reload-interval", Block: "file", Key: "file::reload_interval",
			Doc: "Interval at which the strategies file is checked for changes. 0 disables the check."},
		{Name: "sampling.strategies.bugfix-5270", Switch: true, Always: "true",
			Instead: "a service with a rate-limiting strategy never inherits per-operation strategies from the default strategy"},
		{Name: "sampling-storage.type",
			Instead: "adaptive sampling stores its data in the span store; set extensions.sampling.adaptive.storage to change this"},
		{Name: "http-server.host-port", Block: "http", Key: "http::endpoint", Value: hostPort,
			Doc: "Address on which an agent serves sampling strategies."},
		{Name: "reporter.grpc.host-port", Block: "remote", Key: "remote::endpoint", Value: hostPorts,
			Doc: "Addresses of collectors, host:port, separated by commas."},
	}
	otherKeys := map[string]string{"buckets-for-calculation": "calculation_buckets", "delay": "calculation_delay"}
	for flag := range strings.FieldsSeq("aggregation-buckets buckets-for-calculation calculation-interval delay delta-tolerance " +
		"follower-lease-refresh-interval initial-sampling-probability leader-lease-refresh-interval min-samples-per-second " +
		"min-sampling-probability target-samples-per-second") {
		key := cmp.Or(otherKeys[flag], strings.ReplaceAll(flag, "-", "_"))
		flags = append(flags, pipeline.Flag{Name: "sampling." + flag, Block: "adaptive", Key: "adaptive::" + key,
			Doc: "Sets " + key + " of adaptive sampling."})
	}
	flags = append(flags, pipeline.Flag{Name: samplingType, Block: "file", Key: "file", Value: whenAdaptive(nil, struct{}{})},
		pipeline.Flag{Name: samplingType, Block: "file", Key: "adaptive", Value: whenAdaptive(map[string]string{"storage": "disk"}, nil)})
	tls := clientTLSFlags("reporter.grpc", "remote::tls")
	for i := range tls {
		tls[i].Block = "remote"
	}
	return slices.Concat(flags, tls)
}

// samplingType is the flag for the environment variable SAMPLING_CONFIG_TYPE. It is applied when
// components are added: the reference to the disk store becomes a reference to the store of the
// configuration, before --span-storage.type replaces all references.
const samplingType = "sampling-config.type"

// AdaptiveSampling returns the flags of the `adaptive_sampling` processor.
func AdaptiveSampling() []pipeline.Flag {
	return []pipeline.Flag{{Name: samplingType, Key: "sampling", Adds: true, Value: whenAdaptive("sampling", nil),
		Doc: "Source of sampling strategies: file or adaptive. Adaptive strategies are calculated from the observed traces."}}
}

// whenAdaptive returns a [pipeline.Flag.Value] with one value for "adaptive" and another for
// "file".
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
