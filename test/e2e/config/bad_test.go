package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// Each file of testdata/bad begins with the exact output for it, one `# want: ` line for each line. What follows is the file's content,
// so that lines are counted from there.
func TestBadConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			want, body := splitWant(t, file)
			var stdout, stderr bytes.Buffer
			path := filepath.Join(t.TempDir(), filepath.Base(file))
			if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			code := app.Run(t.Context(), []string{"validate", "--config", path}, &stdout, &stderr, tracing.Components(), tracing.Presets()...)
			got := strings.ReplaceAll(stderr.String(), path, filepath.Base(file))
			if golden.Updating() {
				rewriteWant(t, file, got, body)
				return
			}
			if code != 2 || stdout.Len() != 0 {
				t.Errorf("exit code %d, output %q", code, stdout.String())
			}
			if got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}

const wantPrefix = "# want: "

func splitWant(t *testing.T, file string) (want, body string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if w, ok := strings.CutPrefix(line, wantPrefix); ok && body == "" {
			want += w
		} else {
			body += line
		}
	}
	return want, body
}

func rewriteWant(t *testing.T, file, got, body string) {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(got) {
		out.WriteString(wantPrefix + line)
	}
	if err := os.WriteFile(file, []byte(out.String()+body), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every preset is valid, without warnings, and its file is where the documentation says.
func TestPresets(t *testing.T) {
	for _, p := range tracing.Presets() {
		onDisk, err := os.ReadFile(filepath.Join(harness.Root(t), "config-examples", p.Name+".yaml"))
		if err != nil || !bytes.Equal(onDisk, p.YAML) {
			t.Errorf("%s: the embedded file differs: %v", p.Name, err)
		}
		var stdout, stderr bytes.Buffer
		if code := app.Run(t.Context(), []string{"validate", p.Name, "--strict"}, &stdout, &stderr, tracing.Components(), tracing.Presets()...); code != 0 {
			t.Errorf("%s: exit code %d: %s", p.Name, code, stderr.String())
		}
	}
}
