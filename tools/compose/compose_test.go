// Package compose_test checks the files in deploy/compose.
package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup)) }

// load loads files of deploy/compose, merged as `docker compose -f ... -f ...` merges them.
func load(t *testing.T, files ...string) *types.Project {
	t.Helper()
	for i := range files {
		files[i] = filepath.Join(harness.Root(t), "deploy", "compose", files[i])
	}
	options, err := cli.NewProjectOptions(files, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// The files are valid, each service runs a valid configuration, and only ports that receive spans
// are published to other machines.
func TestProjects(t *testing.T) {
	receiving := map[string]bool{"4317": true, "4318": true, "14250": true, "14268": true, "6831": true, "6832": true, "5778": true}
	f := func(services int, files ...string) *types.Project {
		t.Helper()
		project := load(t, files...)
		if len(project.Services) != services {
			t.Errorf("%v: %d services, want %d", files, len(project.Services), services)
		}
		for name, service := range project.Services {
			for _, p := range service.Ports {
				if !receiving[p.Published] && p.HostIP != "127.0.0.1" {
					t.Errorf("%s: port %s is published on %q", name, p.Published, p.HostIP)
				}
			}
			if strings.HasPrefix(service.Image, "tracing") {
				t.Run(name, func(t *testing.T) { validate(t, service) })
			}
		}
		return project
	}
	f(1, "all-in-one.yaml")
	f(3, "split.yaml")
	f(7, "kafka-clickhouse.yaml")
	grafana := f(2, "all-in-one.yaml", "grafana.yaml").Services["grafana"]
	if _, err := os.Stat(grafana.Volumes[0].Source); err != nil {
		t.Errorf("data sources of Grafana: %v", err)
	}
	for name, service := range f(3, "split.yaml", "debug.yaml").Services {
		last := service.Ports[len(service.Ports)-1]
		if !strings.HasPrefix(service.Image, "tracing-debug:") || last.Target != 12345 || last.HostIP != "127.0.0.1" {
			t.Errorf("%s with a debugger: %s, %+v", name, service.Image, last)
		}
	}
}

// validate checks the configuration that a service runs, with its command and environment.
func validate(t *testing.T, service types.ServiceConfig) {
	t.Helper()
	for name, value := range service.Environment {
		t.Setenv(name, *value)
	}
	args := append([]string{"validate", "--strict", "--data-dir", t.TempDir()}, service.Command...)
	if code, _, stderr := harness.Command(t, args...); code != 0 {
		t.Errorf("%s: %s", service.Name, stderr)
	}
}
