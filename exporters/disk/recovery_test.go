package disk

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestEveryRecordFits: while records wait to be written, a request whose record is larger than the
// request itself is accepted or refused before it is interned. If it were refused afterwards, later
// requests would refer to definitions that are in no log.
func TestEveryRecordFits(t *testing.T) {
	soak.SkipIfRaced(t)
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		s := newSetup(mem)
		s.config.Memtable.MaxBytes, s.config.SyncGap = 256<<20, pipeline.Duration(time.Hour)
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 1)
		late := n.next(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Consume(ctx, late); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("request that waits for a sync: %v, want a timeout", err)
		}
		n.ack(late) // it is in the log, and later writes precede Kill
		for _, b := range emptySpans(t, "new", 100_000, 8) {
			if err := e.Consume(t.Context(), b); err != nil {
				t.Fatalf("Consume: %v", err)
			}
		}
		n.send(t, e, 30)
		after := mem.Kill()
		e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
		s = newSetup(after)
		s.config.Memtable.MaxBytes = 256 << 20
		e = s.start(t)
		defer stopStore(t, e)
		checkNothingLost(t, e)
		for i, acked := range n.acked {
			if acked && !hasSpan(t, e, i) {
				t.Errorf("span %d was acknowledged but is lost", i)
			}
		}
	})
}

// checkNothingLost checks that recovery reported no lost spans or requests.
func checkNothingLost(t testing.TB, e *exporter) {
	t.Helper()
	for name, c := range map[string]prometheus.Counter{"spans": e.metrics.lostSpans, "log records": e.metrics.lostRecords} {
		if n := testutil.ToFloat64(c); n > 0 {
			t.Errorf("recovery reports %v acknowledged %s as lost, want none", n, name)
		}
	}
	checkNoFileLost(t, e)
}

// checkNoFileLost checks that no segment is in the quarantine, or reported as missing.
func checkNoFileLost(t testing.TB, e *exporter) {
	t.Helper()
	files, err := e.dir.Quarantined()
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if strings.Contains(f.Name, ".seg") {
			t.Errorf("quarantine has %s", f.Name)
		}
	}
}

// TestDropOldestCountsDeferredDeletions: files that a query still reads are deleted later but count
// as freed. Otherwise the store would drop everything.
func TestDropOldestCountsDeferredDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfstest.NewMem()
		s := newSetup(fs)
		s.config.DiskFull, s.config.MinFree = dropWhenFull, 1<<20
		e := s.open(t)
		n := newNumbers()
		for range 20 {
			n.send(t, e, 1000)
			flushStore(t, e)
		}
		results, err := e.Find(t.Context(), everything(), tracestore.WantIDs)
		if err != nil {
			t.Fatal(err)
		}
		const large = 1 << 30
		fs.SetQuota(large)
		free, err := e.dir.Free()
		if err != nil {
			t.Fatal(err)
		}
		fs.SetQuota(large - free + 1<<20 - 100) // slightly less than min_free
		time.Sleep(5 * tick)
		if left := len(e.handles()); left < 18 {
			t.Errorf("%d of 20 segments are left, want at least 18", left)
		}
		for _, err := range results.All {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestOpenErrorsAreNotDamage: a segment or list that temporarily cannot be read is not damaged. The
// store fails to start until the error is gone, and then notices what is missing.
func TestOpenErrorsAreNotDamage(t *testing.T) {
	mem := vfstest.NewMem()
	e := newSetup(mem).start(t)
	n := newNumbers()
	n.send(t, e, 100)
	flushStore(t, e)
	gone := e.handles()[0].name
	n.send(t, e, 100)
	stopStore(t, e)
	for _, fault := range []*vfstest.Rule{
		{Op: vfstest.OpOpen, Path: "*.seg", Err: syscall.EMFILE},
		{Op: vfstest.OpOpen, Path: "segments.list", Err: syscall.EMFILE},
		{Op: vfstest.OpRead, Path: "segments.list", Skip: 1, Err: syscall.EMFILE},
		{Op: vfstest.OpReadDir, Path: "quarantine", Err: syscall.EMFILE},
	} {
		s := newSetup(vfstest.Inject(mem, fault))
		if err := s.build(t).Start(t.Context()); !errors.Is(err, syscall.EMFILE) {
			t.Fatalf("%s %s: Start: %v", fault.Op, fault.Path, err)
		}
	}
	e = newSetup(mem).start(t)
	n.check(t, e)
	stopStore(t, e)
	if err := mem.Remove(e.dir.Path(gone)); err != nil {
		t.Fatal(err)
	}
	if e = newSetup(mem).open(t); testutil.ToFloat64(e.metrics.lostSpans) != 100 {
		t.Error("the missing segment is not reported")
	}
}

// TestDeletedBeforeItsLog: a segment whose file is deleted before its log is removed is not lost.
func TestDeletedBeforeItsLog(t *testing.T) {
	mem := vfstest.NewMem()
	keep := &vfstest.Rule{Op: vfstest.OpRemove | vfstest.OpRename, Path: "*.log", Err: vfstest.ErrIO}
	e := newSetup(vfstest.Inject(mem, keep)).start(t)
	n := newNumbers()
	n.send(t, e, 100)
	flushStore(t, e)
	deleteFiles(t, e)
	killed := mem.Kill()
	e.Stop(t.Context()) //nolint:errcheck // its disk is gone
	e = newSetup(killed).open(t)
	checkNothingLost(t, e)
	n.check(t, e)
}

// TestClockJumps: spans do not expire because the clock was set forward or back.
func TestClockJumps(t *testing.T) {
	soak.SkipIfRaced(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(vfstest.NewMem())
		e := s.open(t)
		n := newNumbers()
		n.send(t, e, 100)
		flushStore(t, e)
		time.Sleep(2 * tick)
		s.clock.advance(50 * 365 * 24 * time.Hour)
		time.Sleep(5 * tick)
		n.check(t, e)
		s.clock.advance(-50 * 365 * 24 * time.Hour) // corrected
		time.Sleep(jumpHold + 5*tick)
		n.check(t, e)
	})
	// The clock is not set yet when the store starts, or it is ahead.
	for _, ahead := range []time.Duration{50 * 365 * 24 * time.Hour, 20 * 24 * time.Hour, 80 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zapcore.WarnLevel)
			s := newSetup(vfstest.NewMem())
			s.config.Retention.Time, s.log = pipeline.Duration(72*time.Hour), zap.New(core)
			e := s.start(t)
			n := newNumbers()
			n.send(t, e, 100)
			stopStore(t, e)
			s.clock.advance(ahead)
			e = s.open(t)
			time.Sleep(5 * tick)
			n.check(t, e)
			if logs.FilterMessageSnippet("deleting spans by age is suspended; check the clock").Len() != 1 {
				t.Errorf("%s ahead: no warning: %v", ahead, logs.All())
			}
			time.Sleep(jumpHold)
			if hasSpan(t, e, 0) {
				t.Errorf("%s ahead: spans did not expire although the clock stayed at the new time", ahead)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(vfstest.NewMem())
		s.config.Retention.Size = 190 << 10
		e := s.open(t)
		n := newNumbers()
		for i := range 30 {
			if i == 20 {
				s.clock.advance(-2 * time.Hour)
			}
			n.send(t, e, 1000)
			flushStore(t, e)
			s.clock.advance(time.Second)
			time.Sleep(2 * tick)
		}
		if oldest, newest := hasSpan(t, e, 10), hasSpan(t, e, 29_999); oldest || !newest {
			t.Errorf("old span visible: %v, want false; last span visible: %v, want true", oldest, newest)
		}
	})
}

// TestHoldIsBounded: after a stop that is longer than the retention time, spans stay for at most
// the retention time once more.
func TestHoldIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(vfstest.NewMem())
		s.config.Retention.Time = pipeline.Duration(time.Hour)
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 100)
		stopStore(t, e)
		s.clock.advance(2 * time.Hour)
		e = s.open(t)
		time.Sleep(time.Hour - 5*tick)
		n.check(t, e)
		time.Sleep(10 * tick)
		if hasSpan(t, e, 0) {
			t.Error("spans did not expire an hour after the start")
		}
	})
}

// TestExpiredSpansStayAway: a segment does not expire until its log is removed; otherwise the next
// start would recover its spans from the log.
func TestExpiredSpansStayAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		stuck := &vfstest.Rule{Op: vfstest.OpRename | vfstest.OpRemove, Path: "*.log", Err: syscall.EIO}
		s := newSetup(vfstest.Inject(mem, stuck))
		s.config.Retention.Time = pipeline.Duration(time.Minute)
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 10)
		flushStore(t, e)
		for range 120 {
			s.clock.advance(tick)
			time.Sleep(tick)
		}
		n.check(t, e)
		stuck.Switch(false)
		for range 3 {
			s.clock.advance(tick)
			time.Sleep(tick)
		}
		if hasSpan(t, e, 0) {
			t.Error("expired spans are still visible")
		}
		stopStore(t, e)
		if e = s.open(t); hasSpan(t, e, 0) {
			t.Error("expired spans came back")
		}
	})
}

// TestStopDeadline: if the disk does not respond, Stop returns at the deadline of its context.
func TestStopDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &vfstest.Rule{Op: vfstest.OpSync, Path: "*.seg.tmp", Hook: func() { time.Sleep(time.Hour) }}
		s := newSetup(vfstest.Inject(vfstest.NewMem(), slow))
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "in the write-ahead log") {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("Stop took %v", took)
		}
		time.Sleep(2 * time.Hour) // the segment is completed after Stop returned
		n.check(t, s.open(t))
	})
}
