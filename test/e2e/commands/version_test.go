package commands_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestVersion builds a program without components with the linker flags of the Makefile, and checks
// that it prints the version they set.
func TestVersion(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	harness.DependsOn(t, filepath.Join(harness.Root(t), "Makefile"))
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = harness.Root(t)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		return strings.TrimSpace(string(out))
	}
	const version = "v1.2.3-test"
	path := filepath.Join(t.TempDir(), "tracing")
	run("go", "build", "-ldflags", run("make", "--silent", "--no-print-directory", "ldflags", "VERSION="+version), "-o", path,
		"./test/e2e/commands/testdata/version")
	if got, want := run(path, "version"), "tracing "+version; got != want && !strings.HasPrefix(got, want+" ") {
		t.Errorf("tracing version prints %q, want %q", got, want)
	}
}

func TestVersionOfOtherBuilds(t *testing.T) {
	out, err := exec.Command(harness.Binary(t), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "tracing ") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestUnknownFlag(t *testing.T) {
	out, err := exec.Command(harness.Binary(t), "--no-such-flag").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 ||
		!strings.Contains(string(out), "no-such-flag") || !strings.Contains(string(out), "usage: tracing") {
		t.Errorf("%v: %s", err, out)
	}
}
