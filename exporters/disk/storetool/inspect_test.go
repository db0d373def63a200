package storetool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
)

// checkGolden compares got with a file in testdata, in which dir, the folder of the store, is written as DIR.
func checkGolden(t *testing.T, file, got, dir string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", file), strings.ReplaceAll(got, dir, "DIR"))
}

// small is a store with two segments, a log, and something in the quarantine.
func small(t *testing.T) *store {
	s := newStore(t)
	made := synthetic(t, 1, 700, "")
	s.segment(1, made[:4]...)
	s.segment(2, append(made[4:8:8], made[5])...)
	s.log(uint64(began.UnixNano()), made[8:12]...)
	check(t, s.dir.MarkDamaged(7, "log 0000000000000007: 1 acknowledged requests lost, 0 spans unreadable\n"))
	return s
}

// fixture is a store of version 1, made by an earlier build.
const fixture = "testdata/store"

func TestInspect(t *testing.T) {
	checkGolden(t, "inspect.txt", mustRun(t, "inspect", fixture), fixture)
	checkGolden(t, "inspect.json", mustRun(t, "inspect", fixture, "--json"), fixture)
}

// A store that is in use is inspected all the same.
func TestInspectInUse(t *testing.T) {
	s := small(t)
	if text := mustRun(t, "inspect", filepath.Dir(s.path)); !strings.Contains(text, "in 2 segments") || !strings.Contains(text, "1 files, ") {
		t.Error(text)
	}
	s.leave()
}

// The parts that --columns tells of make up the files.
func TestInspectColumns(t *testing.T) {
	dir := small(t).leave()
	var in Inspection
	check(t, json.Unmarshal([]byte(mustRun(t, "inspect", dir, "--columns", "--json")), &in))
	sum, attributes := int64(0), 0
	for _, s := range in.Shares {
		sum += s.Bytes
		if strings.HasPrefix(s.Part, "attribute http.") {
			attributes++
		}
	}
	if sum != in.Totals.Bytes || attributes == 0 {
		t.Errorf("parts of %d bytes, files of %d, %d attributes", sum, in.Totals.Bytes, attributes)
	}
	text := mustRun(t, "inspect", dir, "--columns", "--top", "3")
	if !strings.Contains(text, "more parts") || !strings.Contains(text, "span ids") {
		t.Error(text)
	}
}

func TestLocate(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if code, _, stderr := run(t, "inspect", name); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", name, code, stderr)
		}
	}
	f(filepath.Join(t.TempDir(), "none"), "looking for a span store")
	f(t.TempDir(), "there is no file FORMAT")
	dir := filepath.Dir(newStore(t).leave())
	other := filepath.Join(dir, "other")
	check(t, os.Mkdir(other, 0o700))
	check(t, os.WriteFile(filepath.Join(other, "FORMAT"), []byte("tracing span store, version 1\n"), 0o600))
	f(dir, "has several span stores")
	check(t, os.WriteFile(filepath.Join(other, "FORMAT"), []byte("tracing span store, version 9\n"), 0o600))
	f(other, "reads up to version 1")
}
