package conformance_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// A page of another origin in a user's browser can send requests without asking (a form, or fetch
// with mode no-cors), and, if its host name resolves to 127.0.0.1 (DNS rebinding), read answers.
func TestForeignPage(t *testing.T) {
	p := inprocess.StartYAML(t, `
receivers: {zipkin: {endpoint: "127.0.0.1:0"}}
exporters: {memory: }
extensions:
  query: {storage: memory, http: {endpoint: "127.0.0.1:0"}}
  admin: {endpoint: "127.0.0.1:0"}
service: {extensions: [query, admin], pipelines: {traces: {receivers: [zipkin], exporters: [memory]}}}`)
	zipkin := "http://" + p.Addr("zipkin", "http")
	post := func(service string, header ...string) (int, string) {
		t.Helper()
		return harness.Request(t, http.MethodPost, zipkin+"/api/v2/spans",
			`[{"traceId":"1","id":"1","name":"a","localEndpoint":{"serviceName":"`+service+`"}}]`, header...)
	}
	for _, header := range [][]string{
		{"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
		{"Origin", "http://evil.example", "Content-Type", "text/plain"},
		{"Origin", "null", "Content-Type", "text/plain"},
		{"Sec-Fetch-Site", "same-site", "Content-Type", "text/plain"}, // another port of this host
	} {
		if code, body := post("planted", header...); code != http.StatusForbidden || !strings.Contains(body, "cors::allowed_origins") {
			t.Errorf("POST of spans with %q: %d %s", header, code, body)
		}
	}
	if code, body := post("client", "Content-Type", "text/plain"); code != http.StatusAccepted {
		t.Errorf("POST of spans by a program: %d %s", code, body)
	}
	if _, body := harness.Fetch(t, p.QueryURL()+"/api/services"); !strings.Contains(string(body), `["client"]`) {
		t.Errorf("services: %s", body)
	}

	query, admin := p.QueryURL(), p.AdminURL()
	for _, url := range []string{query + "/api/services", query + "/", admin + "/debug/pprof/heap", admin + "/metrics"} {
		if code, body := harness.Request(t, http.MethodGet, url, "", "Host", "rebound.example:1"); code != http.StatusForbidden ||
			!strings.Contains(body, "allowed_hosts") {
			t.Errorf("GET %s as rebound.example: %d %.200s", url, code, body)
		}
	}
	if code, body := harness.Request(t, http.MethodPut, admin+"/log-level", `{"level":"debug"}`, "Host", "rebound.example"); code != 403 {
		t.Errorf("PUT of the log level as rebound.example: %d %s", code, body)
	}
}
