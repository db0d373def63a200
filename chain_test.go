package tracing_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"google.golang.org/grpc/credentials"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
)

// selfSigned writes cert.pem and key.pem for localhost to a folder, and returns who trusts them.
func selfSigned(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// A file for the OpenTelemetry Collector runs unchanged, and what it receives over TLS arrives, complete, at the all-in-one that it forwards
// to.
func TestCollectorFileRunsUnchanged(t *testing.T) {
	backend := start(t)
	dir := t.TempDir()
	pool := selfSigned(t, dir)
	env := map[string]string{"GRPC_PORT": "0", "HTTP_PORT": "0", "CERT_DIR": dir, "NEXT_HOP": backend.grpc()}
	cfg, err := pipeline.Load(pipeline.LoadOptions{Factories: tracing.Components(), Files: []string{"testdata/otelcol.yaml"}, Strict: true,
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	collector := startConfig(t, cfg)

	port := collector.grpc()[strings.LastIndexByte(collector.grpc(), ':'):]
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(net.JoinHostPort("localhost", port[1:])),
		otlptracegrpc.WithTLSCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	sent := shop(t, exporter)
	if err := collector.stop(); err != nil { // empties the queue
		t.Error(err)
	}
	got := ask[[]uiTrace](backend, "/api/traces/"+sent[0].SpanContext().TraceID().String())
	if len(got) != 1 || len(got[0].Spans) != len(sent) {
		t.Fatalf("%d spans were sent, got %+v", len(sent), got)
	}
	for _, s := range sent {
		checkSpan(t, got[0], s)
	}
	if log := collector.log.String(); !strings.Contains(log, `"acknowledged-spans-are":"otlp: queued, debug: nowhere"`) || !strings.Contains(log, `"balanced":true`) {
		t.Errorf("%s", log)
	}
}

// Tenants are kept apart from the receiver to the answer.
func TestTenantsEndToEnd(t *testing.T) {
	p := start(t, "receivers::otlp::protocols::http::tenancy={header: x-org}", "receivers::otlp::protocols::grpc::tenancy={header: x-org}",
		"extensions::query::http::tenancy={header: x-org, tenants: [a, b]}")
	body := jsonSpan("5b8efff798038103d269b633813fc60c", "checkout", "pay", time.Now().Add(-time.Minute), time.Second)
	for _, c := range []struct {
		tenant, want string
		status       int
	}{{"a", `{"partialSuccess":{}}`, 200}, {"", `{"code":7,"message":"missing tenant header"}`, 403}} {
		if status, answer := p.request("POST", "http://"+p.http()+"/v1/traces", body, "x-org", c.tenant); status != c.status || answer != c.want {
			t.Errorf("sending as %q: %d %s", c.tenant, status, answer)
		}
	}
	for tenant, want := range map[string]struct {
		status int
		body   string
	}{"a": {200, `"operationName":"pay"`}, "b": {404, "trace not found"}, "c": {401, "unknown tenant"}, "": {401, "missing tenant header"}} {
		status, answer := p.request("GET", p.query()+"/api/traces/5b8efff798038103d269b633813fc60c", "", "x-org", tenant)
		if status != want.status || !strings.Contains(answer, want.body) {
			t.Errorf("reading as %q: %d %s", tenant, status, answer)
		}
	}
}
