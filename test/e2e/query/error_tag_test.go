package query_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// The values of the tag error decide about the status of a span as docs/apis.md says.
func TestErrorTag(t *testing.T) {
	p := inprocess.StartYAML(t, `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}, zipkin: {endpoint: "localhost:0"}}
exporters: {memory: }
extensions: {query: {storage: memory, http: {endpoint: "localhost:0"}}}
service: {extensions: [query], pipelines: {traces: {receivers: [otlp, zipkin], exporters: [memory]}}}
`)
	now := time.Now()
	number := 0
	check := func(what string, failed bool, send func(trace string) (int, string)) {
		t.Helper()
		number++
		trace := fmt.Sprintf("%032x", number)
		if code, answer := send(trace); code/100 != 2 {
			t.Fatalf("%s: %d %s", what, code, answer)
		}
		for value, want := range map[string]bool{"true": failed, "false": !failed} {
			found := p.Search("service", "shop", "tags", fmt.Sprintf(`{"error":%q}`, value))
			got := slices.ContainsFunc(found, func(id string) bool { return strings.TrimLeft(id, "0") == strings.TrimLeft(trace, "0") })
			if got != want {
				t.Errorf("%s: found with error=%s: %t, want %t", what, value, got, want)
			}
		}
	}
	zipkin := func(value string) func(string) (int, string) {
		return func(trace string) (int, string) {
			return harness.Request(t, http.MethodPost, "http://"+p.Addr("zipkin", "http")+"/api/v2/spans", fmt.Sprintf(
				`[{"traceId":%q,"id":"a","name":"x","timestamp":%d,"duration":5,"localEndpoint":{"serviceName":"shop"},"tags":{"error":%q}}]`,
				trace, now.UnixMicro(), value))
		}
	}
	for _, value := range []string{"true", "True", "false", "", "timeout"} {
		check("Zipkin "+value, true, zipkin(value))
	}
	otlp := func(value, status string) func(string) (int, string) {
		return func(trace string) (int, string) {
			body := harness.JSONSpan(trace, "shop", "x", now, time.Second)
			return p.PostOTLP("application/json", strings.Replace(body, `"kind":2,`,
				fmt.Sprintf(`"kind":2,"attributes":[{"key":"error","value":%s}]%s,`, value, status), 1))
		}
	}
	for _, value := range []string{`{"boolValue":true}`, `{"stringValue":"true"}`, `{"stringValue":"True"}`} {
		check("OTLP "+value, false, otlp(value, ""))
	}
	check("OTLP status", true, otlp(`{"boolValue":false}`, `,"status":{"code":2}`))
}
