package wal_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// failing returns a file system with a rule that is off.
func failing(op vfstest.Op) (*vfstest.Mem, *vfstest.Injector, *vfstest.Rule) {
	mem := vfstest.NewMem()
	rule := &vfstest.Rule{Op: op, Err: errDisk, Times: 1, Short: true}
	rule.Switch(false)
	return mem, vfstest.Inject(mem, rule), rule
}

func TestFailedSyncOrWriteGoesOnInAnotherFile(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpSync, vfstest.OpWrite} {
		for seed := range uint64(20) {
			mem, fsys, rule := failing(op)
			l := create(t, openDir(t, fsys, small), 1)
			commit(t, l, appendTo(t, l, "a"))
			rule.Switch(true)
			appendTo(t, l, "b")
			commit(t, l, appendTo(t, l, "c"))
			commit(t, l, appendTo(t, l, "d"))
			if n := mem.Handles(); n != 1 {
				t.Errorf("%v: %d files are open, want the new one", op, n)
			}
			if s := l.Stats(); s.Rotations != 1 || !errors.Is(s.LastFailure, errDisk) {
				t.Errorf("%v: stats are %+v, want one rotation", op, s)
			}
			after := openDir(t, mem.Crash(rand.New(rand.NewPCG(seed, 0))), small)
			sound(t, after, 1, "a", "b", "c", "d")
		}
	}
}

// A sync that fails between two calls of Commit must not lose what was acknowledged.
func TestFailedBackgroundSyncWritesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, fsys, rule := failing(vfstest.OpSync)
		o := small
		o.Mode = wal.SyncInterval
		l := create(t, openDir(t, fsys, o), 1)
		for _, p := range []string{"a", "b", "c"} {
			commit(t, l, appendTo(t, l, p))
		}
		rule.Switch(true)
		time.Sleep(1500 * time.Millisecond)
		crashed := mem.Crash(rand.New(rand.NewPCG(1, 1)))
		l.Close()
		sound(t, openDir(t, crashed, o), 1, "a", "b", "c")
	})
}

func TestTwoFailuresAreFinal(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpSync, vfstest.OpWrite, vfstest.OpWrite | vfstest.OpCreate} {
		mem, fsys, rule := failing(op)
		rule.Times = 0
		d := openDir(t, fsys, small)
		l := create(t, d, 1)
		commit(t, l, appendTo(t, l, "a"))
		lost := appendTo(t, l, "b")
		rule.Switch(true)
		for _, err := range []error{
			l.Commit(t.Context(), lost), l.Commit(t.Context(), lost), second(l.Append(nil)), l.Ready(), l.Close(), l.Close(),
		} {
			if !errors.Is(err, wal.ErrFailed) || !errors.Is(err, errDisk) {
				t.Errorf("%v: %v, want ErrFailed with its cause", op, err)
			}
		}
		commit(t, l, lost-1)
		rule.Switch(false)
		if n := mem.Handles(); n != 0 {
			t.Errorf("%v: %d files are open after Close", op, n)
		}
		if found, report := replay(t, openDir(t, mem, small), 1); found[1] != "a" || !report.Sound() {
			t.Errorf("%v: found %v, %+v", op, found, report)
		}
		commit(t, create(t, d, 2), 0)
	}
}

func TestFullDiskFailsTheLogUntilThereIsRoom(t *testing.T) {
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	l := create(t, d, 1)
	commit(t, l, appendTo(t, l, "a"))
	mem.SetQuota(6000)
	err := l.Commit(t.Context(), appendTo(t, l, repeated('b', 8000)))
	if !errors.Is(err, wal.ErrFailed) || !vfs.NoSpace(err) {
		t.Errorf("Commit on a full disk returned %v", err)
	}
	if _, err := d.Create(2); !vfs.NoSpace(err) {
		t.Errorf("Create on a full disk returned %v", err)
	}
	if got, want := fileNames(t, mem, dirName), "[0000000000000001-0000.log]"; got != want {
		t.Errorf("files are %s, want %s: failed files must give back their space", got, want)
	}
	mem.SetQuota(1 << 20)
	again := create(t, d, 2)
	commit(t, again, appendTo(t, again, "c"))
	sound(t, d, 2, "c")
}

func TestSpareServesWhenTheDiskIsFull(t *testing.T) {
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	closeLog(t, create(t, d, 1))
	if err := d.Recycle(1); err != nil {
		t.Fatal(err)
	}
	mem.SetQuota(4096)
	l := create(t, d, 2)
	commit(t, l, appendTo(t, l, "a"))
	sound(t, d, 2, "a")
}

// A process that dies during a rotation leaves acknowledged records in the first part only, and
// others in both.
func TestKilledWhileRotating(t *testing.T) {
	mem := vfstest.NewMem()
	var killed *vfstest.Mem
	fsys := vfstest.Inject(mem,
		&vfstest.Rule{Op: vfstest.OpSync, Path: "*-0000.log", Skip: 1, Err: errDisk},
		&vfstest.Rule{Op: vfstest.OpWrite, Path: "*-0001.log", Skip: 1, Err: errDisk, Short: true},
		&vfstest.Rule{Op: vfstest.OpRemove, Path: "*-0001.log", Hook: func() { killed = mem.Kill() }})
	o := small
	o.Mode, o.Interval = wal.SyncInterval, time.Hour
	l := create(t, openDir(t, fsys, o), 1)
	for _, p := range []string{"a", "b", "c", "d"} {
		commit(t, l, appendTo(t, l, p))
	}
	if err := l.Close(); !errors.Is(err, wal.ErrFailed) || killed == nil {
		t.Fatalf("Close returned %v, killed %v", err, killed != nil)
	}
	if got, want := fileNames(t, killed, dirName), "[0000000000000001-0000.log 0000000000000001-0001.log]"; got != want {
		t.Fatalf("files are %s, want %s", got, want)
	}
	sound(t, openDir(t, killed, o), 1, "a", "b", "c", "d")
}
