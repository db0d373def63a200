package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestMakeNeedsPackages checks that make fails if .ci/packages does: without packages, go test
// would test only the root folder.
func TestMakeNeedsPackages(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	root, programs := harness.Root(t), t.TempDir()
	harness.DependsOn(t, filepath.Join(root, "Makefile"))
	harness.DependsOn(t, filepath.Join(root, ".ci", "packages"))
	for name, script := range map[string]string{"git": "exit 1", "go": `test "$1" != list`, "npm": ""} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []string{"test-go", "test-long", "race", "bench-once"} {
		cmd := exec.Command("make", "-o", "build", "-o", "node-clients", "-o", "test-program", target)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("make %s succeeds without packages:\n%s", target, out)
		}
	}
}
