package wal_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

func TestRecordsComeBackInOrder(t *testing.T) {
	for _, mode := range []wal.Mode{wal.SyncAlways, wal.SyncInterval, wal.SyncOS} {
		t.Run(string(mode), func(t *testing.T) {
			o := small
			o.Mode = mode
			d := openDir(t, vfstest.NewMem(), o)
			l := create(t, d, 7)
			wanted := []string{"", "a", repeated('b', 39), repeated('c', 5000), repeated('d', 600<<10), "e"}
			for _, w := range wanted[:3] {
				commit(t, l, appendTo(t, l, w))
			}
			for _, w := range wanted[3:] {
				appendTo(t, l, w)
			}
			closeLog(t, l)
			sound(t, d, 7, wanted...)
		})
	}
}

func TestAppendJoinsItsParts(t *testing.T) {
	d := openDir(t, vfstest.NewMem(), small)
	l := create(t, d, 1)
	if _, err := l.Append([]byte("one "), nil, []byte("record")); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	sound(t, d, 1, "one record")
}

func TestAppendAll(t *testing.T) {
	d := openDir(t, vfstest.NewMem(), small)
	l := create(t, d, 1)
	tooLarge := make([]byte, wal.MaxPayload+1)
	if _, err := l.AppendAll([][]byte{[]byte("none")}, [][]byte{tooLarge}); !errors.Is(err, wal.ErrTooLarge) {
		t.Errorf("AppendAll: %v, want %v", err, wal.ErrTooLarge)
	}
	last, err := l.AppendAll([][]byte{[]byte("one "), []byte("record")}, [][]byte{[]byte("another")})
	if err != nil || last != 2 {
		t.Errorf("AppendAll: ticket %d, %v, want 2", last, err)
	}
	commit(t, l, last)
	closeLog(t, l)
	sound(t, d, 1, "one record", "another")
}

// While one sync runs, all other callers gather for the next one.
func TestTwoSyncsServeEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, gate := gateSyncs(1)
		l := create(t, openDir(t, fsys, small), 1)
		var wg sync.WaitGroup
		wg.Go(func() { commit(t, l, appendTo(t, l, "first")) })
		synctest.Wait()
		for range 50 {
			wg.Go(func() { commit(t, l, appendTo(t, l, "later")) })
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		if s := l.Stats(); s.Syncs != 2 || s.Groups != 2 || s.Records != 51 || s.Written == 0 || s.Size != s.Written {
			t.Errorf("stats are %+v, want 51 records in 2 groups and syncs", s)
		}
		closeLog(t, l)
	})
}

// gateSyncs lets some syncs pass and stops the later ones until the channel is closed.
func gateSyncs(pass int) (*vfstest.Injector, chan struct{}) {
	gate := make(chan struct{})
	return vfstest.Inject(vfstest.NewMem(), &vfstest.Rule{Op: vfstest.OpSync, Path: "*.log", Skip: pass, Hook: func() { <-gate }}), gate
}

func TestCommitWaitsForTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, gate := gateSyncs(1)
		l := create(t, openDir(t, fsys, small), 1)
		done := make(chan error, 1)
		go func() { done <- l.Commit(t.Context(), appendTo(t, l, "x")) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Commit returned %v before the sync was done", err)
		default:
		}
		close(gate)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
	})
}

func TestCommitGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, gate := gateSyncs(1)
		d := openDir(t, fsys, small)
		l := create(t, d, 1)
		var leader sync.WaitGroup
		leader.Go(func() { commit(t, l, appendTo(t, l, "leader")) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Commit(ctx, appendTo(t, l, "impatient")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Commit returned %v, want the error of its context", err)
		}
		close(gate)
		leader.Wait()
		closeLog(t, l)
		sound(t, d, 1, "leader", "impatient")
	})
}

func TestCommitKnowsItsRecords(t *testing.T) {
	l := create(t, openDir(t, vfstest.NewMem(), small), 1)
	ticket := appendTo(t, l, "x")
	if err := l.Commit(t.Context(), ticket+1); err == nil {
		t.Error("Commit of a record that was never appended succeeded")
	}
	commit(t, l, ticket)
	commit(t, l, ticket)
	appendTo(t, l, "y")
	closeLog(t, l)
	commit(t, l, ticket+1)
	if _, err := l.Append(nil); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("Append after Close returned %v", err)
	}
	closeLog(t, l)
}

func TestPendingBytesAreBounded(t *testing.T) {
	o := small
	o.MaxPending = 1000
	l := create(t, openDir(t, vfstest.NewMem(), o), 1)
	big := appendTo(t, l, repeated('x', 5000)) // alone it may be larger
	if err := l.Ready(); !errors.Is(err, wal.ErrFull) {
		t.Errorf("Ready says %v, want ErrFull", err)
	}
	if _, err := l.Append([]byte("y")); !errors.Is(err, wal.ErrFull) {
		t.Errorf("Append returned %v, want ErrFull", err)
	}
	commit(t, l, big)
	if err := l.Ready(); err != nil {
		t.Errorf("Ready after Commit says %v", err)
	}
	if ticket := appendTo(t, l, "y"); ticket != big+1 {
		t.Errorf("ticket %d follows %d: the refused record took a number", ticket, big)
	}
	if _, err := l.Append(make([]byte, wal.MaxPayload+1)); !errors.Is(err, wal.ErrTooLarge) {
		t.Errorf("a payload above MaxPayload is answered with %v", err)
	}
}

func second[A any](_ A, err error) error { return err }

func TestMinGapKeepsSyncsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.MinGap = 5 * time.Millisecond
		l := create(t, openDir(t, vfstest.NewMem(), o), 1)
		start := time.Now()
		for range 4 {
			commit(t, l, appendTo(t, l, "x"))
		}
		if took := time.Since(start); took != 3*o.MinGap {
			t.Errorf("4 commits took %v, want 3 gaps of %v", took, o.MinGap)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := l.Commit(ctx, appendTo(t, l, "y")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Commit returned %v, want the error of its context", err)
		}
		closeLog(t, l)
	})
}

func TestIntervalSyncsBehindCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.Mode, o.Interval = wal.SyncInterval, time.Second
		l := create(t, openDir(t, vfstest.NewMem(), o), 1)
		start := time.Now()
		for range 10 {
			commit(t, l, appendTo(t, l, "x"))
		}
		if s := l.Stats(); s.Syncs != 0 || s.Groups != 10 || time.Since(start) != 0 {
			t.Errorf("after %v stats are %+v, want 10 groups, none synced, no waiting", time.Since(start), s)
		}
		time.Sleep(1500 * time.Millisecond)
		if s := l.Stats(); s.Syncs != 1 {
			t.Errorf("%d syncs after an interval with data", s.Syncs)
		}
		time.Sleep(10 * time.Second)
		if s := l.Stats(); s.Syncs != 1 {
			t.Errorf("%d syncs after idle intervals", s.Syncs)
		}
		closeLog(t, l)
	})
}

func TestIntervalSyncsEarlyWhenTooMuchIsUnsynced(t *testing.T) {
	o := small
	o.Mode, o.Interval, o.MaxPending = wal.SyncInterval, time.Hour, 4096
	l := create(t, openDir(t, vfstest.NewMem(), o), 1)
	for range 20 {
		commit(t, l, appendTo(t, l, repeated('x', 1000)))
	}
	if s := l.Stats(); s.Syncs != 6 {
		t.Errorf("%d syncs for 20 groups of 1536 bytes with 4096 bytes kept at most, want one every 3: %+v", s.Syncs, s)
	}
}

func TestDirSaysWhatIsWrong(t *testing.T) {
	mem := vfstest.NewMem()
	for _, o := range []wal.Options{{Mode: "sometimes"}, {Step: -1}, {Interval: -1}} {
		if _, err := wal.OpenDir(mem, dirName, o); err == nil {
			t.Errorf("options %+v were accepted", o)
		}
	}
	d := openDir(t, mem, small)
	closeLog(t, create(t, d, 3))
	if _, err := d.Create(3); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), partPath(3, 0)) {
		t.Errorf("Create of an existing log returned %v", err)
	}
	if _, err := d.Replay(4, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Replay of a missing log returned %v", err)
	}
}
