package connectors_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/harness"
)

// While the next hop of the first level is down, spans go to the second level; when it is back,
// they go to the first one again. No request is refused.
func TestFailover(t *testing.T) {
	const hop = `
receivers: {otlp: {protocols: {http: {endpoint: "%s"}}}}
exporters: {memory: }
extensions: {query: {storage: memory, http: {endpoint: 127.0.0.1:0}}}
service: {extensions: [query], pipelines: {traces: {receivers: [otlp], exporters: [memory]}}}
`
	address := pipelinetest.FixedAddress(t)
	first := harness.RunYAML(t, fmt.Sprintf(hop, address))
	first.AwaitReady()
	p := run(t, []string{"second"}, `
connectors: {failover: {priority_levels: [[traces/first], [traces/second]], retry_interval: 1ms}}
service:
  extensions: [EXTENSIONS]
  pipelines:
    traces: {receivers: [otlp], exporters: [failover]}
    traces/first: {receivers: [failover], exporters: [otlphttp]}
    traces/second: {receivers: [failover], exporters: [memory/second]}
`, fmt.Sprintf(`otlphttp: {endpoint: "http://%s", retry_on_failure: {enabled: false}}`, address))
	p.send(traces(0, 10, "production"))
	first.Kill()
	p.send(traces(10, 20, "production"))
	if got := p.counts("second"); got != "second:20" {
		t.Errorf("while the first level was down: %s", got)
	}
	again := harness.RunYAML(t, fmt.Sprintf(hop, address))
	again.AwaitReady()
	p.send(traces(30, 7, "production"))
	if got := p.counts("second"); got != "second:20" {
		t.Errorf("when the first level was back: %s", got)
	}
	if status, body := harness.Fetch(t, again.QueryURL()+"/api/traces?service=shop&limit=100"); status != http.StatusOK || len(body) < 1000 {
		t.Errorf("the first level has %s", body)
	}
}
