package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestJSONSpan sends the span that the README sends with curl, and reads its trace.
func TestJSONSpan(t *testing.T) {
	p := inprocess.Start(t)
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	if status, body := p.PostOTLP("application/json", harness.JSONSpan("5B8EFFF798038103D269B633813FC60C", "checkout", "pay", at, 250*time.Millisecond)); status != 200 || body != `{"partialSuccess":{}}` {
		t.Fatalf("%d %s", status, body)
	}
	got := inprocess.Ask[[]harness.UITrace](p, "/api/traces/5b8efff798038103d269b633813fc60c")
	if len(got) != 1 || len(got[0].Spans) != 1 {
		t.Fatalf("%+v", got)
	}
	s := got[0].Spans[0]
	if s.SpanID != harness.JSONSpanID || s.OperationName != "pay" || s.StartTime != at.UnixMicro() || s.Duration != 250_000 ||
		!slices.Equal(harness.TagStrings(s.Tags), []string{`span.kind:string="server"`}) {
		t.Errorf("%+v", s)
	}
}

// TestRefusals checks the statuses of invalid requests, and that they are not counted as spans.
func TestRefusals(t *testing.T) {
	p := inprocess.Start(t)
	for _, c := range []struct {
		contentType, body string
		status            int
	}{
		{"application/json", `{"resourceSpans": 5}`, 400},
		{"application/json", `{}{}`, 400},
		{"application/x-protobuf", "\xff", 400},
		{"text/plain", "", 415},
	} {
		if status, body := p.PostOTLP(c.contentType, c.body); status != c.status {
			t.Errorf("%s %q: %d %s", c.contentType, c.body, status, body)
		}
	}
	m := harness.CheckAccounting(t, p.AdminURL())
	if m[`tracing_pipeline_spans_total{component="otlp",kind="receiver",outcome="received",reason=""}`] != 0 {
		t.Error("refused requests were counted as spans")
	}
}

// TestInterfaceMetricsAndDebugLines checks metrics and log lines whose names and labels are fixed:
// users and dashboards rely on them.
func TestInterfaceMetricsAndDebugLines(t *testing.T) {
	p := inprocess.Start(t, "service::telemetry::logs::level=debug")
	p.PostOTLP("application/json", harness.JSONSpan("0000000000000000d269b633813fc60c", "Check Out", "pay", time.Now(), time.Second))
	m := harness.Metrics(t, p.AdminURL())
	for _, want := range []string{
		`tracing_collector_spans_received{debug="false",format="otlp",svc="check_out",transport="http"}`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="check_out",transport="http"}`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="check_out"}`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="check_out"}`,
	} {
		if m[want] != 1 {
			t.Errorf("%s is %v, want 1", want, m[want])
		}
	}
	for _, want := range []string{
		`"msg":"Span batch processed by the collector.","component":"otlp","kind":"receiver","ok":true}`,
		`"msg":"Span written to the storage by the collector","component":"disk","kind":"exporter","trace-id":"d269b633813fc60c","span-id":"eee19b7ec3c1b174"}`,
	} {
		if !strings.Contains(p.Log.String(), want) {
			t.Errorf("no log line with %s in\n%s", want, p.Log)
		}
	}
}
