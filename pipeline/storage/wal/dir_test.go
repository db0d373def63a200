package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// filled creates a closed log with some records.
func filled(t testing.TB, d *wal.Dir, epoch uint64, records int) {
	t.Helper()
	l := create(t, d, epoch)
	for i := range records {
		commit(t, l, appendTo(t, l, fmt.Sprintf("record %d of log %d", i, epoch)))
	}
	closeLog(t, l)
}

func TestRecycledFileShowsNothingOfItsPast(t *testing.T) {
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	filled(t, d, 1, 20)
	if err := d.Recycle(1); err != nil {
		t.Fatal(err)
	}
	if got, want := fileNames(t, mem, dirName), "[spare-0.log]"; got != want {
		t.Fatalf("files are %s, want %s", got, want)
	}
	fsys := vfstest.Inject(mem)
	d = openDir(t, fsys, small)
	l := create(t, d, 2)
	if n := fsys.Count(vfstest.OpWrite | vfstest.OpSync); n != 2 { // of the list of logs
		t.Errorf("%d writes and syncs to prepare a file that is written already", n-2)
	}
	commit(t, l, appendTo(t, l, "new"))
	closeLog(t, l)
	sound(t, d, 2, "new")
	if got, want := fileNames(t, mem, dirName), "[0000000000000002-0000.log]"; got != want {
		t.Errorf("files are %s, want %s", got, want)
	}
}

func TestSparesAreBounded(t *testing.T) {
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	for epoch := range uint64(4) {
		filled(t, d, epoch, 1)
	}
	for epoch := range uint64(4) {
		if err := d.Recycle(epoch); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fileNames(t, mem, dirName), "[spare-0.log spare-1.log]"; got != want {
		t.Errorf("files are %s, want %s", got, want)
	}
	if size, err := d.Size(); err != nil || size != 2*4096 {
		t.Errorf("size is %d, %v", size, err)
	}
	o := small
	o.Spares = -1
	d = openDir(t, mem, o)
	filled(t, d, 9, 1)
	if err := d.Recycle(9); err != nil {
		t.Fatal(err)
	}
	if got := fileNames(t, mem, dirName); got != "[]" {
		t.Errorf("files are %s, want none", got)
	}
}

func TestFilesThatFailedOrGrewAreNoSpares(t *testing.T) {
	mem, fsys, rule := failing(vfstest.OpSync)
	d := openDir(t, fsys, small)
	l := create(t, d, 1)
	rule.Switch(true)
	commit(t, l, appendTo(t, l, "a"))
	closeLog(t, l)
	big := create(t, d, 2)
	commit(t, big, appendTo(t, big, repeated('x', 50_000)))
	closeLog(t, big)
	want := "[0000000000000001-0000.log 0000000000000001-0001.log 0000000000000002-0000.log]"
	if got := fileNames(t, mem, dirName); got != want {
		t.Fatalf("files are %s, want %s", got, want)
	}
	if err := errors.Join(d.Recycle(1), d.Recycle(2)); err != nil {
		t.Fatal(err)
	}
	if got := fileNames(t, mem, dirName); got != "[]" {
		t.Errorf("files are %s, want none", got)
	}
}

func TestUselessSpareIsRemoved(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpRename, vfstest.OpOpenWrite, vfstest.OpSize} {
		mem, fsys, rule := failing(op)
		d := openDir(t, fsys, small)
		filled(t, d, 1, 3)
		if err := d.Recycle(1); err != nil {
			t.Fatal(err)
		}
		rule.Switch(true)
		filled(t, d, 2, 3)
		if got, want := fileNames(t, mem, dirName), "[0000000000000002-0000.log]"; got != want {
			t.Errorf("%v: files are %s, want %s", op, got, want)
		}
	}
}

func TestEpochsRemoveAndQuarantine(t *testing.T) {
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	for _, epoch := range []uint64{3, 1 << 63, 2} {
		filled(t, d, epoch, 1)
	}
	writePart(t, mem, 3, 1, nil)
	for _, name := range []string{"1-0.log", "0000000000000001-0000.log.tmp", "spare-x.log", "notes", "spare-01.log"} {
		if err := vfs.WriteFileAtomic(mem, dirName+"/"+name, nil); err != nil {
			t.Fatal(err)
		}
	}
	epochs, err := d.Epochs()
	if want := []uint64{2, 3, 1 << 63}; err != nil || !slices.Equal(epochs, want) {
		t.Fatalf("epochs are %v, %v; want %v", epochs, err, want)
	}
	if err := errors.Join(d.Remove(2), d.Quarantine(3, "/data/broken")); err != nil {
		t.Fatal(err)
	}
	if epochs, err = d.Epochs(); err != nil || len(epochs) != 1 {
		t.Errorf("epochs are %v, %v; want one", epochs, err)
	}
	if got, want := fileNames(t, mem, "/data/broken"), "[0000000000000003-0000.log 0000000000000003-0001.log]"; got != want {
		t.Errorf("quarantined are %s, want %s", got, want)
	}
	if _, err := d.Replay(2, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Replay of a removed log returned %v", err)
	}
}

// A log survives a bounded number of failures, here of one sync per commit.
func TestPartsAreBounded(t *testing.T) {
	var rules []*vfstest.Rule
	for i := range 20 {
		rules = append(rules, &vfstest.Rule{Op: vfstest.OpSync, Path: "*.log", Skip: 1 + 3*i, Times: 1, Err: errDisk})
	}
	d := openDir(t, vfstest.Inject(vfstest.NewMem(), rules...), small)
	l := create(t, d, 1)
	for range 15 {
		commit(t, l, appendTo(t, l, "x"))
	}
	if err := l.Commit(t.Context(), appendTo(t, l, "x")); !errors.Is(err, wal.ErrFailed) {
		t.Errorf("the 17th part was made: %v", err)
	}
	if found, report := replay(t, d, 1); len(found) < 15 || !report.Sound() {
		t.Errorf("found %d records in 16 parts, %+v", len(found), report)
	}
}

// Files are filled in steps ahead of the records, so that most syncs write no metadata. They end
// after the records, which shows that they were not truncated.
func TestFilesGrowInSteps(t *testing.T) {
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	l := create(t, d, 1)
	for _, want := range []int64{4096, 4096, 8192, 12288, 16384, 16384, 20480, 24576} {
		if size, err := d.Size(); err != nil || size != want {
			t.Errorf("with %d bytes of records the file has %d, %v; want %d", l.Stats().Size, size, err, want)
		}
		commit(t, l, appendTo(t, l, repeated('x', 3000)))
	}
	if l.Epoch() != 1 {
		t.Errorf("epoch is %d", l.Epoch())
	}
}

func TestLifeOnTheRealFileSystem(t *testing.T) {
	d, err := wal.OpenDir(vfs.OS(), filepath.ToSlash(t.TempDir())+"/log", small)
	if err != nil {
		t.Fatal(err)
	}
	filled(t, d, 1, 10)
	if err := d.Recycle(1); err != nil {
		t.Fatal(err)
	}
	l := create(t, d, 2)
	commit(t, l, appendTo(t, l, "a"))
	sound(t, d, 2, "a")
	closeLog(t, l)
	if err := d.Remove(2); err != nil {
		t.Fatal(err)
	}
	if size, err := d.Size(); err != nil || size != 0 {
		t.Errorf("%d bytes are left, %v", size, err)
	}
}
