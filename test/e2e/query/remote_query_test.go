package query_test

import (
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestCollectorAndQueryService runs the presets collector and query as two processes: the query
// service reads the store of the collector, and every trace is read back unchanged.
func TestCollectorAndQueryService(t *testing.T) {
	harness.SkipIfShort(t)
	dir := t.TempDir()
	collector := harness.Run(t, harness.PresetArgs("collector", filepath.Join(dir, "collector"))...)
	query := harness.Run(t, harness.PresetArgs("query", filepath.Join(dir, "query"),
		"--grpc-storage.server="+collector.Address("remote_storage", "grpc"))...)
	for _, p := range []*harness.Process{collector, query} {
		p.AwaitReady()
	}
	code, stdout, stderr := inprocess.Canary(t, "http://"+collector.OTLPHTTP(), query.QueryURL())
	if code != 0 || stdout != inprocess.CanaryOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
