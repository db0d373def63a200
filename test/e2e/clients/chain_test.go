package clients_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"google.golang.org/grpc/credentials"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// A file for the OpenTelemetry Collector runs unchanged, and what it receives over TLS arrives, complete, at the all-in-one that it forwards
// to.
func TestCollectorFileRunsUnchanged(t *testing.T) {
	backend := harness.Start(t)
	dir := t.TempDir()
	pool := harness.SelfSigned(t, dir)
	env := map[string]string{"GRPC_PORT": "0", "HTTP_PORT": "0", "CERT_DIR": dir, "NEXT_HOP": backend.OTLPGRPC()}
	cfg, err := app.Load(app.LoadOptions{Factories: tracing.Components(), Files: []string{"testdata/otelcol.yaml"}, Strict: true,
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	collector := harness.StartConfig(t, cfg)

	port := collector.OTLPGRPC()[strings.LastIndexByte(collector.OTLPGRPC(), ':'):]
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(net.JoinHostPort("localhost", port[1:])),
		otlptracegrpc.WithTLSCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	sent := shop(t, exporter)
	if err := collector.Stop(); err != nil { // empties the queue
		t.Error(err)
	}
	got := harness.Ask[[]harness.UITrace](backend, "/api/traces/"+sent[0].SpanContext().TraceID().String())
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

// Tenants are kept apart from the receiver to the answer.
func TestTenantsEndToEnd(t *testing.T) {
	p := harness.Start(t, "receivers::otlp::protocols::http::tenancy={header: x-org}", "receivers::otlp::protocols::grpc::tenancy={header: x-org}",
		"extensions::query::http::tenancy={header: x-org, tenants: [a, b]}")
	body := harness.JSONSpan("5b8efff798038103d269b633813fc60c", "checkout", "pay", time.Now().Add(-time.Minute), time.Second)
	for _, c := range []struct {
		tenant, want string
		status       int
	}{{"a", `{"partialSuccess":{}}`, 200}, {"", `{"code":7,"message":"missing tenant header"}`, 403}} {
		if status, answer := p.Request("POST", "http://"+p.OTLPHTTP()+"/v1/traces", body, "x-org", c.tenant); status != c.status || answer != c.want {
			t.Errorf("sending as %q: %d %s", c.tenant, status, answer)
		}
	}
	for tenant, want := range map[string]struct {
		status int
		body   string
	}{"a": {200, `"operationName":"pay"`}, "b": {404, "trace not found"}, "c": {401, "unknown tenant"}, "": {401, "missing tenant header"}} {
		status, answer := p.Request("GET", p.QueryURL()+"/api/traces/5b8efff798038103d269b633813fc60c", "", "x-org", tenant)
		if status != want.status || !strings.Contains(answer, want.body) {
			t.Errorf("reading as %q: %d %s", tenant, status, answer)
		}
	}
}
