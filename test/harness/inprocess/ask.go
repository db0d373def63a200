package inprocess

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/tracing-backend/tracing/test/harness"
)

// PostOTLP sends a request to the OTLP receiver for HTTP, and returns status and body of the
// answer.
func (p *Program) PostOTLP(contentType, body string) (status int, answer string) {
	p.T.Helper()
	return harness.Request(p.T, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", body, "Content-Type", contentType)
}

// Ask gets a path of the query API and decodes the data of the response. It fails the test if the
// answer is an error.
func Ask[T any](p *Program, path string) T {
	p.T.Helper()
	status, body := harness.Fetch(p.T, p.QueryURL()+path)
	var a harness.UIAnswer
	if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK || len(a.Errors) > 0 {
		p.T.Fatalf("GET %s: %d %v %s", path, status, err, body)
	}
	var data T
	if err := json.Unmarshal(a.Data, &data); err != nil {
		p.T.Fatalf("GET %s: %v in %s", path, err, a.Data)
	}
	return data
}

// Search returns the ids of the traces that a search finds, in the order of the response.
// Parameters are written as name, value, name, value.
func (p *Program) Search(params ...string) []string {
	p.T.Helper()
	v := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		v.Add(params[i], params[i+1])
	}
	ids := []string{}
	for _, tr := range Ask[[]harness.UITrace](p, "/api/traces?"+v.Encode()) {
		ids = append(ids, tr.TraceID)
	}
	return ids
}
