package storetool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
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

// fixture is a store of version 1 with the spans of smallStore. An earlier build wrote it.
const fixture = "testdata/store"

func TestInspect(t *testing.T) {
	if golden.Updating() {
		dir := smallStore(t).unlock()
		check(t, os.Remove(filepath.Join(dir, "LOCK")))
		check(t, os.RemoveAll(fixture))
		check(t, os.CopyFS(fixture, os.DirFS(dir)))
	}
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

// A log in which the server writes while it is read, before and after the place where the reader
// is, is not damaged.
func TestLogGrowsWhileRead(t *testing.T) {
	s := newStore(t)
	batches := synthetic(t, 3, 12_000, "")
	logs, err := wal.OpenDir(vfs.OS(), s.dir.Log(), wal.Options{})
	check(t, err)
	l, err := logs.Create(1)
	check(t, err)
	table := memtable.New(memtable.Options{})
	defer table.Release()
	write := func(batches ...*otlpdata.Batch) {
		for _, b := range batches {
			r, err := table.Append(b, 0)
			check(t, err)
			ticket, err := l.AppendAll(r.Records...)
			check(t, err)
			check(t, l.Commit(t.Context(), ticket))
		}
	}
	spans := 0
	for _, b := range batches {
		spans += b.Len()
	}
	write(batches[0])
	second := &vfstest.Rule{Op: vfstest.OpRead, Path: "*.log", Skip: 1, Times: 1, Hook: func() { write(batches[1:]...) }}
	snapshot, err := openSnapshot(vfstest.Inject(vfs.OS(), second), s.path, false)
	check(t, err)
	defer snapshot.close()
	if r := snapshot.logs[0]; r.damaged() || r.rows != spans {
		t.Errorf("%d of %d spans, %+v; want no damage", r.rows, spans, r.Report)
	}
	check(t, l.Close())
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
	check(t, os.WriteFile(filepath.Join(other, "FORMAT"), []byte("tracing span store, version 1\ncrc32c 761ce93f\n"), 0o600))
	f(dir, "has several span stores")
	check(t, os.WriteFile(filepath.Join(other, "FORMAT"), []byte("tracing span store, version 9\ncrc32c eb082a87\n"), 0o600))
	f(other, "has format 9, newer than format 1 of this program")
	check(t, os.RemoveAll(filepath.Join(dir, "disk")))
	f(dir, "has format 9, newer than format 1 of this program")
}
