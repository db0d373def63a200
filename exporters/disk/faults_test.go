package disk

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestFaults makes random disk operations fail while spans are written, deleted and merged and
// tombstones removed, and sometimes cuts the power. Acknowledged spans must be found exactly once,
// and deleted spans not at all, whether a failed operation was retried, given up, or took effect
// despite the error.
func TestFaults(t *testing.T) {
	forEachSeed(t, soak.Rounds(t, 100, 20), operateWithFaults)
}

func operateWithFaults(t testing.TB, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	mem, clock, spans := vfstest.NewMem(), newClock(), newDeletedNumbers()
	open := func(s *setup) *setup {
		s.clock, s.config.MaxWait, s.config.Merge.MinSegments = clock, 0, 2+rnd.IntN(2)
		if soak.Repeating() {
			s.withLog(t)
		}
		return s
	}
	for range 1 + rnd.IntN(4) {
		e := open(newSetup(vfstest.Inject(mem, randomFaults(rnd)...))).build(t)
		if err := e.Start(t.Context()); err == nil {
			for range 60 {
				spans.operate(t, e, rnd, clock)
			}
			after := mem
			if rnd.IntN(2) == 0 {
				after = mem.Crash(rand.New(rand.NewPCG(rnd.Uint64(), 1)))
			}
			e.Stop(t.Context()) //nolint:errcheck // fails if the disk does
			mem = after
		}
	}
	for range 2 {
		e := open(newSetup(mem)).start(t)
		checkNoFileLost(t, e)
		spans.check(t, e)
		flushStore(t, e)
		if visible, counted := spans.numbers.check(t, e), rowsOf(t, e); visible != counted {
			t.Errorf("%d spans are visible, but the sources have %d", visible, counted)
		}
		stopStore(t, e)
	}
}

// randomFaults returns rules that each fail one or several consecutive operations of a kind.
func randomFaults(rnd *rand.Rand) (rules []*vfstest.Rule) {
	kinds := []vfstest.Op{vfstest.OpChanges, vfstest.OpSyncDir, vfstest.OpRemove, vfstest.OpRename, vfstest.OpSync, vfstest.OpOpen}
	places := []string{"", "", "*.seg*", "*.mark*", "20261121", "deletions", "log", "segments.list*", "disk"}
	for range 2 + rnd.IntN(8) {
		rules = append(rules, &vfstest.Rule{Op: kinds[rnd.IntN(len(kinds))], Path: places[rnd.IntN(len(places))], Skip: rnd.IntN(30),
			Times: 1 + rnd.IntN(4), Err: syscall.EIO})
	}
	return rules
}

// rowsOf returns the number of visible rows in all sources. Duplicates count each time.
func rowsOf(t testing.TB, e *exporter) (n int) {
	t.Helper()
	if _, _, err := e.deletions.countHidden(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	v := e.deletions.view()
	defer v.Release()
	for _, s := range v.Sources() {
		rows, _, _ := s.Bounds()
		n += rows
	}
	return n
}

// TestWithdrawnOutput: while the output file of a failed merge exists, its inputs are not merged
// again. Otherwise a crash could leave two segments with the same spans, which would count twice.
func TestWithdrawnOutput(t *testing.T) {
	mem := vfstest.NewMem()
	unsynced := &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "20261121", Skip: 1, Err: syscall.EIO}
	stays := &vfstest.Rule{Op: vfstest.OpRemove, Path: "1-*.seg", Err: syscall.EIO}
	unsynced.Switch(false)
	s := mergeSetup(vfstest.Inject(mem, unsynced, stays))
	e, n := s.start(t), newNumbers()
	sendSegments(t, s, e, n, 4)
	unsynced.Switch(true)
	if _, err := e.merger.mergeNext(withoutPauses(e)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("merge: %v, want an I/O error", err)
	}
	unsynced.Switch(false)
	sendSegments(t, s, e, n, 1)
	if mergeAll(t, e) != 0 {
		t.Error("inputs were merged again while the earlier output exists")
	}
	after := mem.Kill()
	e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
	again := mergeSetup(after).open(t)
	if visible, counted := n.check(t, again), rowsOf(t, again); visible != 150 || counted != 150 {
		t.Errorf("%d spans are visible and segments have %d, want 150", visible, counted)
	}
	stays.Switch(false)
}

// TestFailedDeletionHidesNothingLater: if a tombstone was possibly written despite an error, it
// does not hide spans that arrived later and were merged with the spans it applied to.
func TestFailedDeletionHidesNothingLater(t *testing.T) {
	for name, times := range map[string]int{"withdrawn": 1, "in doubt": 2} {
		t.Run(name, func(t *testing.T) {
			mem := vfstest.NewMem()
			s := newSetup(vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "deletions", Times: times, Err: syscall.EIO}))
			s.config.Merge.MinSegments = 2
			e, d := s.start(t), newDeletedNumbers()
			d.write(t, e, 30)
			_, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)})
			if errors.Is(err, tombstone.ErrInDoubt) != (times > 1) || err == nil {
				t.Fatalf("Delete: %v", err)
			}
			before := d.numbers.acked
			d.numbers.acked = make([]bool, len(before)) // the spans may be deleted or not
			flushStore(t, e)
			d.write(t, e, 30)
			flushStore(t, e)
			mergeAll(t, e)
			stopStore(t, e)
			s.fs = mem
			d.check(t, s.open(t))
		})
	}
}

// TestRepeatedDeletionIsDurable: a deletion that is repeated after an error is durable, even though
// the first attempt already hides the same spans.
func TestRepeatedDeletionIsDurable(t *testing.T) {
	for seed := range uint64(20) {
		mem := vfstest.NewMem()
		s := newSetup(vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "deletions", Times: 2, Err: syscall.EIO}))
		e, d := s.start(t), newDeletedNumbers()
		d.write(t, e, 30)
		for _, failed := range []bool{true, false, false} {
			if _, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)}); (err != nil) != failed {
				t.Fatalf("Delete: %v", err)
			}
		}
		for i := range d.acked {
			d.acked[i], d.gone[i] = false, true
		}
		if err := e.deletions.clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := mem.Crash(rand.New(rand.NewPCG(seed, 0)))
		e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
		d.check(t, newSetup(after).open(t))
	}
}

// TestTombstonesOutliveUnsyncedRemovals: the tombstones of a segment stay until the removal of the
// segment is durable, because a power cut could bring it back.
func TestTombstonesOutliveUnsyncedRemovals(t *testing.T) {
	mem := vfstest.NewMem()
	unsynced := &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "20261121", Err: syscall.EIO}
	unsynced.Switch(false)
	s := newSetup(vfstest.Inject(mem, unsynced))
	e, d := s.open(t), newDeletedNumbers()
	d.write(t, e, 30)
	for _, what := range []tracestore.Deletion{{From: startOf(0)}, {Service: "absent"}} {
		if _, err := e.Delete(t.Context(), "", what); err != nil {
			t.Fatal(err)
		}
	}
	flushStore(t, e)
	waitForLogRemoval(e)
	unsynced.Switch(true)
	for _, want := range []int{2, 1} {
		for range 2 {
			if err := e.deletions.clean(t.Context()); err != nil {
				t.Error(err)
			}
			e.segments.retryRemovals()
		}
		if files, err := mem.ReadDir(folder + "/deletions"); err != nil || len(files) != 2*want { // with copies
			t.Errorf("tombstones %v, %v; want %d", files, err, want)
		}
		unsynced.Switch(false)
		if err := e.dir.RemoveEmptyDays(); err != nil {
			t.Error(err)
		}
	}
	if len(e.segments.doomed) > 0 {
		t.Errorf("%d segments are still to be deleted", len(e.segments.doomed))
	}
}

// TestDeleteReportsFailedFlush: if a deletion needs a memtable to be flushed first and the flush
// fails, the deletion fails immediately with the error of the flush.
func TestDeleteReportsFailedFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &vfstest.Rule{Op: vfstest.OpCreate, Path: "*.seg.tmp", Err: syscall.EIO}
		s := newSetup(vfstest.Inject(vfstest.NewMem(), full))
		s.config.Memtable.MaxSpans, s.config.MaxWait = 10, pipeline.Duration(time.Hour)
		e, d := s.open(t), newDeletedNumbers()
		d.write(t, e, 10)
		d.write(t, e, 5) // freezes the first memtable
		time.Sleep(tick)
		began := time.Now()
		_, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)})
		if !errors.Is(err, syscall.EIO) || time.Since(began) > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		full.Switch(false)
		time.Sleep(2 * maxBackoff)
	})
}

// TestLeftoverLogFile: the file of a log that could not be created does not prevent creating the
// next log, even if the clock stands still.
func TestLeftoverLogFile(t *testing.T) {
	s := newSetup(vfstest.Inject(vfstest.NewMem(), &vfstest.Rule{Op: vfstest.OpSyncDir, Path: "log", Skip: 1, Times: 1, Err: syscall.EIO},
		&vfstest.Rule{Op: vfstest.OpRemove, Path: "*.log", Times: 1, Err: syscall.EIO}))
	e, n := s.open(t), newNumbers()
	if err := e.Consume(t.Context(), n.next(1)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Consume on a failing disk: %v, want an I/O error", err)
	}
	n.send(t, e, 10)
	n.check(t, e)
}
