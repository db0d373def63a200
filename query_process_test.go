package tracing_test

import (
	"path/filepath"
	"testing"
)

// What a collector has stored a query service of its own reads, with the presets as shipped: every trace comes back as it was written.
func TestCollectorAndQueryService(t *testing.T) {
	skipShort(t)
	dir := t.TempDir()
	collector := run(t, onFreePorts("collector", filepath.Join(dir, "collector"), "receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http",
		"receivers::native::protocols::grpc", "receivers::native::protocols::http", "extensions::remote_storage", "extensions::admin")...)
	query := run(t, append(onFreePorts("query", filepath.Join(dir, "query"), "extensions::query::http", "extensions::query::grpc", "extensions::admin"),
		"--grpc-storage.server="+collector.address("remote_storage", "grpc"))...)
	for _, p := range []*process{collector, query} {
		p.await("msg", "Health Check state change", "status", "ready")
	}
	code, stdout, stderr := canary(t, "http://"+collector.address("otlp", "protocols.http"), "http://"+query.address("query", "http"))
	if code != 0 || stdout != allRead {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// onFreePorts is the command line that runs a preset as it is, but for the ports of these listeners.
func onFreePorts(name, dir string, listeners ...string) []string {
	args := []string{name, "--set", "service::data_dir=" + dir}
	for _, l := range listeners {
		args = append(args, "--set", l+"::endpoint=localhost:0")
	}
	return args
}
