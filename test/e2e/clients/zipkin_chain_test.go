package clients_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// zipkinForwarder receives OTLP and sends Zipkin spans.
const zipkinForwarder = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {zipkin: {endpoint: "http://%s/api/v2/spans", format: %s}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [zipkin]}}}
`

// TestZipkinChain sends spans through the program as Zipkin spans to the program.
func TestZipkinChain(t *testing.T) {
	backend := harness.Run(t, harness.PresetArgs("all-in-one", t.TempDir(), "--collector.zipkin.host-port=localhost:0")...)
	backend.AwaitReady()
	for i, format := range []string{"json", "proto"} {
		forwarder := harness.RunYAML(t, fmt.Sprintf(zipkinForwarder, backend.Address("zipkin", "http"), format))
		forwarder.AwaitReady()
		id, start := fmt.Sprintf("5b8efff798038103d269b633813fc60%d", i), time.Now().Add(-time.Minute).Truncate(time.Microsecond)
		forwarder.PostJSON(harness.JSONSpan(id, "checkout", "pay", start, 1500*time.Microsecond))
		var got struct{ Data []harness.UITrace }
		if status, body := harness.Fetch(t, backend.QueryURL()+"/api/traces/"+id); json.Unmarshal(body, &got) != nil {
			t.Fatalf("%s: status %d: %s", format, status, body)
		}
		if len(got.Data) != 1 || len(got.Data[0].Spans) != 1 {
			t.Fatalf("%s: %+v", format, got)
		}
		trace := got.Data[0]
		s := trace.Spans[0]
		if s.SpanID != harness.JSONSpanID || s.OperationName != "pay" || trace.Processes[s.ProcessID].ServiceName != "checkout" ||
			s.StartTime != start.UnixMicro() || s.Duration != 1500 {
			t.Errorf("%s: %+v", format, trace)
		}
		forwarder.Terminate()
		if a := forwarder.Accounting(); a["balanced"] != true {
			t.Errorf("%s: %v", format, a)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
