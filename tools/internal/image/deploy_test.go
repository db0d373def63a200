package image_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/tools/internal/debug"
)

// deployOnly skips a test that compiles too much for each run of all tests.
func deployOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("TRACING_DEPLOY") != "1" {
		t.Skip("compiles the program once more, for minutes on a slow machine; make test-deploy runs it (TRACING_DEPLOY=1)")
	}
}

// The image tracing-debug runs a component under a debugger. A client stops it in the OTLP receiver
// with a request, and lets it continue.
func TestDebugImage(t *testing.T) {
	deployOnly(t)
	b := newBuildah(t)
	programs := debug.Build(t, t.TempDir())
	container := b.from(b.build("Dockerfile.debug", map[string]string{"dlv": programs.Debugger, "tracing-debug": programs.Tracing}))
	cfg := b.config(container).Config
	address := debug.FreeAddress(t)
	entrypoint := slices.Clone(cfg.Entrypoint)
	i := slices.Index(entrypoint, "--listen=:12345")
	if i < 0 {
		t.Fatalf("the debugger does not listen on port 12345: %v", entrypoint)
	}
	entrypoint[i] = "--listen=" + address
	args := slices.Concat([]string{"run", "--volume", newVolume(t) + ":/data", container, "--"}, entrypoint,
		harness.PresetArgs("collector", "/data"))

	p := harness.RunExecutable(t, "buildah", args...)
	p.AwaitReady()
	debugger := child(t, p.Cmd.Process.Pid, cfg.Entrypoint[0])
	checkUser(t, debugger, "10001")
	programs.Session(t, address, debug.OTLP, func() {
		p.PostJSON(harness.JSONSpan("5b8efff798038103d269b633813fc60c", "checkout", "pay", time.Now(), time.Second))
	})
	if cfg.StopSignal != "SIGINT" {
		t.Errorf("the stop signal is %q", cfg.StopSignal)
	}
	if err := syscall.Kill(debugger, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.Wait()
}

// The Dockerfile also compiles the program and the web UI in a container. Its image has the folders
// of this machine with Go.
func TestCompiledImage(t *testing.T) {
	deployOnly(t)
	b := newBuildah(t)
	tools := b.hostImage()
	args := []string{"build", "--format", "docker", "--pull-never", "--file", "deploy/docker/Dockerfile", "--target", "build",
		"--platform", "linux/" + runtime.GOARCH, "--build-arg", "TARGETARCH=" + runtime.GOARCH, "--build-arg", "VERSION=1.2.3",
		"--build-arg", "GO_IMAGE=" + tools, "--tag", "compiled"}
	for _, folder := range hostFolders(t) {
		args = append(args, "--volume", folder+":"+folder)
	}
	build := exec.Command("buildah", append(args, ".")...)
	build.Dir = harness.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the image: %v\n%s", err, out)
	}
	program := filepath.Join(b.run("mount", b.from("compiled")), "usr/bin/tracing")
	if version, err := exec.Command(program, "version").Output(); err != nil || !strings.HasPrefix(string(version), "tracing 1.2.3") {
		t.Errorf("version: %s (%v)", version, err)
	}
	p := harness.RunExecutable(t, program, harness.PresetArgs("all-in-one", t.TempDir())...)
	if status, page := harness.Fetch(t, p.QueryURL()+"/"); status != 200 || strings.Contains(string(page), "placeholder") {
		t.Errorf("the web UI is not in the program: %d %s", status, page)
	}
	stop(t, p, p.Cmd.Process.Pid)
}

// hostFolders returns the folders of this machine that the command go needs.
func hostFolders(t *testing.T) []string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return append(strings.Fields(string(out)), "/usr", "/etc", home)
}

// hostImage builds an image in which commands of this machine run if its folders are mounted.
func (b *buildah) hostImage() (name string) {
	b.t.Helper()
	dir := b.t.TempDir()
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink(filepath.Join("usr", link), filepath.Join(dir, link)); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o777); err != nil {
		b.t.Fatal(err)
	}
	text := "FROM scratch\nCOPY . /\n"
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if slices.Contains([]string{"PATH", "HOME"}, name) || strings.HasPrefix(name, "GO") {
			text += fmt.Sprintf("ENV %s=%q\n", name, value)
		}
	}
	file := filepath.Join(b.t.TempDir(), "Dockerfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.run("build", "--file", file, "--tag", "host", dir)
	return "localhost/host"
}
