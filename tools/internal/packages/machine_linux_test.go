package packages

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/tools/internal/external"
)

// machineTimeout ends a machine whose scenario waits for something that does not happen.
const machineTimeout = 3 * time.Minute

// notAllowed is the exit code of machine.sh if this machine cannot start another one.
const notAllowed = 77

// The packages are installed, used, upgraded and removed on a machine with systemd: every unit
// becomes ready, reloads, is restarted after failures, and is confined.
func TestMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("long test; it runs without -short")
	}
	external.Require(t, "unshare", "util-linux")
	external.Require(t, "systemd-analyze", "systemd")
	external.Require(t, "curl", "curl")
	external.Require(t, "ip", "iproute2")
	if os.Getuid() != 0 {
		t.Skip("a machine with systemd needs root")
	}
	shared := t.TempDir()
	for _, version := range []string{"1.2.3", "1.3.0"} {
		packageProgram(t, version, shared)
	}
	t.Run("deb", func(t *testing.T) {
		external.Require(t, "dpkg", "dpkg")
		runMachine(t, shared, "deb.sh")
	})
	t.Run("rpm", func(t *testing.T) {
		external.Require(t, "rpm", "rpm")
		runMachine(t, shared, "rpm.sh")
	})
}

// packageProgram makes packages of the program with a version.
func packageProgram(t *testing.T, version, out string) {
	t.Helper()
	_, err := Build(t.Context(), Options{
		Dir: harness.Root(t), Version: version, Arch: runtime.GOARCH, Program: harness.Binary(t), Time: time.Unix(1e9, 0).UTC(), Out: out,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runMachine runs a scenario on a machine that shares a folder with this one.
func runMachine(t *testing.T, shared, scenario string) {
	t.Helper()
	for _, name := range []string{"log", "status"} {
		os.Remove(filepath.Join(shared, name)) //nolint:errcheck // it is there after an earlier scenario
	}
	for _, name := range []string{"common.sh", scenario} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(shared, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), machineTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts", "--cgroup",
		"bash", "testdata/machine.sh", shared, scenario)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == notAllowed {
		skip := t.Skipf
		if os.Getenv("CI") == "true" {
			skip = t.Fatalf
		}
		skip("this machine cannot start another one: %s", out)
	}
	log, _ := os.ReadFile(filepath.Join(shared, "log"))       // empty if the scenario did not start
	status, _ := os.ReadFile(filepath.Join(shared, "status")) // the same
	if strings.TrimSpace(string(status)) != "0" {
		t.Fatalf("exit code %q of the scenario; machine: %v: %s\n%s", status, err, out, log)
	}
	for _, line := range regexp.MustCompile(`(?m)^TIME (.*)$`).FindAllSubmatch(log, -1) {
		t.Logf("%s", line[1])
	}
}
