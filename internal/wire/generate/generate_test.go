package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generated returns the generated files below dir by their paths relative to dir.
func generated(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".pb.go") {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err == nil {
			files[rel], err = os.ReadFile(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The generated code is what the pinned plugins write for the current .proto files.
func TestGeneratedCodeIsUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := generate("../proto", dir); err != nil {
		t.Fatal(err)
	}
	want, got := generated(t, dir), generated(t, "..")
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			t.Errorf("%s is out of date; run make generate", name)
		}
		if first, _, _ := bytes.Cut(content, []byte("\n")); !bytes.HasPrefix(first, []byte("// Code generated ")) {
			t.Errorf("%s: first line is %q", name, first)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is no longer generated; delete it", name)
		}
	}
	if len(want) < 20 {
		t.Errorf("only %d files were generated", len(want))
	}
}

func TestErrorsInProtoFiles(t *testing.T) {
	dir := t.TempDir()
	if err := writeFile(dir, "a/broken.proto", []byte("syntax = \"proto3\";\nmessage M { N n = 1; }")); err != nil {
		t.Fatal(err)
	}
	if err := generate(dir, dir); err == nil || !strings.Contains(err.Error(), "a/broken.proto:2:13") {
		t.Errorf("got error %v, want the position a/broken.proto:2:13", err)
	}
}
