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

// nodeClients are the clients of testdata/clients/client.js.
func nodeClients(t *testing.T) []client {
	t.Helper()
	dir := harness.InstallNode(t)
	var all []client
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
		all = append(all, client{"node-" + c.kind, func(t *testing.T, d *deployment, start time.Time) sent {
			if dir == "" {
				t.Skip("there is no node on this machine: the clients in Node are left out")
			}
			return runNode(t, dir, c.kind, c.target(d), start)
		}})
	}
	return all
}

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
