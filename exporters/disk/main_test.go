package disk

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const folder = "/data/disk"

// clock is a clock that tests set.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// setup is the configuration and environment of a store under test.
type setup struct {
	fs     vfs.FS
	clock  *clock
	config Config
	log    *zap.Logger
	report func(error)
}

// newSetup returns the setup of a small store: no reserve, a small memtable, no check of free
// space, merges only when a test calls for them.
func newSetup(fs vfs.FS) *setup {
	c := defaults()
	c.Memtable.MaxBytes, c.Reserve, c.MinFree, c.Merge.Enabled = 4<<20, 0, 0, false
	c.AllowDelete = true
	return &setup{fs: fs, clock: newClock(), config: c, log: zap.NewNop(), report: func(error) {}}
}

// withLog sends the log of the store to the log of the test.
func (s *setup) withLog(tb testing.TB) *setup {
	s.log = zaptest.NewLogger(tb)
	return s
}

func (s *setup) build(tb testing.TB) *exporter {
	tb.Helper()
	env := pipeline.SystemEnv()
	env.FS, env.Now = s.fs, s.clock.now
	settings := pipeline.Settings{Logger: s.log, Metrics: prometheus.NewRegistry(), Dir: folder, Env: env, Report: s.report}
	e, err := newExporter(settings, s.config)
	if err != nil {
		tb.Fatal(err)
	}
	e.logStep = 16 << 10
	return e
}

// start starts the store. The test stops it or crashes its disk.
func (s *setup) start(tb testing.TB) *exporter {
	tb.Helper()
	e := s.build(tb)
	if err := e.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return e
}

// open starts the store and stops it at the end of the test.
func (s *setup) open(tb testing.TB) *exporter {
	tb.Helper()
	e := s.start(tb)
	tb.Cleanup(func() { stopStore(tb, e) })
	return e
}

func stopStore(tb testing.TB, e *exporter) {
	tb.Helper()
	if err := e.Stop(context.Background()); err != nil {
		tb.Errorf("Stop: %v", err)
	}
}

// flushStore flushes the memtable to a segment and waits until that is done.
func flushStore(tb testing.TB, e *exporter) {
	tb.Helper()
	e.intake.writing.Lock()
	e.intake.mu.Lock()
	e.intake.freeze()
	e.intake.mu.Unlock()
	e.intake.writing.Unlock()
	for {
		e.intake.mu.Lock()
		n, flushed, stuck := len(e.intake.frozen), e.intake.capacity, e.intake.stuck
		e.intake.mu.Unlock()
		if n == 0 {
			return
		}
		if stuck != nil {
			tb.Fatalf("flush: %v", stuck)
		}
		<-flushed
	}
}

// handles returns the current segments.
func (e *exporter) handles() []*handle {
	e.segments.mu.Lock()
	defer e.segments.mu.Unlock()
	return slices.Clone(e.segments.list)
}
