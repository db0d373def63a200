package tracing_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// post sends a body to the OTLP/HTTP listener and returns status and answer.
func (p *program) post(contentType, body string) (int, string) {
	p.t.Helper()
	return p.request(http.MethodPost, "http://"+p.http()+"/v1/traces", body, "Content-Type", contentType)
}

// request sends a request with headers, those without a value left out, as JSON unless they say otherwise.
func (p *program) request(method, url, body string, header ...string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// span returns OTLP/JSON of a request with one span.
func jsonSpan(traceID, service, name string, startAt time.Time, length time.Duration) string {
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},
		"scopeSpans":[{"spans":[{"traceId":%q,"spanId":"eee19b7ec3c1b174","name":%q,"kind":2,
		"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}`,
		service, traceID, name, startAt.UnixNano(), startAt.Add(length).UnixNano())
}

// What the README shows: a span by curl, and its trace.
func TestPlainJSON(t *testing.T) {
	p := start(t)
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	if status, body := p.post("application/json", jsonSpan("5B8EFFF798038103D269B633813FC60C", "checkout", "pay", at, 250*time.Millisecond)); status != 200 || body != `{"partialSuccess":{}}` {
		t.Fatalf("%d %s", status, body)
	}
	got := ask[[]uiTrace](p, "/api/traces/5b8efff798038103d269b633813fc60c")
	if len(got) != 1 || len(got[0].Spans) != 1 {
		t.Fatalf("%+v", got)
	}
	s := got[0].Spans[0]
	if s.SpanID != "eee19b7ec3c1b174" || s.OperationName != "pay" || s.StartTime != at.UnixMicro() || s.Duration != 250_000 ||
		!slices.Equal(tagStrings(s.Tags), []string{`span.kind:string="server"`}) {
		t.Errorf("%+v", s)
	}
}

// Newest first, and the limit applies after everything else.
func TestSearchOrderAndLimit(t *testing.T) {
	p := start(t)
	at := time.Now().Add(-time.Hour)
	var ids []string
	for i := range 10 {
		id := fmt.Sprintf("%032x", i+1)
		if i%2 == 0 {
			ids = append([]string{strings.TrimPrefix(id, strings.Repeat("0", 16))}, ids...)
		}
		name := []string{"even", "odd"}[i%2]
		if status, body := p.post("application/json", jsonSpan(id, "checkout", name, at.Add(time.Duration(i)*time.Second), time.Second)); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	for limit := 1; limit <= 5; limit++ {
		got := p.search("service", "checkout", "operation", "even", "limit", fmt.Sprint(limit))
		if !slices.Equal(got, ids[:limit]) {
			t.Errorf("limit %d: %v, want %v", limit, got, ids[:limit])
		}
	}
}

func TestRefusals(t *testing.T) {
	p := start(t)
	for _, c := range []struct {
		contentType, body string
		status            int
	}{
		{"application/json", `{"resourceSpans": 5}`, 400},
		{"application/json", `{}{}`, 400},
		{"application/x-protobuf", "\xff", 400},
		{"text/plain", "", 415},
	} {
		if status, body := p.post(c.contentType, c.body); status != c.status {
			t.Errorf("%s %q: %d %s", c.contentType, c.body, status, body)
		}
	}
	m := metrics(t, p.admin())
	checkAccounting(t, m)
	if m[`tracing_pipeline_spans_total{component="otlp",kind="receiver",outcome="received",reason=""}`] != 0 {
		t.Error("refused requests were counted as spans")
	}
}

// The four metrics of the interface specification, with exactly its names and labels, and the two debug lines.
func TestInterfaceMetricsAndDebugLines(t *testing.T) {
	p := start(t, "service::telemetry::logs::level=debug")
	p.post("application/json", jsonSpan("0000000000000000d269b633813fc60c", "Check Out", "pay", time.Now(), time.Second))
	m := metrics(t, p.admin())
	for _, want := range []string{
		`tracing_collector_spans_received{debug="false",format="otlp",svc="check_out",transport="http"}`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="check_out",transport="http"}`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="check_out"}`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="check_out"}`,
	} {
		if m[want] != 1 {
			t.Errorf("%s is %v", want, m[want])
		}
	}
	for _, want := range []string{
		`"msg":"Span batch processed by the collector.","component":"otlp","kind":"receiver","ok":true}`,
		`"msg":"Span written to the storage by the collector","component":"disk","kind":"exporter","trace-id":"d269b633813fc60c","span-id":"eee19b7ec3c1b174"}`,
	} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("no line %s in\n%s", want, p.log)
		}
	}
}
