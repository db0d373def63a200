package disk

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// refusal checks that an error tells the sender to come back, as one that is not its fault.
func refusal(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("a full store takes spans")
	}
	if code, after := pipeline.HTTPStatus(err); code != 503 || after <= 0 || pipeline.IsPermanent(err) {
		t.Errorf("%v: status %d, retry after %v; want 503 with a delay", err, code, after)
	}
}

// fill sends spans until the store takes no more.
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

// TestFullDisk fills the disk below a running store: spans are refused with a hint, reads go on,
// nothing acknowledged is lost, and when there is space again the store takes spans without
// anybody's help.
func TestFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		quota   int64
		change  func(*Config)
		message string
	}{
		"seen ahead":         {1 << 20, func(c *Config) { c.MinFree = 512 << 10 }, "min_free"},
		"seen by the log":    {512 << 10, func(c *Config) {}, "no space"},
		"seen by the flush":  {256 << 10, func(c *Config) { c.Memtable.MaxSpans = 1000 }, "no space"},
		"with a reserve":     {384 << 10, func(c *Config) { c.Memtable.MaxSpans, c.Reserve = 1000, 128<<10 }, "no space"},
		"in the first bytes": {64 << 10, func(c *Config) {}, "no space"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := vfstest.NewMem()
				fs.SetQuota(c.quota)
				var mu sync.Mutex
				var reports []error
				s := small(fs)
				s.report = func(err error) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, err)
				}
				s.config.MaxWait = pipeline.Duration(time.Minute)
				c.change(&s.config)
				e := s.open(t)
				n := newNumbers()
				var err error
				for range 5 { // the keeper looks once a second, and a flush may make room
					err = fill(t, e, n)
					time.Sleep(tick)
				}
				refusal(t, err)
				if !strings.Contains(err.Error(), c.message) {
					t.Errorf("the refusal does not say why: %v", err)
				}
				n.check(t, e)

				fs.SetQuota(1 << 30)
				time.Sleep(2 * maxBackoff)
				n.send(t, e, 10)
				flushed(t, e)
				n.check(t, e)
				time.Sleep(2 * tick)
				mu.Lock()
				defer mu.Unlock()
				if len(reports) > 0 && reports[len(reports)-1] != nil {
					t.Errorf("the store still reports %v", reports[len(reports)-1])
				}
			})
		})
	}
}

// TestDropOldest: where the configuration says so, a full disk costs the oldest spans instead of
// the newest.
func TestDropOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfstest.NewMem()
		fs.SetQuota(4 << 20)
		s := small(fs)
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
		if first, last := has(t, e, 0), has(t, e, 99_999); first || !last {
			t.Errorf("the first span is there: %v, the last one: %v", first, last)
		}
	})
}

// has tells whether a span can be read.
func has(t *testing.T, e *exporter, number int) bool {
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

// TestFailedSync: a sync that fails costs nothing but a new file; when the new one fails too, spans
// are refused, and taken again later.
func TestFailedSync(t *testing.T) {
	once := &vfstest.Rule{Op: vfstest.OpSync, Path: "*.log", Skip: 3, Times: 1, Err: syscall.EIO}
	e := small(vfstest.Inject(vfstest.NewMem(), once)).open(t)
	n := newNumbers()
	for range 10 {
		n.send(t, e, 5)
	}
	if once.Hits() != 1 {
		t.Fatalf("the fault was hit %d times", once.Hits())
	}
	n.check(t, e)

	always := &vfstest.Rule{Op: vfstest.OpSync, Path: "*.log", Err: syscall.EIO}
	always.Switch(false)
	mem := vfstest.NewMem()
	s := small(vfstest.Inject(mem, always))
	e = s.start(t)
	n = newNumbers()
	n.send(t, e, 5)
	always.Switch(true)
	err := e.Consume(t.Context(), n.next(5))
	refusal(t, err)
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("the refusal does not say why: %v", err)
	}
	refusal(t, e.Consume(t.Context(), n.next(5)))
	n.check(t, e)
	always.Switch(false)
	n.send(t, e, 5)
	e.Stop(t.Context())
	n.check(t, s.open(t))
}

// TestRetentionBySize: the folder stays below its size, the newest spans stay.
func TestRetentionBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := small(vfstest.NewMem())
		s.config.Retention.Size, s.config.Memtable.MaxSpans = 300<<10, 1000
		e := s.open(t)
		n := newNumbers()
		for range 300 {
			n.send(t, e, 200)
			s.clock.advance(time.Second)
			time.Sleep(tick)
		}
		flushed(t, e)
		time.Sleep(2 * tick)
		if used := e.used(); used > 300<<10 {
			t.Errorf("%d bytes are used, the limit is %d", used, 300<<10)
		}
		if first, last := has(t, e, 0), has(t, e, 59_999); first || !last {
			t.Errorf("the first span is there: %v, the last one: %v", first, last)
		}
	})
}

// TestQueryOutlivesExpiry: a search that has begun reads what expires meanwhile, and the file goes
// when it has ended.
func TestQueryOutlivesExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := small(vfstest.NewMem())
		s.config.Retention.Time = pipeline.Duration(time.Minute)
		e := s.open(t)
		n := newNumbers()
		n.send(t, e, 70)
		flushed(t, e)
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
			t.Errorf("the search found %d spans, want 70", spans)
		}
		if left, err := e.dir.Segments(); err != nil || len(left) != 0 {
			t.Errorf("segments left: %v, %v", left, err)
		}
		if has(t, e, 0) {
			t.Error("the spans are there after their time")
		}
	})
}
