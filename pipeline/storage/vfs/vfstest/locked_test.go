package vfstest_test

import (
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// TestLockedDirectoryIsMoved: nothing is read or changed below the name of a directory that was
// moved or replaced, and the directory is not created.
func TestLockedDirectoryIsMoved(t *testing.T) {
	m := vfstest.NewMem()
	must(t, m.MkdirAll("/d"))
	lock, err := m.Lock("/d/LOCK")
	must(t, err)
	fsys := vfs.Locked(m, "/d", lock)
	must(t, fsys.MkdirAll("/d/a/b"))
	file := create(t, fsys, "/d/f", "F")
	fails := func(when string) {
		t.Helper()
		_, created := fsys.Create("/d/new")
		_, opened := fsys.Open("/d/f")
		_, openedWrite := fsys.OpenWrite("/d/f")
		_, listed := fsys.ReadDir("/d")
		_, locked := fsys.Lock("/d/LOCK")
		_, free := fsys.Free("/d")
		for what, err := range map[string]error{
			"create": created, "open": opened, "open for writing": openedWrite, "list": listed, "lock": locked, "free": free,
			"rename": fsys.Rename("/d/f", "/d/g"), "remove": fsys.Remove("/d/f"), "mkdir": fsys.Mkdir("/d/c"), "sync": fsys.SyncDir("/d"),
			"mkdir with parents": fsys.MkdirAll("/d/a/c"), "mkdir of itself": fsys.MkdirAll("/d"), "place of a file": file.InPlace(),
		} {
			wantErr(t, when+": "+what, err, vfs.ErrMoved)
		}
	}
	must(t, m.Rename("/d", "/moved"))
	fails("moved")
	if got := names(t, m, "/"); len(got) != 1 {
		t.Errorf("there are %q", got)
	}
	must(t, m.MkdirAll("/d"))
	other, err := m.Lock("/d/LOCK")
	must(t, err)
	must(t, create(t, m, "/d/f", "of another process").Close())
	fails("replaced")
	if got := names(t, m, "/d"); len(got) != 2 {
		t.Errorf("there are %q in the other directory", got)
	}
	must(t, m.Rename("/d", "/other"))
	must(t, m.Rename("/moved", "/d"))
	must(t, fsys.MkdirAll("/d/a/c"))
	must(t, errors.Join(file.InPlace(), file.Close(), lock.Close(), other.Close()))
}
