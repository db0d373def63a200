package commands_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// The health check of a process uses the preset and the flags of that process, and the environment
// that both have, as in a container.
func TestHealthcheckOfProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("command lines of processes and addresses such as 127.0.0.2 need Linux")
	}
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 1+pid>>16&0x7f, pid>>8&0xff, 1+pid&0x7f)
	t.Setenv("TRACING_LISTEN_HOST", host)
	p := harness.Run(t, "agent", "--data-dir", t.TempDir(), "--set", "extensions.admin.endpoint=${TRACING_LISTEN_HOST}:14277")
	p.AwaitReady()
	check := func(pid int, args ...string) (stdout, stderr string, err error) {
		return execute(t, nil, append([]string{"healthcheck", "--pid", strconv.Itoa(pid)}, args...)...)
	}
	if stdout, stderr, err := check(p.Cmd.Process.Pid); err != nil || stdout != "ready\n" {
		t.Errorf("%v: %q %s", err, stdout, stderr)
	}
	if _, stderr, err := check(p.Cmd.Process.Pid, "agent"); err == nil || !strings.Contains(stderr, "cannot be combined") {
		t.Errorf("with a preset: %v: %s", err, stderr)
	}
	if _, stderr, err := check(pid); err == nil || !strings.Contains(stderr, `commands.test", not tracing`) {
		t.Errorf("a process of another program: %v: %s", err, stderr)
	}
	p.Terminate()
	if _, stderr, err := check(p.Cmd.Process.Pid); err == nil || !strings.Contains(stderr, "cannot read its command line") {
		t.Errorf("a process that has ended: %v: %s", err, stderr)
	}
}
