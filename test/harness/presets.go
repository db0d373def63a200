package harness

import "slices"

// presetListeners lists the listeners of each preset.
var presetListeners = map[string][]string{
	"all-in-one": {"receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http", "receivers::native::protocols::grpc",
		"receivers::native::protocols::http", "receivers::thriftudp::compact", "receivers::thriftudp::binary", "receivers::thriftudp::zipkin",
		"extensions::sampling::http", "extensions::query::http", "extensions::query::grpc", "extensions::admin"},
	"agent": {"receivers::thriftudp::compact", "receivers::thriftudp::binary", "receivers::thriftudp::zipkin", "extensions::sampling::http",
		"extensions::admin"},
	"collector": {"receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http", "receivers::native::protocols::grpc",
		"receivers::native::protocols::http", "extensions::remote_storage", "extensions::admin"},
	"query": {"extensions::query::http", "extensions::query::grpc", "extensions::admin"},
	"collector-clickhouse": {"receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http",
		"receivers::native::protocols::grpc", "receivers::native::protocols::http", "extensions::admin"},
	"collector-kafka": {"receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http", "receivers::native::protocols::grpc",
		"receivers::native::protocols::http", "extensions::admin"},
	"ingester":         {"extensions::remote_storage", "extensions::admin"},
	"query-clickhouse": {"extensions::query::http", "extensions::query::grpc", "extensions::admin"},
}

// PresetSettings returns the settings that run a preset on free ports of localhost with the given
// data directory.
func PresetSettings(preset, dataDir string) []string {
	settings := []string{"service::data_dir=" + dataDir}
	for _, l := range presetListeners[preset] {
		settings = append(settings, l+"::endpoint=localhost:0")
	}
	return settings
}

// PresetArgs returns the command line that runs a preset on free ports of localhost with the given
// data directory and additional arguments.
func PresetArgs(preset, dataDir string, more ...string) []string {
	return slices.Concat([]string{preset}, SetArgs(PresetSettings(preset, dataDir)...), more)
}

// SetArgs returns settings as command-line arguments: --set path=value for each.
func SetArgs(settings ...string) (args []string) {
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	return args
}

// CollectorArgs is like [PresetArgs] for the preset collector with a query extension in addition.
func CollectorArgs(dataDir string, more ...string) []string {
	return append(PresetArgs("collector", dataDir, SetArgs("extensions::query::storage=disk", "extensions::query::http::endpoint=localhost:0",
		"service::extensions=[sampling, remote_storage, query, admin]")...), more...)
}
