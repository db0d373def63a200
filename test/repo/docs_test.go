package repo_test

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

// The guide for authors of components shows code that is built and tested, and nothing else.
func TestGuideQuotesTheExample(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"*", "lines/*.go"} {
		files, err := filepath.Glob(filepath.Join(harness.Root(t), "examples", "custom-receiver", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(files, filepath.Join(harness.Root(t), "test", "e2e", "conformance", "conformance_test.go")) {
			if b, err := os.ReadFile(file); err == nil { // else a folder
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
		t.Fatalf("only %d blocks were looked at", len(blocks)/2)
	}
	for i := 1; i < len(blocks); i += 2 {
		language, code, _ := strings.Cut(blocks[i], "\n")
		if !strings.Contains(sources.String(), code) {
			t.Errorf("this block of %s is not in the example:\n%s", language, code)
		}
	}
}

// docs/configuration.md is what the command prints; -update rewrites it.
func TestConfigurationReferenceIsCurrent(t *testing.T) {
	file := filepath.Join(harness.Root(t), "docs", "configuration.md")
	var stdout, stderr bytes.Buffer
	if code := app.Run(t.Context(), []string{"docs"}, &stdout, &stderr, tracing.Components(), tracing.Presets()...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if golden.Updating() {
		if err := os.WriteFile(file, stdout.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	onDisk, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(onDisk, stdout.Bytes()) {
		t.Errorf("%s is not what `tracing docs` prints (%v); run go test ./test/repo -run %s -update", file, err, t.Name())
	}
}
