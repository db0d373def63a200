package harness

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Fetch gets a URL and returns status and body of the response.
func Fetch(tb testing.TB, url string) (status int, body []byte) {
	tb.Helper()
	resp, err := http.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, b
}

// Request sends a request and returns status and body of the response. Headers are written as name,
// value, name, value; those with an empty value are omitted. The content type is JSON unless a
// header sets it.
func Request(tb testing.TB, method, url, body string, header ...string) (status int, answer string) {
	tb.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	req.Host = req.Header.Get("Host") // "" for the host of the URL
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// PostJSON sends an OTLP request in JSON, and fails the test unless it is accepted.
func (p *Process) PostJSON(body string) {
	p.T.Helper()
	if status, answer := Request(p.T, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", body); status != http.StatusOK {
		p.T.Fatalf("status %d: %s", status, answer)
	}
}

// JSONSpanID is the id of the span that [JSONSpan] returns.
const JSONSpanID = "eee19b7ec3c1b174"

// JSONSpan returns an OTLP request in JSON with one server span.
func JSONSpan(traceID, service, name string, start time.Time, duration time.Duration) string {
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},
		"scopeSpans":[{"spans":[{"traceId":%q,"spanId":%q,"name":%q,"kind":2,
		"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}`,
		service, traceID, JSONSpanID, name, start.UnixNano(), start.Add(duration).UnixNano())
}
