package disk

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkRefused checks that an error tells the sender to retry later.
func checkRefused(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("full store accepted spans")
	}
	if code, after := pipeline.HTTPStatus(err); code != 503 || after <= 0 || pipeline.IsPermanent(err) {
		t.Errorf("%v: status %d, retry after %v; want 503 with a delay", err, code, after)
	}
}

// TestFullDiskAtStart starts a store on a full disk: the process must not be ready before that is
// known, and then be not ready.
func TestFullDiskAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfstest.NewMem()
		fs.SetQuota(1 << 20)
		s := newSetup(fs)
		s.config.MinFree = 2 << 20
		var reported error
		s.report = func(err error) { reported = err }
		e := s.open(t) // no tick has passed
		if !pipeline.IsNotReady(reported) || !strings.Contains(fmt.Sprint(reported), "disk is full") {
			t.Errorf("reported %v, want that the process is not ready", reported)
		}
		checkRefused(t, e.Consume(t.Context(), newNumbers().next(1)))
	})
}

// fill sends spans until the store refuses them, and returns the error.
func fill(t *testing.T, e *exporter, n *numbers) error {
	t.Helper()
	for range 10_000 {
		b := n.next(50)
		if err := e.Consume(t.Context(), b); err != nil {
			return err
		}
		n.ack(b)
	}
	t.Fatal("the disk never became full")
	return nil
}

// TestFullDisk fills the disk of a running store. Spans are refused with a reason, queries work, no
// acknowledged span is lost, and when there is space again the store accepts spans without a
// restart. Meanwhile the process is not ready, and each message is logged once a minute.
func TestFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		quota   int64
		change  func(*Config)
		message string
	}{
		"by maintenance":     {1 << 20, func(c *Config) { c.MinFree = 512 << 10 }, "min_free"},
		"by the log":         {512 << 10, func(c *Config) {}, "no space"},
		"by the flush":       {256 << 10, func(c *Config) { c.Memtable.MaxSpans = 1000 }, "no space"},
		"with a reserve":     {384 << 10, func(c *Config) { c.Memtable.MaxSpans, c.Reserve = 1000, 128<<10 }, "no space"},
		"in the first bytes": {64 << 10, func(c *Config) {}, "no space"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := vfstest.NewMem()
				fs.SetQuota(c.quota)
				var mu sync.Mutex
				var reports []error
				s := newSetup(fs)
				s.report = func(err error) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, err)
				}
				core, logs := observer.New(zap.WarnLevel)
				s.log = zap.New(core)
				s.config.MaxWait = pipeline.Duration(time.Minute)
				c.change(&s.config)
				e := s.open(t)
				n := newNumbers()
				var err error
				for range 5 { // the maintenance loop runs once a second, and a flush may free space
					err = fill(t, e, n)
					time.Sleep(tick)
				}
				checkRefused(t, err)
				if !strings.Contains(err.Error(), c.message) {
					t.Errorf("error does not contain the reason: %v", err)
				}
				n.check(t, e)
				mu.Lock()
				if len(reports) == 0 || !pipeline.IsNotReady(reports[len(reports)-1]) || len(reports) > 10 {
					t.Errorf("reported %q, want that the process is not ready", reports)
				}
				mu.Unlock()
				began := time.Now()
				time.Sleep(5 * time.Minute)
				lines := map[string]int{}
				for _, l := range logs.All() {
					if l.Time.After(began) {
						lines[l.Message]++
					}
				}
				for msg, n := range lines {
					if n > 5 {
						t.Errorf("%d lines in 5 minutes: %s", n, msg)
					}
				}
				if lines["span store degraded"] < 4 {
					t.Errorf("logged %v", lines)
				}

				fs.SetQuota(1 << 30)
				time.Sleep(2 * maxBackoff)
				n.send(t, e, 10)
				flushStore(t, e)
				n.check(t, e)
				time.Sleep(2 * tick)
				mu.Lock()
				defer mu.Unlock()
				if len(reports) > 0 && reports[len(reports)-1] != nil {
					t.Errorf("store still reports %v", reports[len(reports)-1])
				}
			})
		})
	}
}

// TestDropOldest: with disk_full: drop_oldest, the store drops the oldest spans when the disk is
// full.
func TestDropOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfstest.NewMem()
		fs.SetQuota(4 << 20)
		s := newSetup(fs)
		s.config.DiskFull, s.config.MinFree, s.config.Memtable.MaxSpans = dropWhenFull, 7<<19, 1000
		e := s.open(t)
		n := newNumbers()
		for range 500 {
			b := n.next(200)
			if err := e.Consume(t.Context(), b); err != nil {
				t.Fatalf("Consume: %v", err)
			}
			s.clock.advance(time.Second)
			time.Sleep(tick)
		}
		if first, last := hasSpan(t, e, 0), hasSpan(t, e, 99_999); first || !last {
			t.Errorf("first span visible: %v, want false; last span visible: %v, want true", first, last)
		}
	})
}

// hasSpan reports whether a span is visible.
func hasSpan(t *testing.T, e *exporter, number int) bool {
	t.Helper()
	found := false
	for tr, err := range e.Traces(t.Context(), "", refOf(number)) {
		if err != nil {
			t.Fatal(err)
		}
		eachNumber(tr.Spans, func(i int) { found = found || i == number })
	}
	return found
}

// TestFailedSync: after a failed sync the store writes to a new log file. If that fails too, spans
// are refused until syncs succeed again.
func TestFailedSync(t *testing.T) {
	once := &vfstest.Rule{Op: vfstest.OpSync, Path: "*.log", Skip: 3, Times: 1, Err: syscall.EIO}
	e := newSetup(vfstest.Inject(vfstest.NewMem(), once)).open(t)
	n := newNumbers()
	for range 10 {
		n.send(t, e, 5)
	}
	if once.Hits() != 1 {
		t.Fatalf("fault was hit %d times, want 1", once.Hits())
	}
	n.check(t, e)

	always := &vfstest.Rule{Op: vfstest.OpSync, Path: "*.log", Err: syscall.EIO}
	always.Switch(false)
	mem := vfstest.NewMem()
	s := newSetup(vfstest.Inject(mem, always))
	e = s.start(t)
	n = newNumbers()
	n.send(t, e, 5)
	always.Switch(true)
	err := e.Consume(t.Context(), n.next(5))
	checkRefused(t, err)
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("error does not contain the reason: %v", err)
	}
	checkRefused(t, e.Consume(t.Context(), n.next(5)))
	n.check(t, e)
	always.Switch(false)
	n.send(t, e, 5)
	e.Stop(t.Context())
	n.check(t, s.open(t))
}

// TestRetentionBySize: the folder stays below retention.size, and the newest spans stay.
func TestRetentionBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(vfstest.NewMem())
		s.config.Retention.Size, s.config.Memtable.MaxSpans = 300<<10, 1000
		e := s.open(t)
		n := newNumbers()
		for range 300 {
			n.send(t, e, 200)
			s.clock.advance(time.Second)
			time.Sleep(tick)
		}
		flushStore(t, e)
		time.Sleep(2 * tick)
		if used := e.retention.used(); used > 300<<10 {
			t.Errorf("%d bytes are used, limit is %d", used, 300<<10)
		}
		if first, last := hasSpan(t, e, 0), hasSpan(t, e, 59_999); first || !last {
			t.Errorf("first span visible: %v, want false; last span visible: %v, want true", first, last)
		}
	})
}

// TestQueryOutlivesExpiry: a running search reads segments that expire meanwhile. Their files are
// removed when the search ends.
func TestQueryOutlivesExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(vfstest.NewMem())
		s.config.Retention.Time = pipeline.Duration(time.Minute)
		e := s.open(t)
		n := newNumbers()
		n.send(t, e, 70)
		flushStore(t, e)
		results, err := e.Find(t.Context(), everything(), tracestore.WantFull)
		if err != nil {
			t.Fatal(err)
		}
		s.clock.advance(30 * time.Minute)
		time.Sleep(3 * tick)
		if left := e.handles(); len(left) != 0 {
			t.Fatalf("%d segments did not expire", len(left))
		}
		spans := 0
		for r, err := range results.All {
			if err != nil {
				t.Fatal(err)
			}
			spans += r.Spans.Len()
		}
		if spans != 70 {
			t.Errorf("search found %d spans, want 70", spans)
		}
		if left, err := e.dir.Segments(); err != nil || len(left) != 0 {
			t.Errorf("segments left: %v, %v", left, err)
		}
		if hasSpan(t, e, 0) {
			t.Error("expired spans are still visible")
		}
	})
}
