package harness

// FreePorts are the settings that make the preset all-in-one listen on free ports.
var FreePorts = []string{
	"receivers::otlp::protocols::grpc::endpoint=localhost:0",
	"receivers::otlp::protocols::http::endpoint=localhost:0",
	"receivers::native::protocols::grpc::endpoint=localhost:0",
	"receivers::native::protocols::http::endpoint=localhost:0",
	"receivers::thriftudp::compact::endpoint=localhost:0",
	"receivers::thriftudp::binary::endpoint=localhost:0",
	"receivers::thriftudp::zipkin::endpoint=localhost:0",
	"extensions::sampling::http::endpoint=localhost:0",
	"extensions::query::http::endpoint=localhost:0",
	"extensions::query::grpc::endpoint=localhost:0",
	"extensions::admin::endpoint=localhost:0",
}

// PresetArgs is the command line that runs a built-in configuration on free ports.
func PresetArgs(name, dir string, more ...string) []string {
	ports := map[string][]string{
		"agent": {"receivers::thriftudp::compact::endpoint", "receivers::thriftudp::binary::endpoint", "receivers::thriftudp::zipkin::endpoint",
			"extensions::sampling::http::endpoint", "extensions::admin::endpoint"},
		"collector": {"receivers::otlp::protocols::grpc::endpoint", "receivers::otlp::protocols::http::endpoint",
			"receivers::native::protocols::grpc::endpoint", "receivers::native::protocols::http::endpoint", "extensions::query::http::endpoint",
			"extensions::remote_storage::endpoint", "extensions::admin::endpoint"},
	}
	args := []string{name, "--set", "service::data_dir=" + dir}
	if name == "collector" { // tests ask it what it has
		args = append(args, "--set", "extensions::query::storage=disk", "--set", "service::extensions=[sampling, remote_storage, query, admin]")
	}
	for _, p := range ports[name] {
		args = append(args, "--set", p+"=localhost:0")
	}
	return append(args, more...)
}

// FreePortArgs is the command line that runs a preset as it is, but for the ports of these listeners.
func FreePortArgs(name, dir string, listeners ...string) []string {
	args := []string{name, "--set", "service::data_dir=" + dir}
	for _, l := range listeners {
		args = append(args, "--set", l+"::endpoint=localhost:0")
	}
	return args
}
