package commands_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestVersionAndBadFlag(t *testing.T) {
	path, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "tracing ") {
		t.Errorf("%v %s", err, out)
	}
	out, err = exec.Command(path, "--no-such-flag").CombinedOutput()
	if e := (*exec.ExitError)(nil); err == nil || !strings.Contains(string(out), "no-such-flag") || !strings.Contains(string(out), "usage: tracing") {
		t.Errorf("%v %v %s", err, e, out)
	}
}
