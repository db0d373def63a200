package vfstest_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// everyOperation runs each kind of operation once; f is open for writing, and closed at the end.
func everyOperation(fsys vfs.FS, f vfs.File) map[vfstest.Op]error {
	errs := map[vfstest.Op]error{}
	opened := func(op vfstest.Op, f io.Closer, err error) {
		errs[op] = err
		if err == nil {
			f.Close()
		}
	}
	a, err := fsys.Create("/d/new")
	opened(vfstest.OpCreate, a, err)
	a, err = fsys.Open("/d/f")
	opened(vfstest.OpOpen, a, err)
	a, err = fsys.OpenWrite("/d/f")
	opened(vfstest.OpOpenWrite, a, err)
	lock, err := fsys.Lock("/d/lock")
	opened(vfstest.OpLock, lock, err)
	_, errs[vfstest.OpFree] = fsys.Free("/d")
	_, errs[vfstest.OpReadDir] = fsys.ReadDir("/d")
	_, errs[vfstest.OpWrite] = f.WriteAt([]byte("data"), 0)
	_, errs[vfstest.OpRead] = f.ReadAt(make([]byte, 1), 0)
	_, errs[vfstest.OpSize] = f.Size()
	errs[vfstest.OpTruncate] = f.Truncate(9)
	errs[vfstest.OpSync] = f.Sync()
	errs[vfstest.OpSyncDir] = fsys.SyncDir("/d")
	errs[vfstest.OpMkdirAll] = fsys.MkdirAll("/d/e")
	errs[vfstest.OpMkdir] = fsys.Mkdir("/d/e")
	errs[vfstest.OpInPlace] = f.InPlace()
	errs[vfstest.OpRename] = fsys.Rename("/d/f", "/d/g")
	errs[vfstest.OpRemove] = fsys.Remove("/d/g")
	errs[vfstest.OpClose] = f.Close()
	return errs
}

func TestEveryKindOfOperationFails(t *testing.T) {
	for op := vfstest.Op(1); op < vfstest.OpAny; op <<= 1 {
		t.Run(op.String(), func(t *testing.T) {
			m := newMem(t)
			rule := &vfstest.Rule{Op: op, Err: vfstest.ErrIO}
			rule.Switch(false)
			fsys := vfstest.Inject(m, rule)
			f := create(t, fsys, "/d/f", "content")
			rule.Switch(true)
			before := fsys.Count(op)
			for kind, err := range everyOperation(fsys, f) {
				switch {
				case kind != op && err != nil && op != vfstest.OpRename: // a failed rename leaves nothing to remove
					t.Errorf("%v failed too: %v", kind, err)
				case kind == op && !errors.Is(err, vfstest.ErrIO):
					t.Errorf("error %v", err)
				case kind == op && !strings.Contains(err.Error(), "/d"):
					t.Errorf("error %v does not name the file", err)
				}
			}
			if n := fsys.Count(op) - before; rule.Hits() == 0 || rule.Hits() != n {
				t.Errorf("%d hits in %d operations", rule.Hits(), n)
			}
			if m.Handles() != 0 {
				t.Errorf("%d handles stay open", m.Handles())
			}
		})
	}
}

func TestRuleCounts(t *testing.T) {
	rule := &vfstest.Rule{Op: vfstest.OpSync, Skip: 1, Times: 2, Err: vfstest.ErrIO}
	fsys := vfstest.Inject(newMem(t), rule)
	f := create(t, fsys, "/d/f", "")
	var got strings.Builder
	for i := range 6 {
		rule.Switch(i != 2)
		if f.Sync() == nil {
			got.WriteByte('.')
		} else {
			got.WriteByte('x')
		}
	}
	if got.String() != ".x.x.." || rule.Hits() != 2 {
		t.Errorf("failures %s, %d hits", &got, rule.Hits())
	}
	if n := fsys.Count(vfstest.OpSync | vfstest.OpCreate); n != 7 {
		t.Errorf("Count = %d, want 7", n)
	}
	if n := fsys.Count(vfstest.OpAny); n != 8 { // and the write of create
		t.Errorf("Count = %d, want 8", n)
	}
}

func TestRulePath(t *testing.T) {
	for pattern, want := range map[string]string{
		"":        "/d/a.log /d/b.seg",
		"*.log":   "/d/a.log",
		"/d/b*":   "/d/b.seg",
		"/*/*":    "/d/a.log /d/b.seg",
		"*":       "/d/a.log /d/b.seg",
		"/d":      "",
		"[ab].?e": "",
	} {
		fsys := vfstest.Inject(newMem(t), &vfstest.Rule{Path: pattern, Err: vfstest.ErrNoSpace})
		var failed []string
		for _, name := range []string{"/d/a.log", "/d/b.seg"} {
			if _, err := fsys.Create(name); err != nil {
				failed = append(failed, name)
			}
		}
		if got := strings.Join(failed, " "); got != want {
			t.Errorf("pattern %q hits %q, want %q", pattern, got, want)
		}
	}
}

func TestRenameMatchesEitherName(t *testing.T) {
	fsys := vfstest.Inject(newMem(t), &vfstest.Rule{Op: vfstest.OpRename, Path: "b", Err: vfstest.ErrIO})
	create(t, fsys, "/d/a", "")
	wantErr(t, "new name", fsys.Rename("/d/a", "/d/b"), vfstest.ErrIO)
	create(t, fsys, "/d/b", "")
	wantErr(t, "old name", fsys.Rename("/d/b", "/d/c"), vfstest.ErrIO)
	must(t, fsys.Rename("/d/a", "/d/c"))
}

func TestShortWrite(t *testing.T) {
	fsys := vfstest.Inject(newMem(t), &vfstest.Rule{Op: vfstest.OpWrite, Skip: 1, Err: vfstest.ErrNoSpace, Short: true})
	f := create(t, fsys, "/d/f", "......")
	n, err := f.WriteAt([]byte("abcd"), 1)
	if n != 2 || !vfs.NoSpace(err) {
		t.Errorf("WriteAt = %d, %v", n, err)
	}
	wantContent(t, fsys, "/d/f", ".ab...")
}

func TestFailedSyncIsFinal(t *testing.T) {
	rule := &vfstest.Rule{Op: vfstest.OpSync, Skip: 1, Times: 1, Err: vfstest.ErrIO}
	m := newMem(t)
	fsys := vfstest.Inject(vfstest.Inject(m, rule))
	f := createSynced(t, fsys, "/d/f", strings.Repeat(".", 3*sector))
	write(t, f, strings.Repeat("a", 2*sector), 0)
	wantErr(t, "sync", f.Sync(), vfstest.ErrIO)
	write(t, f, strings.Repeat("b", sector), 2*sector)
	write(t, f, "c", 0)
	wantContent(t, fsys, "/d/f", "c"+strings.Repeat("a", 2*sector-1)+strings.Repeat("b", sector))
	must(t, f.Sync())
	// The second Sync wrote the two sectors that were rewritten after the failed Sync,
	// completely, but not the sector between them.
	want := "c" + strings.Repeat("a", sector-1) + strings.Repeat(".", sector) + strings.Repeat("b", sector)
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return read(t, m, "/d/f") }), want)
}

func TestFailedSyncLeavesDataInDoubt(t *testing.T) {
	m := newMem(t)
	fsys := vfstest.Inject(m, &vfstest.Rule{Op: vfstest.OpSync, Skip: 1, Err: vfstest.ErrIO})
	f := createSynced(t, fsys, "/d/f", "old")
	write(t, f, "new", 0)
	wantErr(t, "sync", f.Sync(), vfstest.ErrIO)
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return read(t, m, "/d/f") }), "old", "new")
}

// WriteFileAtomic is the scenario for crashes at every operation: the file then has the old content
// or the new one.
func TestCrashAtEveryOperation(t *testing.T) {
	scenario := func(n int, hook func(m *vfstest.Mem)) (ops int, err error) {
		m := newMem(t)
		must(t, vfs.WriteFileAtomic(m, "/d/f", []byte("old")))
		fsys := vfstest.Inject(m, &vfstest.Rule{Op: vfstest.OpChanges, Skip: n, Times: 1, Hook: func() { hook(m) }})
		err = vfs.WriteFileAtomic(fsys, "/d/f", []byte("new"))
		return fsys.Count(vfstest.OpChanges), err
	}
	ops, err := scenario(1000, nil)
	must(t, err)
	seen := map[string]int{}
	for n := range ops {
		for seed := range 20 {
			var after *vfstest.Mem
			_, err := scenario(n, func(m *vfstest.Mem) { after = m.Crash(rng(seed)) })
			wantErr(t, fmt.Sprintf("crash at operation %d of %d", n, ops), err, vfstest.ErrCrashed)
			seen[read(t, after, "/d/f")]++
			must(t, vfs.WriteFileAtomic(after, "/d/f", []byte("newer"))) // what the crash left is not in the way
			wantContent(t, after, "/d/f", "newer")
		}
	}
	wantOutcomes(t, seen, "old", "new")
}
