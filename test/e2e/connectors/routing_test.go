package connectors_test

import (
	"strings"
	"testing"
)

const environments = `
connectors:
  routing:
    default_pipelines: [traces/rest]
    table:
      - {condition: 'attributes["deployment.environment"] == "production"', pipelines: [traces/production]}
      - {statement: 'route() where attributes["deployment.environment"] == "staging"', pipelines: [traces/staging, traces/rest]}
service:
  extensions: [EXTENSIONS]
  pipelines:
    traces: {receivers: [otlp], exporters: [routing]}
    traces/production: {receivers: [routing], exporters: [memory/production]}
    traces/staging: {receivers: [routing], exporters: [memory/staging]}
    traces/rest: {receivers: [routing], exporters: [memory/rest]}
`

// Each environment gets its own traces, even if a request has traces of several.
func TestRoutingByResource(t *testing.T) {
	stores := []string{"production", "staging", "rest"}
	p := run(t, stores, environments)
	p.send(traces(0, 200, "production"))
	mixed := append(traces(200, 20, "staging"), traces(220, 30, "dev")...)
	p.send(mixed)
	if got := p.counts(stores...); got != "production:200 staging:20 rest:50" {
		t.Error(got)
	}
}

// Spans that no row of the table matches are dropped and counted.
func TestRoutingDrops(t *testing.T) {
	stores := []string{"production", "staging", "rest"}
	p := run(t, stores, strings.Replace(environments, "default_pipelines: [traces/rest]", "", 1))
	p.send(append(traces(0, 20, "production"), traces(20, 30, "dev")...))
	if got := p.counts(stores...); got != "production:20 staging:0 rest:0" {
		t.Error(got)
	}
	if code := p.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, a := range p.Accounting()["components"].([]any) {
		if c := a.(map[string]any); c["kind"] == "connector" && (c["in"] != 50.0 || c["sent"] != 20.0 || c["dropped"] != 30.0) {
			t.Errorf("accounting of the connector: %v", c)
		}
	}
}

// Each tenant gets its own traces, by a header of the request.
func TestRoutingByRequest(t *testing.T) {
	stores := []string{"acme", "other"}
	p := run(t, stores, `
connectors:
  routing:
    default_pipelines: [traces/other]
    table:
      - {context: request, condition: 'request["X-Tenant-ID"] == "acme"', pipelines: [traces/acme]}
service:
  extensions: [EXTENSIONS]
  pipelines:
    traces: {receivers: [otlp], exporters: [routing]}
    traces/acme: {receivers: [routing], exporters: [memory/acme]}
    traces/other: {receivers: [routing], exporters: [memory/other]}
`)
	for i, tenant := range []string{"acme", "ecorp", ""} {
		some := traces(100*i, 10+i, "production")
		for j := range some {
			some[j].tenant = tenant
		}
		p.send(some)
	}
	if got := p.counts(stores...); got != "acme:10 other:23" {
		t.Error(got)
	}
}
