package image_test

import (
	"bytes"
	"encoding/json"
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

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/tools/internal/external"
)

// buildah runs buildah with a storage of its own.
type buildah struct {
	t       *testing.T
	storage string // configuration file
}

func newBuildah(t *testing.T) *buildah {
	t.Helper()
	external.Require(t, "buildah", "buildah")
	if os.Getuid() != 0 {
		t.Skip("containers without a container runtime need root")
	}
	dir := t.TempDir()
	b := &buildah{t, filepath.Join(dir, "storage.conf")}
	text := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(dir, "root"), filepath.Join(dir, "run"))
	if err := os.WriteFile(b.storage, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_STORAGE_CONF", b.storage)
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	return b
}

// run runs a command of buildah and returns its output.
func (b *buildah) run(args ...string) string {
	b.t.Helper()
	cmd := exec.Command("buildah", args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		b.t.Fatalf("buildah %s: %v\n%s", strings.Join(args, " "), err, log.String())
	}
	return strings.TrimSpace(out.String())
}

// from returns a container of an image; it is deleted when the test ends.
func (b *buildah) from(image string) (container string) {
	b.t.Helper()
	container = b.run("from", "--pull-never", image)
	b.t.Cleanup(func() { b.run("rm", container) })
	return container
}

// config returns the configuration of a container in the format of Docker.
func (b *buildah) config(container string) v1.ConfigFile {
	b.t.Helper()
	var inspected struct{ Docker v1.ConfigFile }
	if err := json.Unmarshal([]byte(b.run("inspect", container)), &inspected); err != nil {
		b.t.Fatal(err)
	}
	return inspected.Docker
}

// build builds the image of a Dockerfile with the given programs, by name.
func (b *buildah) build(dockerfile string, programs map[string]string) (image string) {
	b.t.Helper()
	folder, root := b.t.TempDir(), harness.Root(b.t)
	copyAll := func(name string) {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(root, name))); err != nil {
			b.t.Fatal(err)
		}
	}
	copyAll(filepath.Join("deploy", "docker"))
	copyFile(b.t, filepath.Join(root, ".dockerignore"), filepath.Join(folder, ".dockerignore"))
	for name, path := range programs {
		copyFile(b.t, path, filepath.Join(folder, "bin", "linux-"+runtime.GOARCH, name))
	}
	image = strings.ToLower(dockerfile) + ":1.2.3"
	build := exec.Command(filepath.Join(folder, "deploy", "docker", "build"), dockerfile, image, runtime.GOARCH)
	build.Env = append(os.Environ(), "ENGINE=buildah")
	if out, err := build.CombinedOutput(); err != nil {
		b.t.Fatalf("building the image: %v\n%s", err, out)
	}
	return image
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // read by another user
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil { //nolint:gosec // an executable
		t.Fatal(err)
	}
}

// The Dockerfile and this package describe the same image.
func TestImagesAreEqual(t *testing.T) {
	b := newBuildah(t)
	program := harness.Binary(t)
	built := b.from(b.build("Dockerfile", map[string]string{"tracing": program}))
	written := b.from("oci-archive:" + write(t, map[string]string{runtime.GOARCH: program}))
	want, got := b.config(built).Config, b.config(written).Config
	delete(want.Labels, "io.buildah.version")
	if got.Healthcheck = want.Healthcheck; want.Healthcheck == nil { // buildah ignores it in OCI images, see below
		t.Error("the image of the Dockerfile has no health check")
	}
	got.Hostname, want.Hostname = "", ""
	checkEqual(t, "configurations", got, want)
	cfg, err := readOnly(t, write(t, map[string]string{runtime.GOARCH: program})).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, "health checks", cfg.Config.Healthcheck, want.Healthcheck)
	checkEqual(t, "files", listing(t, b.run("mount", written)), listing(t, b.run("mount", built)))
}

// readOnly returns the only image of an archive.
func readOnly(t *testing.T, archive string) v1.Image {
	t.Helper()
	index := readArchive(t, archive)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	one, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func checkEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(g, w) {
		t.Errorf("%s differ:\n%s\nof the Dockerfile:\n%s", what, g, w)
	}
}

// listing returns mode, owner, size and name of every file below dir.
func listing(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		size := info.Size()
		if info.IsDir() {
			size = 0
		}
		lines = append(lines, fmt.Sprintln(info.Mode(), owner.Uid, owner.Gid, size, strings.TrimPrefix(path, dir)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// The image runs with its own entry point, command, user and environment. Spans that it has
// acknowledged are in the volume when the next container starts.
func TestRun(t *testing.T) {
	b := newBuildah(t)
	container := b.from(b.build("Dockerfile", map[string]string{"tracing": harness.Binary(t)}))
	cfg := b.config(container).Config
	command := slices.Concat(cfg.Entrypoint, cfg.Cmd)
	args := slices.Concat([]string{"run", "--volume", newVolume(t) + ":/data", container, "--"}, command,
		harness.PresetArgs("all-in-one", "/data")[1:])

	started := time.Now()
	p := harness.RunExecutable(t, "buildah", args...)
	p.AwaitReady()
	t.Logf("ready %v after start", time.Since(started).Round(time.Millisecond))
	p.PostJSON(harness.JSONSpan("5b8efff798038103d269b633813fc60c", "checkout", "pay", time.Now(), time.Second))
	pid := child(t, p.Cmd.Process.Pid, cfg.Entrypoint[0])
	checkUser(t, pid, "10001")
	// Isolation by chroot has no namespace of processes, so the program does not have the id 1.
	check := slices.Clone(cfg.Healthcheck.Test[1:])
	check[len(check)-1] = "--endpoint=" + p.Address("admin", "http")
	if got := b.run(append([]string{"run", container, "--"}, check...)...); got != "ready" {
		t.Errorf("%v: %s", check, got)
	}
	stop(t, p, pid)

	p = harness.RunExecutable(t, "buildah", args...)
	p.AwaitReady()
	if status, body := harness.Fetch(t, p.QueryURL()+"/api/traces/5b8efff798038103d269b633813fc60c"); status != 200 {
		t.Errorf("the trace after a restart: %d %s", status, body)
	}
	stop(t, p, child(t, p.Cmd.Process.Pid, cfg.Entrypoint[0]))
}

// newVolume returns a folder that the user of the image can write to.
func newVolume(t *testing.T) string {
	t.Helper()
	volume := t.TempDir()
	for dir := volume; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the user of the image must reach the folder
			t.Fatal(err)
		}
	}
	if err := os.Chown(volume, 10001, 10001); err != nil {
		t.Fatal(err)
	}
	return volume
}
