package clients_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// separatedByHeader joins requests whose header x-org is equal, for two values at most.
const separatedByHeader = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0", include_metadata: true}}}}
processors: {batch: {timeout: 1ms, metadata_keys: [X-Org], metadata_cardinality_limit: 2}}
exporters: {nop: }
service: {pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [nop]}}}
`

// TestMetadataKeys sends requests with several values of a header to the program.
func TestMetadataKeys(t *testing.T) {
	p := harness.RunYAML(t, separatedByHeader)
	p.AwaitReady()
	body := harness.JSONSpan("5b8efff798038103d269b633813fc60c", "checkout", "pay", time.Now(), time.Second)
	for _, c := range []struct {
		org    string
		status int
	}{{"a", 200}, {"b", 200}, {"c", 400}, {"a", 200}} {
		status, answer := harness.Request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", body, "x-org", c.org)
		if status != c.status || status == 400 && !strings.Contains(answer, "metadata_cardinality_limit") {
			t.Errorf("x-org %s: status %d: %s", c.org, status, answer)
		}
	}
	p.Terminate()
	if a := p.Accounting(); a["balanced"] != true {
		t.Errorf("%v", a)
	}
	http.DefaultClient.CloseIdleConnections()
}
