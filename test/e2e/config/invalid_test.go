package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestInvalidConfigs validates the files in testdata/bad. Each file begins with the expected
// output, in lines that begin with "# want: ". The configuration follows; its line numbers do not
// count those lines. With -update the test rewrites them.
func TestInvalidConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			want, body := splitWant(t, file)
			path := filepath.Join(t.TempDir(), filepath.Base(file))
			if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := inprocess.RunCommand(t, "validate", "--config", path)
			got := strings.ReplaceAll(stderr, path, filepath.Base(file))
			if golden.Updating() {
				rewriteWant(t, file, got, body)
				return
			}
			if code != 2 || stdout != "" {
				t.Errorf("exit code %d, output %q", code, stdout)
			}
			if got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}

const wantPrefix = "# want: "

// splitWant splits a file into the expected output and the configuration.
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
	golden.Write(t, file, out.String()+body)
}
