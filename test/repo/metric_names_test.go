package repo_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestMetricNames checks the metric families of the preset all-in-one.
func TestMetricNames(t *testing.T) {
	p := inprocess.Start(t)
	sendTraffic(p)
	harness.CheckMetricNames(t, "testdata/metrics.golden", p.AdminURL())
}

// sendTraffic calls every route, so that its metrics exist.
func sendTraffic(p *inprocess.Program) {
	p.T.Helper()
	expect := func(want, got int, body string) {
		p.T.Helper()
		if got != want {
			p.T.Fatalf("status %d, want %d: %s", got, want, body)
		}
	}
	get := func(want int, path string) {
		p.T.Helper()
		status, body := harness.Fetch(p.T, p.QueryURL()+path)
		expect(want, status, string(body))
	}
	post := func(want int, contentType, body string) {
		p.T.Helper()
		status, answer := p.PostOTLP(contentType, body)
		expect(want, status, answer)
	}
	const id = "5b8efff798038103d269b633813fc60c"
	post(http.StatusOK, "application/json", harness.JSONSpan(id, "checkout", "pay", time.Now(), time.Second))
	post(http.StatusBadRequest, "application/json", "{}{}")
	get(http.StatusOK, "/api/services")
	get(http.StatusOK, "/api/services/checkout/operations")
	get(http.StatusOK, "/api/operations?service=checkout")
	get(http.StatusOK, "/api/traces?service=checkout")
	get(http.StatusOK, "/api/traces/"+id)
	get(http.StatusNotFound, "/api/traces/1")
	get(http.StatusOK, "/api/dependencies")
}
