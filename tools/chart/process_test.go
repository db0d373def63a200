package chart_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tracing-backend/tracing/test/harness"
)

// container is the container of a workload as a process of this machine: its mounted folders are
// folders below root.
type container struct {
	name string
	args []string
	env  []string
	spec corev1.Container
}

// asProcess writes the files of the config map of a workload and returns its container.
func asProcess(t *testing.T, r release, w workload) container {
	t.Helper()
	root := t.TempDir()
	config := find[*corev1.ConfigMap](t, r, w.name)
	for name, text := range config.Data {
		writeFile(t, filepath.Join(root, "etc/tracing", name), text)
	}
	writeFile(t, filepath.Join(root, "data/empty"), "")
	spec := w.template.Spec.Containers[0]
	for _, m := range spec.VolumeMounts {
		for _, file := range secretFiles(w, m.Name) {
			writeFile(t, filepath.Join(root, m.MountPath, file), "secret")
		}
	}
	c := container{name: w.name, spec: spec}
	c.env = append(c.env, "HOSTNAME="+w.name+"-0") // the container runtime sets it to the name of the pod
	for _, arg := range spec.Args {
		c.args = append(c.args, below(root, arg))
	}
	for _, e := range spec.Env {
		c.env = append(c.env, e.Name+"="+below(root, e.Value))
	}
	for name, text := range config.Data {
		writeFile(t, filepath.Join(root, "etc/tracing", name), below(root, text))
	}
	return c
}

// secretFiles returns the paths of the files of a volume that come from secrets.
func secretFiles(w workload, volume string) (paths []string) {
	for _, v := range w.template.Spec.Volumes {
		if v.Name != volume {
			continue
		}
		var items []corev1.KeyToPath
		if v.Secret != nil {
			items = v.Secret.Items
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				items = append(items, source.Secret.Items...)
			}
		}
		for _, item := range items {
			paths = append(paths, item.Path)
		}
	}
	return paths
}

// below moves the mounted folders in a text below root.
func below(root, text string) string {
	for _, folder := range []string{"/etc/tracing", "/data"} {
		text = strings.ReplaceAll(text, folder, root+folder)
	}
	return text
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command returns the command of a container with words in front of its arguments.
func (c container) command(ctx context.Context, t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, harness.Binary(t), append(words, c.args...)...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, c.env...)
	return cmd
}

// The program accepts the command line, the environment and the configuration of every container
// without a warning.
func TestProgramAcceptsConfiguration(t *testing.T) {
	eachRelease(t, func(t *testing.T, r release) {
		for _, w := range workloads(r) {
			c := asProcess(t, r, w)
			out, err := c.command(t.Context(), t, "validate").CombinedOutput()
			if err != nil || strings.Contains(strings.ToLower(string(out)), "warn") {
				t.Errorf("validate %s: %v\n%s", w.name, err, out)
			}
		}
	})
}

// The configuration in the values overrides the chart's, and both override the preset.
func TestConfigurationIsMerged(t *testing.T) {
	r := render(t, parse(t, `
retention: {time: 24h, size: 20GiB}
zipkin: {enabled: true}
allInOne:
  config:
    exporters: {disk: {retention: {time: 48h}}}
    service: {telemetry: {logs: {level: debug}}}
`))
	c := asProcess(t, r, workloadNamed(t, r, fullName+"-all-in-one"))
	out, err := c.command(t.Context(), t, "print-config").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"time: 48h", "size: 20GiB", "level: debug", "watch: true", "0.0.0.0:4317", "0.0.0.0:9411"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
