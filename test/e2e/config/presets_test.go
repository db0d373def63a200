package config_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestPresets checks that every preset is valid without warnings, and that its file is embedded
// unchanged.
func TestPresets(t *testing.T) {
	for _, p := range tracing.Presets() {
		onDisk, err := os.ReadFile(filepath.Join(harness.Root(t), "config-examples", p.Name+".yaml"))
		if err != nil || !bytes.Equal(onDisk, p.YAML) {
			t.Errorf("%s: the embedded file differs: %v", p.Name, err)
		}
		if code, _, stderr := inprocess.RunCommand(t, "validate", p.Name, "--strict"); code != 0 {
			t.Errorf("%s: exit code %d: %s", p.Name, code, stderr)
		}
	}
}

// TestPresetsStart checks that every preset starts and becomes ready. The query services do not,
// because there is no store that they could read.
func TestPresetsStart(t *testing.T) {
	for _, preset := range tracing.Presets() {
		t.Run(preset.Name, func(t *testing.T) {
			p := inprocess.StartPreset(t, preset.Name)
			want := http.StatusOK
			if strings.HasPrefix(preset.Name, "query") {
				want = http.StatusServiceUnavailable
			}
			harness.Poll(t, "the process has the expected state", func() bool {
				status, _ := harness.Fetch(t, p.AdminURL()+"/readyz")
				return status == want
			})
		})
	}
}

// printConfig returns the output of print-config for a preset.
func printConfig(t *testing.T, preset string, args ...string) string {
	t.Helper()
	code, stdout, stderr := inprocess.RunCommand(t, append([]string{"print-config", preset}, args...)...)
	if code != 0 {
		t.Fatalf("%s %q: exit code %d: %s", preset, args, code, stderr)
	}
	return stdout
}

var (
	endpoint = regexp.MustCompile(`(?m)^ +endpoint: (.*)$`)
	dataDir  = regexp.MustCompile(`(?m)^ +data_dir: (.*)$`)
)

// TestPresetsDoNotConflict checks that an agent, a collector and a query service can run on one
// host, also a collector with an ingester instead: they use different addresses and data
// directories.
func TestPresetsDoNotConflict(t *testing.T) {
	t.Setenv("TRACING_COLLECTOR_HOST", "collector.example")
	t.Setenv("TRACING_STORAGE_HOST", "store.example")
	agent, query := printConfig(t, "agent"), printConfig(t, "query")
	checkConflicts(t, agent, query, printConfig(t, "collector", "--collector.zipkin.host-port=localhost:9411"))
	checkConflicts(t, agent, query, printConfig(t, "collector-kafka"), printConfig(t, "ingester"))
}

// checkConflicts checks that configurations can run on one host, and what they use.
func checkConflicts(t *testing.T, configs ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range configs {
		for _, m := range append(endpoint.FindAllStringSubmatch(c, -1), dataDir.FindStringSubmatch(c)) {
			if nextHop := m[1] == "collector.example:14250"; seen[m[1]] && !nextHop {
				t.Errorf("two presets use %s", m[1])
			}
			seen[m[1]] = true
		}
	}
	for _, want := range []string{"collector.example:14250", "store.example:17271", "localhost:17271", "./data"} {
		if !seen[want] {
			t.Errorf("no preset uses %s", want)
		}
	}
}

// TestListenHost checks that every listener is on localhost unless TRACING_LISTEN_HOST is set.
func TestListenHost(t *testing.T) {
	for _, host := range []string{"localhost", "0.0.0.0"} {
		if host != "localhost" {
			t.Setenv("TRACING_LISTEN_HOST", host)
		}
		for _, preset := range tracing.Presets() {
			for _, m := range endpoint.FindAllStringSubmatch(printConfig(t, preset.Name), -1) {
				nextHop := preset.Name == "agent" && m[1] == "localhost:14250" || preset.Name == "query" && m[1] == "localhost:17271"
				if !strings.HasPrefix(m[1], host+":") && !nextHop {
					t.Errorf("%s: %s is not on %s", preset.Name, m[1], host)
				}
			}
		}
	}
}

// TestStorageFlagsOfQuery checks the flags of a query service for its store.
func TestStorageFlagsOfQuery(t *testing.T) {
	for line, want := range map[string]string{
		"--grpc-storage.server=store.example:17271": "endpoint: store.example:17271",
		"--grpc-storage.connection-timeout=3s":      "connect_timeout: 3s",
		"--grpc-storage.tls.enabled":                "insecure: false",
		"--multi-tenancy.header=x-scope":            "tenant_header: x-scope",
	} {
		if got := printConfig(t, "query", line); !strings.Contains(got, want+"\n") {
			t.Errorf("%s: %q is missing in\n%s", line, want, got)
		}
	}
	if got := printConfig(t, "collector", "--grpc.host-port=:1"); !strings.Contains(got, "remote_storage:\n    endpoint: :1\n") {
		t.Errorf("got\n%s", got)
	}
}
