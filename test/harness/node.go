package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NodeDir returns the folder of the client programs for Node.js, in which `make node-clients` has
// installed their libraries. Without Node.js or the libraries it skips the test, or fails it if the
// environment variable CI is true.
func NodeDir(tb testing.TB) string {
	tb.Helper()
	missing := func(reason string) {
		tb.Helper()
		if os.Getenv("CI") == "true" {
			tb.Fatal(reason)
		}
		tb.Skip(reason)
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing("no Node.js: " + err.Error())
	}
	dir := filepath.Join(Root(tb), "test", "e2e", "testdata", "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err != nil {
		missing("the libraries of the Node.js clients are not installed; run `make node-clients`")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			DependsOn(tb, filepath.Join(dir, e.Name()))
		}
	}
	return dir
}
