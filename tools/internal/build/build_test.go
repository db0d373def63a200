package build_test

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/tools/internal/build"
)

const repository = "../../.."

// TestFolders builds the program in two folders for users with different settings, and expects the
// same bytes.
func TestFolders(t *testing.T) {
	if err := build.UI(t.Context(), repository, false); err != nil {
		t.Fatal(err)
	}
	first, second := clone(t, filepath.Join(t.TempDir(), "a")), clone(t, filepath.Join(t.TempDir(), "another folder", "b"))
	options := build.Options{OS: "linux", Arch: "amd64", Version: "1.2.3", Out: filepath.Join(t.TempDir(), "tracing")}

	options.Dir = first
	want := program(t, options)
	options.Dir, options.Out = second, filepath.Join(t.TempDir(), "other-name")
	t.Setenv("GOFLAGS", "-tags=other -ldflags=-X=main.other=1")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("TZ", "Asia/Tokyo")
	if got := program(t, options); got != want {
		t.Errorf("hash in %s is %s, in %s %s", second, got, first, want)
	}
}

// program builds a program and returns its hash.
func program(t *testing.T, o build.Options) string {
	t.Helper()
	if err := build.Program(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// clone makes a clone of the repository with its built web UI, if there is one.
func clone(t *testing.T, dir string) string {
	t.Helper()
	if out, err := exec.Command("git", "clone", "--quiet", repository, dir).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v: %s", err, out)
	}
	dist := filepath.Join("internal", "webui", "dist")
	if err := os.RemoveAll(filepath.Join(dir, dist)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, dist), os.DirFS(filepath.Join(repository, dist))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestVersion checks that a program names its version, commit and date, and has no symbols.
func TestVersion(t *testing.T) {
	dir := clone(t, filepath.Join(t.TempDir(), "clone"))
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "tracing")
	program(t, build.Options{Dir: dir, Version: "v1.2.3-rc.1+build", Out: out})
	got, err := exec.Command(out, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	git := exec.Command("git", "-C", dir, "log", "-1", "--format=%H-dirty %cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ")
	git.Env = append(os.Environ(), "TZ=UTC")
	head, err := git.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "tracing v1.2.3-rc.1+build " + string(head); string(got) != want {
		t.Errorf("version prints %q, want %q", got, want)
	}
	if runtime.GOOS == "linux" && hasSymbols(t, out) {
		t.Error("the program has symbols")
	}
}

// hasSymbols reports whether a program for Linux has what debuggers need.
func hasSymbols(t *testing.T, path string) bool {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		return false
	}
	entry, err := data.Reader().Next()
	return err == nil && entry != nil
}

// TestHostileVersion checks that a version cannot add flags of the linker.
func TestHostileVersion(t *testing.T) {
	for _, version := range []string{"", "1.0 -extld=sh", "1.0'", "1\n2"} {
		err := build.Program(t.Context(), build.Options{Dir: repository, Version: version, Out: filepath.Join(t.TempDir(), "tracing")})
		if err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("version %q: error %v", version, err)
		}
	}
}

// TestHead reads the commit of a clone, and finds none in a folder without a repository or within
// another one.
func TestHead(t *testing.T) {
	dir := clone(t, filepath.Join(t.TempDir(), "clone"))
	c, err := build.Head(t.Context(), dir)
	if err != nil || len(c.ID) != 40 || c.Time.IsZero() {
		t.Errorf("clone: %+v, %v", c, err)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(dir, "cmd")} {
		if c, err := build.Head(t.Context(), dir); err != nil || c != (build.Commit{}) {
			t.Errorf("%s: %+v, %v", dir, c, err)
		}
	}
}
