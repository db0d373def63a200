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

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestEveryRecordFits: while records wait to be written, a request whose record is larger than the
// request itself is taken or refused before it is interned. Were it refused afterwards, later
// requests would use definitions that are in no log.
func TestEveryRecordFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		s := small(mem)
		s.config.Memtable.MaxBytes, s.config.SyncGap = 256<<20, pipeline.Duration(time.Hour)
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 1)
		late := n.next(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Consume(ctx, late); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a request that waits for a sync: %v", err)
		}
		n.ack(late) // it stays in the log, and Kill comes after the next write
		for _, b := range emptySpans(t, "new", 100_000, 8) {
			if err := e.Consume(t.Context(), b); err != nil {
				t.Fatalf("Consume: %v", err)
			}
		}
		n.send(t, e, 30)
		after := mem.Kill()
		e.Stop(t.Context()) //nolint:errcheck // the disk below it is gone
		s = small(after)
		s.config.Memtable.MaxBytes = 256 << 20
		e = s.start(t)
		defer stopStore(t, e)
		checkNothingLost(t, e)
		for i, acked := range n.acked {
			if acked && !has(t, e, i) {
				t.Errorf("span %d was acknowledged and is lost", i)
			}
		}
	})
}

// checkNothingLost checks what recovery reported.
func checkNothingLost(t testing.TB, e *exporter) {
	t.Helper()
	for name, c := range map[string]prometheus.Counter{"spans": e.metrics.lostSpans, "requests": e.metrics.lostRecords} {
		if n := testutil.ToFloat64(c); n > 0 {
			t.Errorf("%v acknowledged %s are reported lost, and none is", n, name)
		}
	}
}

// TestDropOldestCountsWhatQueriesHold: files that a query still reads are deleted later. They count
// as freed, or everything would go.
func TestDropOldestCountsWhatQueriesHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfstest.NewMem()
		s := small(fs)
		s.config.DiskFull, s.config.MinFree = dropWhenFull, 1<<20
		e := s.open(t)
		n := newNumbers()
		for range 20 {
			n.send(t, e, 1000)
			flushed(t, e)
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
		fs.SetQuota(large - free + 1<<20 - 100) // a little less than min_free is left
		time.Sleep(5 * tick)
		if left := len(e.handles()); left < 18 {
			t.Errorf("%d of 20 segments are left; one had to go", left)
		}
		for _, err := range results.All {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestOpenErrorsAreNotDamage: a segment that cannot be opened for the moment is not set aside. The
// store does not start, and does when the trouble has passed.
func TestOpenErrorsAreNotDamage(t *testing.T) {
	mem := vfstest.NewMem()
	e := small(mem).start(t)
	n := newNumbers()
	n.send(t, e, 100)
	stopStore(t, e)
	trouble := &vfstest.Rule{Op: vfstest.OpOpen, Path: "*.seg", Err: syscall.EMFILE}
	s := small(vfstest.Inject(mem, trouble))
	if err := s.build(t).Start(t.Context()); !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("Start: %v", err)
	}
	trouble.Switch(false)
	n.check(t, s.open(t))
}

// TestClockJumps: spans do not go because the clock was set, forwards or backwards.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := small(vfstest.NewMem())
		e := s.open(t)
		n := newNumbers()
		n.send(t, e, 100)
		flushed(t, e)
		time.Sleep(2 * tick)
		s.clock.advance(50 * 365 * 24 * time.Hour)
		time.Sleep(5 * tick)
		n.check(t, e)
		s.clock.advance(-50 * 365 * 24 * time.Hour) // somebody noticed
		time.Sleep(jumpHold + 5*tick)
		n.check(t, e)
	})
	synctest.Test(t, func(t *testing.T) { // a machine that does not know the time yet when the store starts
		mem := vfstest.NewMem()
		s := small(mem)
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 100)
		stopStore(t, e)
		s.clock.advance(50 * 365 * 24 * time.Hour)
		e = s.open(t)
		time.Sleep(5 * tick)
		n.check(t, e)
		time.Sleep(jumpHold)
		if has(t, e, 0) {
			t.Error("the clock was right after all, and the spans did not go")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := small(vfstest.NewMem())
		s.config.Retention.Size = 190 << 10
		e := s.open(t)
		n := newNumbers()
		for i := range 30 {
			if i == 20 {
				s.clock.advance(-2 * time.Hour)
			}
			n.send(t, e, 1000)
			flushed(t, e)
			s.clock.advance(time.Second)
			time.Sleep(2 * tick)
		}
		if oldest, newest := has(t, e, 10), has(t, e, 29_999); oldest || !newest {
			t.Errorf("the first span is there: %v, the last one: %v", oldest, newest)
		}
	})
}

// TestExpiredSpansStayAway: when the log of a segment cannot be removed, the segment does not
// expire before that, for at the next start the log would bring its spans back.
func TestExpiredSpansStayAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		stuck := &vfstest.Rule{Op: vfstest.OpRename | vfstest.OpRemove, Path: "*.log", Err: syscall.EIO}
		s := small(vfstest.Inject(mem, stuck))
		s.config.Retention.Time = pipeline.Duration(time.Minute)
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 10)
		flushed(t, e)
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
		if has(t, e, 0) {
			t.Error("the spans are there after their time")
		}
		stopStore(t, e)
		if e = s.open(t); has(t, e, 0) {
			t.Error("the spans came back")
		}
	})
}

// TestStopKeepsItsDeadline: a disk that does not answer keeps Stop no longer than its context says.
func TestStopKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &vfstest.Rule{Op: vfstest.OpSync, Path: "*.tmp", Hook: func() { time.Sleep(time.Hour) }}
		s := small(vfstest.Inject(vfstest.NewMem(), slow))
		e := s.start(t)
		n := newNumbers()
		n.send(t, e, 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "in the log") {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("Stop took %v", took)
		}
		time.Sleep(2 * time.Hour) // the segment is completed behind its back
		n.check(t, s.open(t))
	})
}
