package image_test

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/tools/internal/external"
)

// As process 1 of a container without capabilities, on a read-only root file system, the program
// becomes ready, and the health check of the image finds it.
func TestHealthCheck(t *testing.T) {
	external.Require(t, "unshare", "util-linux")
	external.Require(t, "ip", "iproute2")
	b := newBuildah(t)
	container := b.from(b.build("Dockerfile", map[string]string{"tracing": harness.Binary(t)}))
	cfg, root := b.config(container).Config, b.run("mount", container)
	chroot := external.Require(t, "chroot", "coreutils")
	enter := slices.Concat([]string{"env", "-i"}, cfg.Env, []string{chroot, "--userspec=" + cfg.User, root})

	p := harness.RunExecutable(t, "unshare", slices.Concat(
		[]string{"--mount", "--pid", "--fork", "--kill-child", "--net", "bash", "testdata/container.sh", root, newVolume(t)},
		enter, cfg.Entrypoint, cfg.Cmd)...)
	p.AwaitReady()
	pid := child(t, p.Cmd.Process.Pid, cfg.Entrypoint[0])
	checkUser(t, pid, "10001")
	check := exec.Command("nsenter", slices.Concat([]string{"--target", strconv.Itoa(pid), "--mount", "--pid", "--net"},
		enter, cfg.Healthcheck.Test[1:])...)
	if out, err := check.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ready" {
		t.Errorf("%v: %v: %s", cfg.Healthcheck.Test, err, out)
	}
	stop(t, p, pid)
}
