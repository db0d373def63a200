package storetool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
)

// checkGolden compares got with a golden file in which DIR stands for dir, the folder of the store.
func checkGolden(t *testing.T, file, got, dir string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", file), strings.ReplaceAll(got, dir, "DIR"))
}

// smallStore returns a store with two segments, a log, and a note in the quarantine.
func smallStore(t *testing.T) *store {
	s := newStore(t)
	made := synthetic(t, 1, 700, "")
	s.segment(1, made[:4]...)
	s.segment(2, append(made[4:8:8], made[5])...)
	s.log(uint64(began.UnixNano()), made[8:12]...)
	check(t, s.dir.MarkDamaged(7, "log 0000000000000007: 1 acknowledged requests lost, 0 spans unreadable\n"))
	return s
}

// fixture is a store of version 1 that an earlier build wrote.
const fixture = "testdata/store"

func TestInspect(t *testing.T) {
	checkGolden(t, "inspect.txt", mustRun(t, "inspect", fixture), fixture)
	checkGolden(t, "inspect.json", mustRun(t, "inspect", fixture, "--json"), fixture)
}

// inspect works while a store is in use, and finds the store below the data_dir.
func TestInspectInUse(t *testing.T) {
	s := smallStore(t)
	text := mustRun(t, "inspect", filepath.Dir(s.path))
	if !strings.Contains(text, "in 2 segments") || !strings.Contains(text, "1 files, ") {
		t.Error(text)
	}
	s.unlock()
}

// The sizes that --columns prints add up to the size of the files.
func TestInspectColumns(t *testing.T) {
	dir := smallStore(t).unlock()
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
		t.Errorf("parts have %d bytes, files %d; %d attributes", sum, in.Totals.Bytes, attributes)
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
	f(filepath.Join(t.TempDir(), "none"), "finding the span store")
	f(t.TempDir(), "file FORMAT not found")
	dir := filepath.Dir(newStore(t).unlock())
	other := filepath.Join(dir, "other")
	check(t, os.Mkdir(other, 0o700))
	check(t, os.WriteFile(filepath.Join(other, "FORMAT"), []byte("tracing span store, version 1\n"), 0o600))
	f(dir, "has several span stores")
	check(t, os.WriteFile(filepath.Join(other, "FORMAT"), []byte("tracing span store, version 9\ncrc32c eb082a87\n"), 0o600))
	f(other, "reads up to version 1")
}
