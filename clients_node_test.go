package tracing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// nodeClients are the clients of testdata/clients/client.js.
func nodeClients(t *testing.T) []client {
	t.Helper()
	dir := installNode(t)
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

// installNode makes a folder with the script and its libraries. It is "" where there is no Node.js.
func installNode(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Logf("clients of Node.js are skipped: %v", err)
		return ""
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc", "client.js"} {
		b, err := os.ReadFile(filepath.Join("testdata", "clients", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("installing the libraries: %v: %s", err, out)
	}
	return dir
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
