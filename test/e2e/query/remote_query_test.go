package query_test

import (
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// What a collector has stored a query service of its own reads, with the presets as shipped: every trace comes back as it was written.
func TestCollectorAndQueryService(t *testing.T) {
	harness.SkipShort(t)
	dir := t.TempDir()
	collector := harness.Run(t, harness.FreePortArgs("collector", filepath.Join(dir, "collector"), "receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http",
		"receivers::native::protocols::grpc", "receivers::native::protocols::http", "extensions::remote_storage", "extensions::admin")...)
	query := harness.Run(t, append(harness.FreePortArgs("query", filepath.Join(dir, "query"), "extensions::query::http", "extensions::query::grpc", "extensions::admin"),
		"--grpc-storage.server="+collector.Address("remote_storage", "grpc"))...)
	for _, p := range []*harness.Process{collector, query} {
		p.Await("msg", "Health Check state change", "status", "ready")
	}
	code, stdout, stderr := harness.Canary(t, "http://"+collector.Address("otlp", "protocols.http"), "http://"+query.Address("query", "http"))
	if code != 0 || stdout != harness.CanaryAllRead {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
