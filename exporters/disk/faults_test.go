package disk

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/internal/soak"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestFaults fails random operations on a disk that otherwise goes on, while spans are written,
// deleted, merged and marks removed, and cuts the power now and then: what was acknowledged is
// there once, and what was deleted is not, also where the operation that failed was done again,
// given up, or had taken place all the same.
func TestFaults(t *testing.T) {
	seeds(t, soak.Rounds(t, 100, 20), failAndGoOn)
}

func failAndGoOn(t testing.TB, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	mem, clock, spans := vfstest.NewMem(), newClock(), newErased()
	open := func(s *setup) *setup {
		s.clock, s.config.MaxWait, s.config.Merge.MinSegments = clock, 0, 2+rnd.IntN(2)
		if soak.Repeating() {
			s.logged(t)
		}
		return s
	}
	for range 1 + rnd.IntN(4) {
		e := open(small(vfstest.Inject(mem, randomFaults(rnd)...))).build(t)
		if err := e.Start(t.Context()); err == nil {
			for range 60 {
				spans.operate(t, e, rnd, clock)
			}
			after := mem
			if rnd.IntN(2) == 0 {
				after = mem.Crash(rand.New(rand.NewPCG(rnd.Uint64(), 1)))
			}
			e.Stop(t.Context()) //nolint:errcheck // it fails where the disk does
			mem = after
		}
	}
	for range 2 {
		e := open(small(mem)).start(t)
		spans.check(t, e)
		flushed(t, e)
		if visible, counted := spans.numbers.check(t, e), rowsOf(t, e); visible != counted {
			t.Errorf("%d spans are visible, and segments have %d", visible, counted)
		}
		stopStore(t, e)
	}
}

// randomFaults fails a few operations, one or some of a kind in a row.
func randomFaults(rnd *rand.Rand) (rules []*vfstest.Rule) {
	kinds := []vfstest.Op{vfstest.OpChanges, vfstest.OpSyncDir, vfstest.OpRemove, vfstest.OpRename, vfstest.OpSync, vfstest.OpOpen}
	places := []string{"", "", "*.seg*", "*.mark*", "20261121", "deletions", "log"}
	for range 2 + rnd.IntN(8) {
		rules = append(rules, &vfstest.Rule{Op: kinds[rnd.IntN(len(kinds))], Path: places[rnd.IntN(len(places))], Skip: rnd.IntN(30),
			Times: 1 + rnd.IntN(4), Err: syscall.EIO})
	}
	return rules
}

// rowsOf returns how many spans the store shows, found in two places as two.
func rowsOf(t testing.TB, e *exporter) (n int) {
	t.Helper()
	if _, _, err := e.countHidden(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	v := e.view()
	defer v.Release()
	for _, s := range v.Sources() {
		rows, _, _ := s.Bounds()
		n += rows
	}
	return n
}

// TestWithdrawnOutput: as long as the file of a merge that failed is there, no other merge makes a
// segment of the same spans: after a crash both would be there, and each span counted twice.
func TestWithdrawnOutput(t *testing.T) {
	mem := vfstest.NewMem()
	unsynced := &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "20261121", Skip: 1, Err: syscall.EIO}
	stays := &vfstest.Rule{Op: vfstest.OpRemove, Path: "1-*.seg", Err: syscall.EIO}
	unsynced.Switch(false)
	s := merging(vfstest.Inject(mem, unsynced, stays))
	e, n := s.start(t), newNumbers()
	sendSegments(t, s, e, n, 4)
	unsynced.Switch(true)
	if _, err := e.mergeNext(unhurried(e)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("merging: %v", err)
	}
	unsynced.Switch(false)
	sendSegments(t, s, e, n, 1)
	if merged(t, e) != 0 {
		t.Error("the inputs were merged again beside the output of before")
	}
	after := mem.Kill()
	e.Stop(t.Context()) //nolint:errcheck // the disk below it is gone
	again := merging(after).open(t)
	if visible, counted := n.check(t, again), rowsOf(t, again); visible != 150 || counted != 150 {
		t.Errorf("of 150 spans %d are visible, and segments have %d", visible, counted)
	}
	stays.Switch(false)
}

// TestFailedDeletionHidesNothingLater: a mark that could not be written, and that may be there all
// the same, is not taken at the next start for one that hides spans of later, which were merged
// with those that it was for.
func TestFailedDeletionHidesNothingLater(t *testing.T) {
	for name, times := range map[string]int{"taken back": 1, "in doubt": 2} {
		t.Run(name, func(t *testing.T) {
			mem := vfstest.NewMem()
			s := small(vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "deletions", Times: times, Err: syscall.EIO}))
			s.config.Merge.MinSegments = 2
			e, d := s.start(t), newErased()
			d.write(t, e, 30)
			if _, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)}); errors.Is(err, tombstone.ErrInDoubt) != (times > 1) || err == nil {
				t.Fatalf("Delete: %v", err)
			}
			before := d.numbers.acked
			d.numbers.acked = make([]bool, len(before)) // they may be there or not
			flushed(t, e)
			d.write(t, e, 30)
			flushed(t, e)
			merged(t, e)
			stopStore(t, e)
			s.fs = mem
			d.check(t, s.open(t))
		})
	}
}

// TestDoubtIsSettled: a deletion that is repeated after an error is there for good, although it
// hides nothing that the first attempt does not hide, as long as that lasts.
func TestDoubtIsSettled(t *testing.T) {
	for seed := range uint64(20) {
		mem := vfstest.NewMem()
		s := small(vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "deletions", Times: 2, Err: syscall.EIO}))
		e, d := s.start(t), newErased()
		d.write(t, e, 30)
		for _, failed := range []bool{true, false, false} {
			if _, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)}); (err != nil) != failed {
				t.Fatalf("Delete: %v", err)
			}
		}
		for i := range d.acked {
			d.acked[i], d.gone[i] = false, true
		}
		if err := e.cleanDeletions(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := mem.Crash(rand.New(rand.NewPCG(seed, 0)))
		e.Stop(t.Context()) //nolint:errcheck // the disk below it is gone
		d.check(t, small(after).open(t))
	}
}

// TestMarksOutliveUnsyncedRemovals: while the removal of a segment is not durable, a power cut
// brings its spans back, and the mark that hides them stays.
func TestMarksOutliveUnsyncedRemovals(t *testing.T) {
	mem := vfstest.NewMem()
	unsynced := &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "20261121", Err: syscall.EIO}
	unsynced.Switch(false)
	s := small(vfstest.Inject(mem, unsynced))
	e, d := s.open(t), newErased()
	d.write(t, e, 30)
	for _, what := range []tracestore.Deletion{{From: startOf(0)}, {Service: "nobody"}} {
		if _, err := e.Delete(t.Context(), "", what); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, e)
	settled(e)
	unsynced.Switch(true)
	for _, want := range []int{2, 1} {
		for range 2 {
			if err := e.cleanDeletions(t.Context()); err != nil {
				t.Error(err)
			}
			e.retryRemovals()
		}
		if marks, err := mem.ReadDir(folder + "/deletions"); err != nil || len(marks) != want {
			t.Errorf("there are the marks %v, %v; want %d", marks, err, want)
		}
		unsynced.Switch(false)
		if err := e.dir.RemoveEmptyDays(); err != nil {
			t.Error(err)
		}
	}
	if len(e.doomed) > 0 {
		t.Errorf("%d segments are still to be deleted", len(e.doomed))
	}
}

// TestDeleteSaysWhatKeepsIt: where a memtable has to be written first and cannot be, a deletion
// fails at once, with the reason.
func TestDeleteSaysWhatKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &vfstest.Rule{Op: vfstest.OpCreate, Path: "*.seg.tmp", Err: syscall.EIO}
		s := small(vfstest.Inject(vfstest.NewMem(), full))
		s.config.Memtable.MaxSpans, s.config.MaxWait = 10, pipeline.Duration(time.Hour)
		e, d := s.open(t), newErased()
		d.write(t, e, 10)
		d.write(t, e, 5) // freezes the first memtable
		time.Sleep(tick)
		began := time.Now()
		if _, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)}); !errors.Is(err, syscall.EIO) || time.Since(began) > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		full.Switch(false)
		time.Sleep(2 * maxBackoff)
	})
}

// TestLeftoverOfALog: what is left of a log that could not be made is not in the way of the next
// one, also where the clock stands still.
func TestLeftoverOfALog(t *testing.T) {
	s := small(vfstest.Inject(vfstest.NewMem(), &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "log", Skip: 1, Times: 1, Err: syscall.EIO},
		&vfstest.Rule{Op: vfstest.OpRemove, Path: "*.log", Times: 1, Err: syscall.EIO}))
	e, n := s.open(t), newNumbers()
	if err := e.Consume(t.Context(), n.next(1)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Consume on a disk that fails: %v", err)
	}
	n.send(t, e, 10)
	n.check(t, e)
}
