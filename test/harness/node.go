package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// installNode makes a folder with the script and its libraries. It is "" where there is no Node.js.
func InstallNode(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Logf("clients of Node.js are skipped: %v", err)
		return ""
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc", "client.js"} {
		b, err := os.ReadFile(filepath.Join(Root(t), "test", "e2e", "testdata", "node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("installing the libraries: %v: %s", err, out)
	}
	return dir
}
