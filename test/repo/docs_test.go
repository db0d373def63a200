package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestGuideQuotesExamples checks that every code block in docs/custom-components.md is a part of
// the examples, which are built and tested.
func TestGuideQuotesExamples(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"custom-receiver/*", "custom-receiver/lines/*.go", "custom-components/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(harness.Root(t), "examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(files, filepath.Join(harness.Root(t), "test", "e2e", "conformance", "conformance_test.go")) {
			if b, err := os.ReadFile(file); err == nil { // not a folder
				sources.Write(b)
			}
		}
	}
	guide, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "custom-components.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(guide), "```")
	if len(blocks) < 20 {
		t.Fatalf("only %d code blocks found", len(blocks)/2)
	}
	for i := 1; i < len(blocks); i += 2 {
		language, code, _ := strings.Cut(blocks[i], "\n")
		if !strings.Contains(sources.String(), code) {
			t.Errorf("docs/custom-components.md: code block (%s) is not in an example:\n%s", language, code)
		}
	}
}
