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

// generated are the generated files below dir by their paths there.
func generated(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".pb.go") && !strings.HasSuffix(name, ".thrift.go") {
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

// The generated code is what the interface files and the pinned generators say.
func TestGeneratedCodeIsUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := generate("..", dir); err != nil {
		t.Fatal(err)
	}
	want, got := generated(t, dir), generated(t, "..")
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			t.Errorf("%s is out of date: run make generate", name)
		}
		if first, _, _ := bytes.Cut(content, []byte("\n")); !bytes.HasPrefix(first, []byte("// Code generated ")) {
			t.Errorf("%s begins with %q", name, first)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is no longer generated: delete it", name)
		}
	}
	if len(want) < 20 {
		t.Errorf("only %d files were generated", len(want))
	}
}

func TestGoNames(t *testing.T) {
	for name, want := range map[string]string{
		"traceIdHigh": "TraceIDHigh", "trace_id_high": "TraceIDHigh", "id": "ID", "vStr": "VStr", "emitBatch_args": "EmitBatchArgs",
		"SpanRef": "SpanRef", "seqNo": "SeqNo", "follows_from": "FollowsFrom", "ipv4": "Ipv4", "ok": "OK", "identity": "Identity",
	} {
		if got := goName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Mistakes in interface files are errors that say where.
func TestMistakesInThriftFiles(t *testing.T) {
	for src, want := range map[string]string{
		"struct A { 1: B b }":                         "broken.thrift: b of A: B is no type",
		"struct A { 1: list<i32> b }":                 "broken.thrift: b of A: i32 is no type",
		"struct A { 1: other.B b }":                   "broken.thrift: b of A: other.B is of a file that is not included",
		"enum E { X = 1 }\nstruct A { 1: list<E> e }": "broken.thrift: e of A: E is no type",
		"service S { void m(1: T t) }":                "broken.thrift: t of m_args: T is no type",
		"struct A {\n1 i32 a }":                       `broken.thrift:2:3: "i32" where ":" was expected`,
	} {
		dir := t.TempDir()
		if err := writeFile(dir, "broken.thrift", []byte(src)); err != nil {
			t.Fatal(err)
		}
		if err := goThrift(dir, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v\nwant %s", src, err, want)
		}
	}
}

func TestMistakesInProtoFiles(t *testing.T) {
	dir := t.TempDir()
	if err := writeFile(dir, "a/broken.proto", []byte("syntax = \"proto3\";\nmessage M { N n = 1; }")); err != nil {
		t.Fatal(err)
	}
	if err := goProto(dir, dir); err == nil || !strings.Contains(err.Error(), "a/broken.proto:2:13") {
		t.Errorf("got %v", err)
	}
}
