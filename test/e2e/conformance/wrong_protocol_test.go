package conformance_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tracing-backend/tracing/test/harness"
)

// A client with the port of another protocol gets a response that says so where its protocol allows
// one; the server counts and logs the connection.
func TestWrongProtocol(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir())
	count := func(listener, reason string) float64 {
		return harness.Metrics(t, p.AdminURL())[fmt.Sprintf(
			`tracing_server_refused_requests_total{component="otlp",kind="receiver",listener="%s",reason="%s"}`, listener, reason)]
	}
	check := func(listener, reason, log string) {
		t.Helper()
		harness.Poll(t, "refusal of "+listener, func() bool { return count(listener, reason) >= 1 })
		if line := p.Await("msg", log, "listener", listener); line["remedy"] == "" || line["client"] == "" {
			t.Errorf("log line %v", line)
		}
	}

	// HTTP on a gRPC port, with a body that is longer than what the server reads first.
	const want = "this port expects gRPC, not HTTP/1.1; send to the HTTP port (for OTLP usually 4318)"
	resp, err := http.Post("http://"+p.OTLPGRPC()+"/v1/traces", "application/json", strings.NewReader(`{"x":"`+strings.Repeat("a", 100_000)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), want) {
		t.Errorf("%v: %s: %s", err, resp.Status, body)
	}
	check("protocols.grpc", "http_on_grpc", "refused HTTP request on a gRPC port")
	checkWaitingClient(t, "http://"+p.OTLPGRPC()+"/v1/traces")

	// gRPC on an HTTP port.
	conn, err := grpc.NewClient(p.OTLPHTTP(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	if err == nil || !strings.Contains(err.Error(), "this port expects HTTP/1.1, not gRPC; send to the gRPC port (for OTLP usually 4317)") {
		t.Errorf("gRPC on an HTTP port: %v", err)
	}
	check("protocols.http", "grpc_on_http", "refused gRPC connection on an HTTP port")

	// TLS on ports without TLS.
	for listener, addr := range map[string]string{"protocols.grpc": p.OTLPGRPC(), "protocols.http": p.OTLPHTTP()} {
		if c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}); err == nil {
			c.Close()
			t.Errorf("%s has TLS", listener)
		}
		check(listener, "tls_on_plaintext", "refused TLS connection on a port without TLS")
	}
	if status, _ := harness.Request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", "{}"); status != 200 {
		t.Errorf("a request on the right port: %d", status)
	}
}

// checkWaitingClient checks that a client which waits before it sends the body is refused as well.
func checkWaitingClient(t *testing.T, url string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Expect", "100-continue")
	c := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Error(resp.Status)
	}
}

// A listener with TLS refuses clients without TLS.
func TestPlaintextOnTLS(t *testing.T) {
	dir := t.TempDir()
	harness.SelfSigned(t, dir)
	p := harness.RunYAML(t, fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "localhost:0", tls: {cert_file: %[1]s/cert.pem, key_file: %[1]s/key.pem}}
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0"}}
service: {extensions: [admin], pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}`, dir))
	resp, err := http.Get("http://" + p.OTLPGRPC())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %s", resp.Status)
	}
	p.Await("msg", "refused connection without TLS on a port with TLS", "listener", "protocols.grpc")
}
