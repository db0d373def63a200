package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/tools/internal/licenses"
)

// TestRelease makes a release with the program for this machine, and checks its files.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: builds the web UI and the program")
	}
	if runtime.GOOS != "linux" {
		t.Skip("skipped: runs the program for Linux")
	}
	const version = "0.0.1-rc.1"
	r := release{
		dir: "../..", version: version, out: filepath.Join(t.TempDir(), version), allowDirty: true, log: t.Output(),
		targets: []licenses.Target{{OS: "linux", Arch: runtime.GOARCH}},
	}
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkSums(t, r.out)
	name := "tracing_" + version + "_linux_" + runtime.GOARCH
	for _, file := range []string{
		"RELEASE_NOTES.md", "THIRD_PARTY_LICENSES.txt", name + ".cdx.json",
		"tracing_" + version + "_oci.tar", "tracing_" + version + "_deploy.tar.gz",
		"tracing_0.0.1~rc.1_*.deb", "tracing-0.0.1~rc.1-1.*.rpm",
	} {
		found, err := filepath.Glob(filepath.Join(r.out, file))
		if err != nil || len(found) != 1 {
			t.Errorf("%s: found %q, %v", file, found, err)
			continue
		}
		if info, err := os.Stat(found[0]); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	for pattern, want := range map[string]int{"*.deb": 1, "*.rpm": 1, "*.tgz": 1} {
		if found, err := filepath.Glob(filepath.Join(r.out, pattern)); err != nil || len(found) != want {
			t.Errorf("%s: %q, %v; want %d", pattern, found, err, want)
		}
	}

	dir := t.TempDir()
	names := extract(t, filepath.Join(r.out, name+".tar.gz"), dir)
	want := []string{name + "/tracing", name + "/CHANGELOG.md", name + "/LICENSE", name + "/THIRD_PARTY_LICENSES.txt"}
	if !slices.Equal(names, want) {
		t.Errorf("files of the archive: %q, want %q", names, want)
	}
	out, err := exec.Command(filepath.Join(dir, name, "tracing"), "version").Output()
	if want := "tracing " + version + " " + r.commit.ID; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("version: %q, %v; want %q", out, err, want)
	}
	checkUI(t, filepath.Join(dir, name, "tracing"))
	checkBill(t, filepath.Join(r.out, name+".cdx.json"))
}

// checkSums checks that the checksums match all other files.
func checkSums(t *testing.T, dir string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(sums), "\n"); lines != len(entries)-1 {
		t.Errorf("%d checksums of %d files", lines, len(entries)-1)
	}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got, err := fileSum(filepath.Join(dir, name)); err != nil || got != want {
			t.Errorf("%s: checksum %s, %v; want %s", name, got, err, want)
		}
	}
}

// checkUI checks that the web UI is in the program.
func checkUI(t *testing.T, program string) {
	t.Helper()
	page, err := os.ReadFile("../../internal/webui/dist/index.html.gz")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, page) {
		t.Error("the web UI is not in the program")
	}
}

// checkBill checks that a bill of materials has parts of the program and of the web UI.
func checkBill(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct{ Components []struct{ Name string } }
	if err := json.Unmarshal(content, &bill); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range bill.Components {
		seen[c.Name] = true
	}
	for _, want := range []string{"std", "google.golang.org/grpc", "preact"} {
		if !seen[want] {
			t.Errorf("%s: %s is missing", file, want)
		}
	}
	if seen["github.com/google/licensecheck"] {
		t.Errorf("%s: a library of the tools is in the program", file)
	}
}

// extract extracts an archive, and returns the names of its files.
func extract(t *testing.T, file, dir string) (names []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, h.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}
