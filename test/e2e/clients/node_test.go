package clients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestNodeClients is like [TestClients] for the client libraries of Node.js, which the script
// client.js uses.
func TestNodeClients(t *testing.T) {
	harness.SkipIfShort(t)
	dir := harness.NodeDir(t)
	d := deploy(t)
	start := time.Now().Truncate(time.Millisecond)
	for _, c := range []struct {
		kind   string
		target func(d *deployment) string
	}{
		{"jaeger-udp", (*deployment).binary},
		{"jaeger-http", (*deployment).nativeHTTP},
		{"otel-jaeger-udp", (*deployment).binary},
		{"otel-jaeger-http", (*deployment).nativeHTTP},
		{"zipkin-v1", (*deployment).zipkin},
		{"zipkin-v2", (*deployment).zipkin},
		{"otel-zipkin", (*deployment).zipkin},
		{"otlp-json", (*deployment).otlpHTTP},
		{"otlp-json-gzip", (*deployment).otlpHTTP},
		{"otlp-proto", (*deployment).otlpHTTP},
		{"otlp-grpc", (*deployment).otlpGRPC},
	} {
		send := func(t *testing.T, d *deployment, start time.Time) sent {
			return runNode(t, dir, c.kind, c.target(d), start)
		}
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			checkClient(t, d, client{"node-" + c.kind, send}, start)
		})
	}
}

// runNode runs client.js in dir, which sends a trace with the library kind to target.
func runNode(t *testing.T, dir, kind, target string, start time.Time) sent {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("node", "client.js", kind, target, fmt.Sprint(start.UnixMilli()))
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var s sent
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return s
}
