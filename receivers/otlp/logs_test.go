package otlp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// taker is a sink behind pipelines of some signals.
type taker struct {
	*pipelinetest.Sink
	signals map[otlpdata.Signal]bool
}

// Takes implements pipeline.Taker.
func (s taker) Takes(signal otlpdata.Signal) bool { return s.signals[signal] }

// startTaking starts a receiver of pipelines of some signals.
func startTaking(t *testing.T, s *pipelinetest.Sink, signals ...otlpdata.Signal) *fixture {
	t.Helper()
	next := taker{s, map[otlpdata.Signal]bool{}}
	for _, signal := range signals {
		next.signals[signal] = true
	}
	f := newFixture(8<<20, s)
	c := testConfig(func(_ *server.GRPCConfig, h *httpConfig) { h.LogsPath = "/my/logs" })
	f.receiver, _ = pipelinetest.StartReceiver(t, f.Fixture, s, func(set pipeline.Settings, _ pipeline.Consumer) (*receiver, error) {
		return newReceiver(set, c, next)
	})
	return f
}

// logsRequest returns a request with n log records.
func logsRequest(n int) *collogs.ExportLogsServiceRequest {
	records := make([]*logs.LogRecord, n)
	for i := range records {
		records[i] = &logs.LogRecord{SeverityText: "INFO", TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{2}, 8)}
	}
	return &collogs.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: records}}}}}
}

// Log records are received over every protocol and in every encoding, with the outcome that the
// pipeline returns.
func TestLogs(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	s := &pipelinetest.Sink{}
	answer := error(nil)
	s.Answer = func(context.Context, *otlpdata.Batch) error { return answer }
	f := startTaking(t, s, otlpdata.SignalTraces, otlpdata.SignalLogs)
	client := collogs.NewLogsServiceClient(f.dial(t))
	post := func(contentType string, body []byte) (code int, text string) {
		resp, err := http.Post("http://"+f.Addr("http")+"/my/logs", contentType, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	request := logsRequest(3)
	enc, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	// protojson writes ids in base64, which is not OTLP.
	text, err := protojson.Marshal(&collogs.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{
		ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{{SeverityText: "INFO"}}}}}}})
	if err != nil {
		t.Fatal(err)
	}

	if resp, err := client.Export(t.Context(), request); err != nil || resp.GetPartialSuccess().GetRejectedLogRecords() != 0 {
		t.Errorf("gRPC: %v, %v", resp, err)
	}
	if code, body := post("application/x-protobuf", enc); code != http.StatusOK || body != "\n\x00" {
		t.Errorf("protobuf: %d %q", code, body)
	}
	if code, body := post("application/json", text); code != http.StatusOK || body != `{"partialSuccess":{}}` {
		t.Errorf("JSON: %d %s", code, body)
	}
	got := s.Batches()
	if len(got) != 3 || got[0].Len() != 3 || got[1].Len() != 3 || got[2].Len() != 1 {
		t.Fatalf("%d batches", len(got))
	}
	for _, b := range got {
		if m := b.Meta(); m.Signal != otlpdata.SignalLogs || m.Format != "otlp" {
			t.Errorf("%+v", m)
		}
	}
	if b, err := got[0].Encoded(); err != nil || !bytes.Equal(b, enc) {
		t.Errorf("the bytes have changed: %v", err)
	}

	answer = &pipeline.Partial{Rejected: 2, Err: errors.New("too old")}
	if resp, err := client.Export(t.Context(), request); err != nil || resp.GetPartialSuccess().GetRejectedLogRecords() != 2 ||
		resp.GetPartialSuccess().GetErrorMessage() != "too old" {
		t.Errorf("gRPC: %v, %v", resp, err)
	}
	if code, body := post("application/json", text); code != http.StatusOK ||
		body != `{"partialSuccess":{"errorMessage":"too old","rejectedLogRecords":"2"}}` {
		t.Errorf("JSON: %d %s", code, body)
	}
	answer = pipeline.Overloaded(errors.New("full"), 0)
	if _, err := client.Export(t.Context(), request); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC: %v", err)
	}
	if code, body := post("application/x-protobuf", enc); code != http.StatusTooManyRequests {
		t.Errorf("protobuf: %d %q", code, body)
	}
	for _, bad := range []string{"garbage", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"xy"}]}]}]}`} {
		if code, body := post("application/json", []byte(bad)); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, code, body)
		}
	}
	none := map[string]float64{"metrics": 0, "logs": 0}
	if counted := f.Samples(t, "tracing_otlp_rejected_items_total", "signal"); !maps.Equal(counted, none) {
		t.Errorf("counted as rejected: %v", counted)
	}
}

// A receiver that is only in pipelines of logs rejects spans.
func TestOnlyLogs(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := startTaking(t, s, otlpdata.SignalLogs)
	var spans coltrace.ExportTraceServiceRequest
	if err := proto.Unmarshal(request(2), &spans); err != nil {
		t.Fatal(err)
	}
	resp, err := coltrace.NewTraceServiceClient(f.dial(t)).Export(t.Context(), &spans)
	if p := resp.GetPartialSuccess(); err != nil || p.GetRejectedSpans() != 2 ||
		!strings.HasPrefix(p.GetErrorMessage(), "this server accepts logs only and discarded 2 spans; set OTEL_TRACES_EXPORTER=none") {
		t.Errorf("%v, %v", resp, err)
	}
	if counted := f.Samples(t, "tracing_otlp_rejected_items_total", "signal"); counted["traces"] != 2 || s.Spans() != 0 {
		t.Errorf("counted %v, passed on %d", counted, s.Spans())
	}
}
