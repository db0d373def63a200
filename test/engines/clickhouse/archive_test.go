package clickhouse_test

import (
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestArchive archives a trace to a second database through the query service, and reads it when
// the first one no longer has it.
func TestArchive(t *testing.T) {
	s := engine.Shared(t)
	first, second := s.Database(t), s.Database(t)
	store := openOn(t, s, first, nil)
	now := uint64(time.Now().Add(-time.Minute).UnixNano())
	consume(t, store, batchOf(t, "", span{service: "a", name: "call", trace: 7, id: 1, kind: ptrace.SpanKindClient, start: now},
		span{service: "b", name: "answer", trace: 7, id: 2, parent: 1, kind: ptrace.SpanKindServer, start: now + 1},
		span{service: "a", name: "other", trace: 8, id: 1, start: now}))
	common := `endpoints: ["` + s.HTTPAddr() + `"], protocol: http, database: `
	p := inprocess.StartYAML(t, `
exporters:
  clickhouse: {`+common+first+`}
  clickhouse/archive: {`+common+second+`, retention: {spans: 0, statistics: 0}}
extensions:
  query:
    storage: clickhouse
    archive_storage: clickhouse/archive
    http: {endpoint: "localhost:0"}
    grpc: {endpoint: "localhost:0"}
service:
  data_dir: `+t.TempDir()+`
  extensions: [query]
`)
	const id, other = "00000000000000000000000000000007", "00000000000000000000000000000008"
	if status, body := harness.Request(t, http.MethodPost, p.QueryURL()+"/api/archive/"+id, ""); status != http.StatusOK {
		t.Fatalf("archiving: status %d: %s", status, body)
	}
	for _, table := range []string{"payload", "spans"} {
		s.Exec(t, "TRUNCATE TABLE "+first+"."+table)
	}
	if n := spansOf(t, p.QueryURL(), id); n != 2 {
		t.Errorf("the archived trace has %d spans, want 2", n)
	}
	if status, body := harness.Fetch(t, p.QueryURL()+"/api/traces/"+other); status != http.StatusNotFound {
		t.Errorf("the other trace: status %d: %s", status, body)
	}
}
