package query_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// Spans that remote storage writes and traces that users archive are counted like those of
// pipelines: by the extension that accepted them, and by the exporter that stored them.
func TestWritesOfExtensionsAreCounted(t *testing.T) {
	for _, protocol := range []string{"v1", "v2", "auto"} {
		store := inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters: {memory: , memory/archive: , memory/other: }
extensions:
  remote_storage: {endpoint: "localhost:0", storage: memory}
  query: {storage: memory, archive_storage: memory/archive, http: {endpoint: "localhost:0"}}
  admin: {endpoint: "localhost:0"}
service:
  data_dir: %q
  extensions: [remote_storage, query, admin]
  pipelines: {traces: {receivers: [otlp], exporters: [memory/other]}}
`, t.TempDir()))
		front := inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {grpc: {endpoint: %q, tls: {insecure: true}, protocol: %s}}
service: {data_dir: %q, pipelines: {traces: {receivers: [otlp], exporters: [grpc]}}}
`, store.Addr("remote_storage", "grpc"), protocol, t.TempDir()))
		for i := range 3 {
			trace := fmt.Sprintf("%032d", i+1)
			if code, answer := front.PostOTLP("application/json", harness.JSONSpan(trace, "shop", "pay", time.Now(), time.Second)); code != 200 {
				t.Fatal(code, answer)
			}
			if i == 2 {
				break
			}
			if code, answer := harness.Request(t, http.MethodPost, store.QueryURL()+"/api/archive/"+trace, ""); code != 200 {
				t.Fatal(code, answer)
			}
		}
		metrics := harness.CheckAccounting(t, store.AdminURL())
		for labels, want := range map[string]float64{
			`component="remote_storage",kind="extension",outcome="received"`: 3,
			`component="remote_storage",kind="extension",outcome="accepted"`: 3,
			`component="memory",kind="exporter",outcome="in"`:                3,
			`component="memory",kind="exporter",outcome="sent"`:              3,
			`component="query",kind="extension",outcome="accepted"`:          2,
			`component="memory/archive",kind="exporter",outcome="sent"`:      2,
			`component="memory/other",kind="exporter",outcome="in"`:          0,
		} {
			if got := metrics[`tracing_pipeline_spans_total{`+labels+`,reason=""}`]; got != want {
				t.Errorf("protocol %s: %s: %v, want %v", protocol, labels, got, want)
			}
		}
		if err := store.Stop(); err != nil {
			t.Fatal(err)
		}
		if log := store.Log.String(); !strings.Contains(log, `"component":"remote_storage","kind":"extension","received":3,"accepted":3`) ||
			!strings.Contains(log, `"balanced":true`) {
			t.Errorf("final accounting: %s", log)
		}
	}
}
