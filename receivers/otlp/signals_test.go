package otlp

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Two data points of one metric.
const (
	twoDataPoints     = "\x0a\x0a\x12\x08\x12\x06\x2a\x04\x0a\x00\x0a\x00"
	twoDataPointsJSON = `{"resourceMetrics":[{"resource":{"attributes":[{"key":"dataPoints","value":{"stringValue":"dataPoints"}}]},
		"scopeMetrics":[{"metrics":[{"name":"a","gauge":{"dataPoints":[{"asInt":"1"},{"exemplars":[{},{}]}]}}]}]}]}`
)

// Metrics and logs over gRPC are rejected with a partial success that says why, and counted.
func TestOtherSignals(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := start(t, testConfig(), 8<<20, s)
	conn := f.dial(t)
	points := &metrics.Gauge{DataPoints: []*metrics.NumberDataPoint{{}, {}}}
	m, err := colmetrics.NewMetricsServiceClient(conn).Export(t.Context(), &colmetrics.ExportMetricsServiceRequest{
		ResourceMetrics: []*metrics.ResourceMetrics{{ScopeMetrics: []*metrics.ScopeMetrics{{
			Metrics: []*metrics.Metric{{Name: "a", Data: &metrics.Metric_Gauge{Gauge: points}}}}}}}})
	if p := m.GetPartialSuccess(); err != nil || p.GetRejectedDataPoints() != 2 ||
		p.GetErrorMessage() != "this server accepts traces only and discarded 2 data points; set OTEL_METRICS_EXPORTER=none, "+
			"or send metrics to another server with OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" {
		t.Errorf("metrics: %v, error %v", m, err)
	}
	l, err := collogs.NewLogsServiceClient(conn).Export(t.Context(), &collogs.ExportLogsServiceRequest{
		ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{{}}}}}}})
	if p := l.GetPartialSuccess(); err != nil || p.GetRejectedLogRecords() != 1 ||
		!strings.Contains(p.GetErrorMessage(), "OTEL_LOGS_EXPORTER=none") {
		t.Errorf("logs: %v, error %v", l, err)
	}
	raw, answer := server.Raw("garbage"), new(server.Raw)
	err = conn.Invoke(t.Context(), collectorPrefix+"logs.v1.LogsService/Export", &raw, answer, grpc.ForceCodecV2(server.RawCodec()))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("garbage: %v", err)
	}
	counted := f.Samples(t, "tracing_otlp_rejected_items_total", "signal")
	if want := map[string]float64{"metrics": 2, "logs": 1}; s.Spans() != 0 || !maps.Equal(counted, want) {
		t.Errorf("%d spans, counted %v", s.Spans(), counted)
	}
}

// Brackets in JSON are limited as in spans, whose decoder also keeps something for each.
func TestDeepJSONOfOtherSignals(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	f := start(t, testConfig(), 64<<20, &pipelinetest.Sink{})
	limit := otlpdata.MaxJSONBrackets(f.limits.Depth)
	for brackets, want := range map[int]int{limit: http.StatusOK, limit + 1: http.StatusBadRequest, 1 << 20: http.StatusBadRequest} {
		body := `{"a":` + strings.Repeat("[", brackets-1) + strings.Repeat("]", brackets-1) + "}"
		for path, signal := range map[string]*signal{metricsPath: metricsSignal, defaultLogsPath: logsSignal} {
			resp, err := http.Post("http://"+f.Addr("http")+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != want || want != http.StatusOK && !strings.Contains(string(answer), "max_nesting_depth") {
				t.Errorf("%s, %d brackets: %d %.300s, error %v", signal.name, brackets, resp.StatusCode, answer, err)
			}
		}
	}
}

// The JSON of the metrics and logs is counted as it is read, so a cut text is no problem.
func FuzzCountJSON(f *testing.F) {
	const depth = 64

	f.Add([]byte(twoDataPointsJSON))
	f.Add([]byte(`{"a":` + strings.Repeat("[", 1000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := metricsSignal.countJSON(b, depth); n < 0 || n > len(b) || err != nil && n != 0 {
			t.Errorf("%d, error %v", n, err)
		}
	})
}
