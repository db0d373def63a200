package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// The complete configurations in docs/migrating start.
func TestDocumentedConfigurations(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(harness.Root(t), "docs", "migrating", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(page), "\n```yaml\n")[1:] {
			yaml, _, _ := strings.Cut(block, "\n```")
			if !strings.HasPrefix(yaml, "receivers:") || !strings.Contains(yaml, "\nservice:") {
				continue // a part
			}
			if err := start(t, yaml); err != nil {
				t.Errorf("%s, configuration %d: %v", filepath.Base(file), i+1, err)
			}
		}
	}
}
