package harness

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// post sends a body to the OTLP/HTTP listener and returns status and answer.
func (p *Program) PostOTLP(contentType, body string) (int, string) {
	p.T.Helper()
	return p.Request(http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", body, "Content-Type", contentType)
}

// request sends a request with headers, those without a value left out, as JSON unless they say otherwise.
func (p *Program) Request(method, url, body string, header ...string) (int, string) {
	p.T.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		p.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.T.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.T.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// span returns OTLP/JSON of a request with one span.
func JSONSpan(traceID, service, name string, startAt time.Time, length time.Duration) string {
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},
		"scopeSpans":[{"spans":[{"traceId":%q,"spanId":"eee19b7ec3c1b174","name":%q,"kind":2,
		"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}`,
		service, traceID, name, startAt.UnixNano(), startAt.Add(length).UnixNano())
}
