package archive_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/tools/internal/archive"
)

var files = []archive.File{
	{Name: "tracing", Content: bytes.Repeat([]byte("program"), 1000), Mode: 0o755},
	{Name: "docs/a.md", Content: []byte("text\n"), Mode: 0o644},
}

// TestArchives checks that the same files give the same bytes, and that other programs read them.
func TestArchives(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 30, 1, 999, time.UTC)
	for ending, extract := range map[string][]string{".tar.gz": {"tar", "xzf"}, ".zip": {"python3", "-m", "zipfile", "-e"}} {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "a"+ending), filepath.Join(dir, "b"+ending)
		write(t, one, at)
		write(t, two, at.In(time.FixedZone("east", 9*3600)))
		if !bytes.Equal(read(t, one), read(t, two)) {
			t.Errorf("%s: two archives differ", ending)
		}
		if _, err := exec.LookPath(extract[0]); err != nil {
			t.Logf("%s is not extracted: %v", one, err)
			continue
		}
		args := append(extract[1:], one)
		if ending == ".zip" {
			args = append(args, dir)
		}
		cmd := exec.Command(extract[0], args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", cmd, err, out)
		}
		for _, f := range files {
			if got := read(t, filepath.Join(dir, "tracing_1.2.3", f.Name)); !bytes.Equal(got, f.Content) {
				t.Errorf("%s: %s has %d bytes, want %d", ending, f.Name, len(got), len(f.Content))
			}
		}
		info, err := os.Stat(filepath.Join(dir, "tracing_1.2.3", "tracing"))
		if err != nil {
			t.Fatal(err)
		}
		if ending == ".tar.gz" && (info.Mode() != 0o755 || !info.ModTime().Equal(at.Truncate(time.Second))) {
			t.Errorf("mode %v, time %v", info.Mode(), info.ModTime())
		}
	}
	if err := archive.Write(filepath.Join(t.TempDir(), "a.rar"), "a", at, files); err == nil {
		t.Error("an unknown format was accepted")
	}
}

func write(t *testing.T, name string, at time.Time) {
	t.Helper()
	if err := archive.Write(name, "tracing_1.2.3", at, files); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
