package commands_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// Demo data is loaded into an empty store, once, and only where the configuration says so.
func TestLoadDemoData(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir(), "extensions::query::demo::period=10m", "extensions::query::demo::rate=1")
	demo := p.QueryURL() + "/api/ui/v1/demo"
	if status, config := harness.Fetch(t, p.QueryURL()+"/api/ui/v1/config"); !strings.Contains(string(config), `"demo":true`) {
		t.Errorf("%d %s", status, config)
	}
	if status, answer := harness.Request(t, http.MethodPost, demo, "", "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("from another site: %d %s", status, answer)
	}
	status, answer := harness.Request(t, http.MethodPost, demo, "")
	var loaded struct{ Data struct{ Requests, Spans int } }
	if err := json.Unmarshal([]byte(answer), &loaded); err != nil || status != http.StatusOK || loaded.Data.Requests < 500 ||
		loaded.Data.Spans < 10*loaded.Data.Requests {
		t.Fatalf("%v: %d %s", err, status, answer)
	}
	if _, names := harness.Fetch(t, p.QueryURL()+"/api/services"); strings.Count(string(names), `"`) < 2*10 {
		t.Errorf("services %s", names)
	}
	status, answer = harness.Request(t, http.MethodPost, demo, "")
	if status != http.StatusConflict || !strings.Contains(answer, "store has spans") {
		t.Errorf("again: %d %s", status, answer)
	}
}

// Loading may take longer than other requests.
func TestLoadDemoDataSlowly(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir(), "extensions::query::demo::period=10m", "extensions::query::demo::rate=1",
		"extensions::query::http::write_timeout=1ms")
	status, answer := harness.Request(t, http.MethodPost, p.QueryURL()+"/api/ui/v1/demo", "")
	if status != http.StatusOK || !strings.Contains(answer, `"spans"`) {
		t.Errorf("%d %s", status, answer)
	}
}

// Demo data is not offered without the key, and not without a receiver for it.
func TestDemoDataIsNotOffered(t *testing.T) {
	const yaml = `
receivers: {otlp: {protocols: {PROTOCOL: {endpoint: "localhost:0"}}}}
exporters: {memory: }
extensions: {query: {storage: memory, http: {endpoint: "localhost:0"}, DEMO}}
service: {extensions: [query], pipelines: {traces: {receivers: [otlp], exporters: [memory]}}}
`
	f := func(protocol, demo string, want int) {
		t.Helper()
		p := harness.RunYAML(t, strings.NewReplacer("PROTOCOL", protocol, "DEMO", demo).Replace(yaml))
		p.AwaitReady()
		if _, config := harness.Fetch(t, p.QueryURL()+"/api/ui/v1/config"); !strings.Contains(string(config), `"demo":false`) {
			t.Errorf("%s", config)
		}
		if status, answer := harness.Request(t, http.MethodPost, p.QueryURL()+"/api/ui/v1/demo", ""); status != want {
			t.Errorf("%d %s", status, answer)
		}
	}
	f("http", "base_path: /", http.StatusNotFound)
	f("grpc", "demo: ", http.StatusNotImplemented)
}
