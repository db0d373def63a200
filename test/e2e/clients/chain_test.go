package clients_test

import (
	"crypto/tls"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"google.golang.org/grpc/credentials"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestCollectorConfig runs a configuration file of the OpenTelemetry Collector. What it receives
// over TLS arrives unchanged at the next hop.
func TestCollectorConfig(t *testing.T) {
	backend := inprocess.Start(t)
	dir := t.TempDir()
	pool := harness.SelfSigned(t, dir)
	env := map[string]string{"GRPC_PORT": "0", "HTTP_PORT": "0", "CERT_DIR": dir, "NEXT_HOP": backend.OTLPGRPC()}
	yaml, err := os.ReadFile("testdata/otelcol.yaml")
	if err != nil {
		t.Fatal(err)
	}
	collector := inprocess.StartOptions(t, inprocess.Options{YAML: string(yaml), Strict: true, Env: env})

	port := collector.OTLPGRPC()[strings.LastIndexByte(collector.OTLPGRPC(), ':'):]
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(net.JoinHostPort("localhost", port[1:])),
		otlptracegrpc.WithTLSCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	sent := sendShop(t, exporter)
	if err := collector.Stop(); err != nil { // sends what is queued
		t.Error(err)
	}
	got := inprocess.Ask[[]harness.UITrace](backend, "/api/traces/"+sent[0].SpanContext().TraceID().String())
	if len(got) != 1 || len(got[0].Spans) != len(sent) {
		t.Fatalf("%d spans were sent, got %+v", len(sent), got)
	}
	for _, s := range sent {
		checkSpan(t, got[0], s)
	}
	if log := collector.Log.String(); !strings.Contains(log, `"acknowledged-spans-are":"otlp: queued, debug: nowhere"`) || !strings.Contains(log, `"balanced":true`) {
		t.Errorf("%s", log)
	}
}

// TestTenants checks that a tenant reads its own spans only.
func TestTenants(t *testing.T) {
	p := inprocess.Start(t, "receivers::otlp::protocols::http::tenancy={header: x-org}",
		"receivers::otlp::protocols::grpc::tenancy={header: x-org}",
		"extensions::query::http::tenancy={header: x-org, tenants: [a, b]}")
	body := harness.JSONSpan("5b8efff798038103d269b633813fc60c", "checkout", "pay", time.Now().Add(-time.Minute), time.Second)
	for _, c := range []struct {
		tenant, want string
		status       int
	}{{"a", `{"partialSuccess":{}}`, 200}, {"", `{"code":7,"message":"missing tenant header"}`, 403}} {
		if status, answer := harness.Request(t, "POST", "http://"+p.OTLPHTTP()+"/v1/traces", body, "x-org", c.tenant); status != c.status || answer != c.want {
			t.Errorf("sending as %q: %d %s", c.tenant, status, answer)
		}
	}
	for tenant, want := range map[string]struct {
		status int
		body   string
	}{"a": {200, `"operationName":"pay"`}, "b": {404, "trace not found"}, "c": {401, "unknown tenant"}, "": {401, "missing tenant header"}} {
		status, answer := harness.Request(t, "GET", p.QueryURL()+"/api/traces/5b8efff798038103d269b633813fc60c", "", "x-org", tenant)
		if status != want.status || !strings.Contains(answer, want.body) {
			t.Errorf("reading as %q: %d %s", tenant, status, answer)
		}
	}
}
