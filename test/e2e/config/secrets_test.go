package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestSecretsAreNotShown checks that neither print-config nor errors show secrets in headers and
// URLs, from a file, flags and environment variables.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "S3CR3T"
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	const config = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters:
  otlphttp: {traces_endpoint: "https://host/v1/traces?api_key=S3CR3T&region=eu", headers: {authorization: S3CR3T}}
extensions:
  sampling: {file: {path: "https://host/strategies.json?token=${TOKEN}#S3CR3T"}, http: {endpoint: "localhost:0"}}
service:
  extensions: [sampling]
  pipelines: {traces: {receivers: [otlp], exporters: [otlphttp]}}
`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOKEN", secret)
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := inprocess.RunCommand(t, append([]string{args[0], "--config", file}, args[1:]...)...)
		if code != want || strings.Contains(stdout+stderr, secret) {
			t.Errorf("%v: exit code %d, want %d; output:\n%s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
	for _, args := range [][]string{{"print-config"}, {"print-config", "--origin", "--defaults"},
		{"print-config", "--origin", "--set", "exporters.otlphttp.headers.x=S3CR3T"},
		{"print-config", "--origin", "--sampling.strategies-file=https://host/s.json?token=S3CR3T"}} {
		out := run(0, args...)
		for _, part := range []string{"api_key=***&region=***", "?token=***", "authorization: '***'"} {
			if !strings.Contains(out, part) {
				t.Errorf("%v: %s is missing in\n%s", args, part, out)
			}
		}
	}
	for _, args := range [][]string{
		{"--set", "exporters.otlphttp.hedaers.authorization=S3CR3T"},
		{"--set", "exporters.otlphttp.headers=S3CR3T"},
		{"--set", "exporters.otlphttp.headers.authorization={S3CR3T"},
		{"--set", "exporters.otlphttp.headers.authorization:S3CR3T"},
		{"--set", "exporters.otlphttp.traces_endpoint=https://ann:S3CR3T@host"},
		{"--set", "exporters.otlphttp.traces_endpoint=https://ann:S3CR3T@host:port"},
		{"--set", "exporters.otlphttp.endpoint=htp://host?token=S3CR3T"},
		{"--set", "exporters.otlp.endpoint=http://ann:S3CR3T@host:4317"},
		{"--set", "exporters.otlp.endpoint=ann:S3CR3T@host:4317"},
		{"--set", "exporters.otlp.endpoint=dns://ann:S3CR3T@host/"},
		{"--sampling.strategies-file=https://ann:S3CR3T@host/s.json"},
		{"--grpc-storage.server=http://ann:S3CR3T@host:1"},
		{"--set", "exporters.grpc.endpoints=[ann:S3CR3T@host:1,b:1]"},
		{"--set", `exporters.grpc.endpoints=["ann:S3CR3T@host:1,b:1"]`},
		{"--query.additional-headers=S3CR3T"},
	} {
		run(2, append([]string{"validate"}, args...)...)
	}
	t.Setenv("SAMPLING_STRATEGIES_FILE", "https://ann:S3CR3T@host/s.json")
	run(2, "validate")
}
