package monitoring_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/harness"
)

const spanMetrics = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}}
exporters: {disk: }
extensions:
  admin: {endpoint: "localhost:0"}
  span_metrics:
    storage: disk
    endpoint: %q
    interval: 1s
    service_graph_delay: 10s
    remote_write: {endpoint: "%s/api/v1/write", labels: {path: remote_write}}
service:
  data_dir: %q
  extensions: [admin, span_metrics]
  pipelines: {traces: {receivers: [otlp], exporters: [disk]}}
`

// Prometheus gets the same series from a scrape and by remote write, which are equal to the spans
// that were sent, and its alert on them fires.
func TestSpanMetrics(t *testing.T) {
	harness.SkipIfShort(t)
	path := requirePrometheus(t)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, rules, documentedRules(t))
	if out, err := exec.Command("promtool", "check", "rules", rules).CombinedOutput(); err != nil {
		t.Fatalf("promtool check rules: %v: %s", err, out)
	}
	address := pipelinetest.FixedAddress(t)
	prometheus := startPrometheusWith(t, path, rules, map[string]string{"scraped": address},
		"--web.enable-remote-write-receiver", "--enable-feature=exemplar-storage")
	p := harness.RunYAML(t, fmt.Sprintf(spanMetrics, address, prometheus.url, t.TempDir()))
	p.AwaitReady()
	harness.Poll(t, "the first remote write", func() bool {
		return harness.Metrics(t, p.AdminURL())[`tracing_span_metrics_collections_total{component="span_metrics",kind="extension",result="complete"}`] > 0
	})

	want := map[string]float64{} // by service and status
	for round := range 5 {
		td := ptrace.NewTraces()
		for i, service := range []string{"web", "shop", "payment"} {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", service)
			spans := rs.ScopeSpans().AppendEmpty().Spans()
			for n := range 10 * (i + 1) {
				s := spans.AppendEmpty()
				s.SetName("GET /" + service)
				s.SetKind(ptrace.SpanKindServer)
				s.SetTraceID(pcommon.TraceID{1, byte(round), byte(n)})
				s.SetSpanID(pcommon.SpanID{1, byte(i)})
				if i > 0 {
					s.SetParentSpanID(pcommon.SpanID{1, byte(i - 1)})
				}
				start := time.Now()
				s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
				s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(30 * time.Millisecond)))
				status := "STATUS_CODE_UNSET"
				if n%5 == 0 {
					s.Status().SetCode(ptrace.StatusCodeError)
					status = "STATUS_CODE_ERROR"
				}
				want[service+" "+status]++
			}
		}
		request, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
		if err != nil {
			t.Fatal(err)
		}
		p.PostJSON(string(request))
		time.Sleep(time.Second) // so that Prometheus sees the counters grow
	}
	for _, by := range []string{`job="scraped"`, `path="remote_write"`} {
		harness.Poll(t, "the series with "+by, func() bool {
			got := map[string]float64{}
			for _, s := range prometheus.query(`traces_span_metrics_calls_total{` + by + `}`) {
				got[s.Metric["service_name"]+" "+s.Metric["status_code"]] = s.number()
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
		harness.Poll(t, "the durations with "+by, func() bool {
			return prometheus.has(`sum(traces_span_metrics_duration_milliseconds_count{`+by+`}) == 300`) &&
				prometheus.has(`sum(traces_span_metrics_duration_milliseconds_sum{`+by+`}) == 9000`) &&
				prometheus.has(`sum(traces_span_metrics_duration_milliseconds_bucket{`+by+`,le="10.0"}) == 0`) &&
				prometheus.has(`sum(traces_span_metrics_duration_milliseconds_bucket{`+by+`,le="50.0"}) == 300`)
		})
		harness.Poll(t, "the calls between services with "+by, func() bool {
			return prometheus.has(`traces_service_graph_request_total{client="web",server="shop",`+by+`} == 50`) &&
				prometheus.has(`traces_service_graph_request_failed_total{client="shop",server="payment",`+by+`} == 20`)
		})
	}
	harness.Poll(t, "exemplars", func() bool {
		_, body := harness.Fetch(t, prometheus.url+"/api/v1/query_exemplars?start=0&end=9999999999&query="+
			url.QueryEscape("traces_span_metrics_duration_milliseconds_bucket"))
		return bytes.Contains(body, []byte(`"trace_id":"01`)) && bytes.Contains(body, []byte(`"path":"remote_write"`)) &&
			bytes.Contains(body, []byte(`"job":"scraped"`))
	})
	harness.Poll(t, "the alert", func() bool {
		return prometheus.has(`ALERTS{alertname="ServiceFails",service_name="payment",alertstate="firing"}`)
	})
	checkFormat(t, "http://"+address+"/metrics")
}

// checkFormat checks the response to a scrape with promtool, except for the unit of durations,
// which the names of the Collector prescribe.
func checkFormat(t *testing.T, address string) {
	t.Helper()
	status, body := harness.Fetch(t, address)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(body)
	out, err := check.CombinedOutput()
	findings := strings.TrimSpace(string(out))
	if findings != `traces_span_metrics_duration_milliseconds use base unit "seconds" instead of "milliseconds"` {
		t.Errorf("promtool check metrics: %v: %s", err, findings)
	}
}

// documentedRules returns the example of rules in the documentation, which wait for no time here.
func documentedRules(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(files(t, "docs", "span-metrics.md")[0])
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\ngroups:")
	rules, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/span-metrics.md has no rules")
	}
	return strings.ReplaceAll("groups:"+rules, "for: 5m", "for: 0s")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
