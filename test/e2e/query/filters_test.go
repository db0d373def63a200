package query_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestFilters reads the results of filters page by page from stores that evaluate conditions
// differently.
func TestFilters(t *testing.T) {
	harness.SkipIfShort(t)
	for _, store := range []string{"memory", "disk"} {
		t.Run(store, func(t *testing.T) {
			p := inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {%[1]s: {}}
extensions: {query: {storage: %[1]s, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}}
service: {data_dir: %[2]q, extensions: [query], pipelines: {traces: {receivers: [otlp], exporters: [%[1]s]}}}
`, store, t.TempDir()))
			for n := range 6 { // of every second trace, the code is a text
				code := fmt.Sprintf(`{"intValue":"%d"}`, 500+n)
				if n%2 == 1 {
					code = fmt.Sprintf(`{"stringValue":"%d"}`, 500+n)
				}
				body := fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},
"scopeSpans":[{"spans":[{"traceId":"%032d","spanId":"%016d","name":"op %[1]d","kind":2,"startTimeUnixNano":"17145576%02[1]d000000000",
"endTimeUnixNano":"17145576%02[1]d500000000","attributes":[{"key":"code","value":%[3]s}]}]}]}]}`, n, n+1, code)
				if status, answer := p.PostOTLP("application/json", body); status != http.StatusOK {
					t.Fatalf("status %d: %s", status, answer)
				}
			}
			const attribute = `"args":[{"attr":{"key":"code"}},{"scalar":{"value":"502"`
			for filter, want := range map[string]string{
				`{"op":"gte",` + attribute + `}}]}`:                                                              "4 2",
				`{"op":"ne",` + attribute + `}}]}`:                                                               "5 4 3 1 0",
				`{"op":"eq",` + attribute + `,"type":"string"}}]}`:                                               "",
				`{"op":"ne",` + attribute + `,"type":"string"}}]}`:                                               "5 4 3 2 1 0",
				`{"op":"regex","args":[{"attr":{"key":"code"}},{"scalar":{"value":"0[135]$"}}]}`:                 "5 3 1",
				`{"op":"in","args":[{"field":{"name":"spanID","level":"span"}},{"list":{"values":["2","6"]}}]}`:  "5 1",
				`{"op":"lt","args":[{"field":{"name":"duration","level":"span"}},{"scalar":{"value":"400ms"}}]}`: "",
			} {
				if got := filtered(t, p.QueryURL(), filter); got != want {
					t.Errorf("%s finds %q, want %q", filter, got, want)
				}
			}
		})
	}
}

// filtered returns the last digits of the ids that a filter finds, from pages of two traces.
func filtered(t *testing.T, base, filter string) string {
	t.Helper()
	v := url.Values{"query.filter": {filter}, "query.pagination.pageSize": {"2"},
		"query.startTimeMin": {"2024-05-01T00:00:00Z"}, "query.startTimeMax": {"2024-05-02T00:00:00Z"}}
	var ids []string
	for {
		status, body := harness.Fetch(t, base+"/api/v3/trace-summaries?"+v.Encode())
		var answer struct {
			Summaries     []struct{ TraceID string }
			NextPageToken string
		}
		if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || len(answer.Summaries) > 2 {
			t.Fatalf("%s: status %d: %s: %v", filter, status, body, err)
		}
		for _, s := range answer.Summaries {
			ids = append(ids, s.TraceID[len(s.TraceID)-1:])
		}
		if answer.NextPageToken == "" {
			return strings.Join(ids, " ")
		}
		v.Set("query.pagination.pageToken", answer.NextPageToken)
	}
}
