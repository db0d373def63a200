package config_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// printed is what print-config says of a preset, by default and with what args change.
func printed(t *testing.T, preset string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"print-config", preset}, args...)
	if code := app.Run(t.Context(), args, &stdout, &stderr, tracing.Components(), tracing.Presets()...); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr.String())
	}
	return stdout.String()
}

var (
	endpointOf = regexp.MustCompile(`(?m)^ +endpoint: (.*)$`)
	dataDirOf  = regexp.MustCompile(`(?m)^ +data_dir: (.*)$`)
)

// Every preset starts, on free ports, and is ready.
func TestPresetsStart(t *testing.T) {
	for _, preset := range tracing.Presets() {
		t.Run(preset.Name, func(t *testing.T) {
			free := strings.NewReplacer(":4317", ":0", ":4318", ":0", ":6831", ":0", ":6832", ":0", ":5775", ":0", ":5778", ":0",
				":14250", ":0", ":14268", ":0", ":14269", ":0", ":14271", ":0", ":16685", ":0", ":16686", ":0", ":16687", ":0")
			yaml := free.Replace(string(preset.YAML))
			if preset.Name == "collector" {
				yaml = strings.Replace(yaml, ":17271", ":0", 1)
			}
			if preset.Name == "agent" { // its next hop is no listener; nothing needs to be there
				yaml = strings.ReplaceAll(yaml, "${TRACING_COLLECTOR_HOST:-localhost}:0", "localhost:1")
			}
			o := app.LoadOptions{Factories: tracing.Components(), Strict: true,
				Presets: []app.Preset{{Name: preset.Name, YAML: []byte(yaml)}}}
			dir, err := app.ParseSet("service::data_dir=" + filepath.Join(t.TempDir(), preset.Name))
			if err != nil {
				t.Fatal(err)
			}
			o.Overrides = append(o.Overrides, dir)
			cfg, err := app.Load(o)
			if err != nil {
				t.Fatal(err)
			}
			p := harness.StartConfig(t, cfg)
			if status, body := harness.Fetch(t, p.AdminURL()+"/"); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// An agent, a collector and a query service run beside each other as they are.
func TestProcessesDoNotClash(t *testing.T) {
	t.Setenv("TRACING_COLLECTOR_HOST", "collector.example")
	t.Setenv("TRACING_STORAGE_HOST", "store.example")
	configs := []string{printed(t, "agent"), printed(t, "query"), printed(t, "collector", "--collector.zipkin.host-port=localhost:9411")}
	seen := map[string]bool{}
	for _, c := range configs {
		for _, m := range append(endpointOf.FindAllStringSubmatch(c, -1), dataDirOf.FindStringSubmatch(c)) {
			if nextHop := m[1] == "collector.example:14250"; seen[m[1]] && !nextHop {
				t.Errorf("two of them use %s", m[1])
			}
			seen[m[1]] = true
		}
	}
	for _, want := range []string{"collector.example:14250", "store.example:17271", "localhost:17271", "./data"} {
		if !seen[want] {
			t.Errorf("none uses %s", want)
		}
	}
}

// What listens, listens on localhost unless the environment says otherwise.
func TestPresetsListenWhereTheyAreTold(t *testing.T) {
	for _, host := range []string{"localhost", "0.0.0.0"} {
		if host != "localhost" {
			t.Setenv("TRACING_LISTEN_HOST", host)
		}
		for _, preset := range tracing.Presets() {
			for _, m := range endpointOf.FindAllStringSubmatch(printed(t, preset.Name), -1) {
				nextHop := preset.Name == "agent" && m[1] == "localhost:14250" || preset.Name == "query" && m[1] == "localhost:17271"
				if !strings.HasPrefix(m[1], host+":") && !nextHop {
					t.Errorf("%s: %s is not on %s", preset.Name, m[1], host)
				}
			}
		}
	}
}

// Flags of a query service say where its store is, and how it is reached.
func TestStorageFlags(t *testing.T) {
	for line, want := range map[string]string{
		"--grpc-storage.server=store.example:17271": "endpoint: store.example:17271",
		"--grpc-storage.connection-timeout=3s":      "connect_timeout: 3s",
		"--grpc-storage.tls.enabled":                "insecure: false",
		"--multi-tenancy.header=x-scope":            "tenant_header: x-scope",
	} {
		if got := printed(t, "query", line); !strings.Contains(got, want+"\n") {
			t.Errorf("%s: %q is missing in\n%s", line, want, got)
		}
	}
	if got := printed(t, "collector", "--grpc.host-port=:1"); !strings.Contains(got, "remote_storage:\n    endpoint: :1\n") {
		t.Errorf("got\n%s", got)
	}
}
