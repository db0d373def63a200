package disk

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// layoutChecks are the checks of the suite that compare many different answers with an oracle: they
// notice if the layout of the spans matters.
var layoutChecks = []string{
	"all span fields are returned", "duplicates are returned once", "different spans with the same id are kept", "late spans join their trace",
	"pages list each trace once", "random span sets", "random calls", "random rates, errors and durations", "random aggregates",
	"random path profiles", "random deletions", "random spans and queries",
}

// concurrentChecks are those that write and read at the same time.
var concurrentChecks = []string{"concurrent writers and readers", "early stop and writes while reading"}

// TestStore runs the test suite of all stores with spans in the memtable, in flushed segments, in
// merged segments, and in a mix of memtable and segments.
func TestStore(t *testing.T) {
	t.Run("memtable", func(t *testing.T) {
		storetest.Variant(t, func(tb testing.TB) storetest.Subject { return newSetup(vfstest.NewMem()).open(tb) },
			slices.Concat(layoutChecks, concurrentChecks)...)
	})
	t.Run("segments", func(t *testing.T) {
		storetest.Variant(t, func(tb testing.TB) storetest.Subject {
			return flushing{newSetup(vfstest.NewMem()).open(tb), tb}
		}, layoutChecks...)
	})
	t.Run("merged", func(t *testing.T) {
		storetest.Variant(t, func(tb testing.TB) storetest.Subject {
			s := newSetup(vfstest.NewMem())
			s.config.Merge.MinSegments = 2
			return flushing{s.open(tb), tb}
		}, layoutChecks...)
	})
	t.Run("both", func(t *testing.T) {
		storetest.Store(t, func(tb testing.TB) storetest.Subject {
			s := newSetup(vfstest.NewMem())
			s.config.Memtable.MaxSpans = 30
			return s.open(tb)
		})
	})
	t.Run("files", func(t *testing.T) {
		storetest.Variant(t, func(tb testing.TB) storetest.Subject {
			s := newSetup(vfs.OS())
			s.config.Directory, s.config.Memtable.MaxSpans = tb.TempDir(), 2000
			return s.open(tb)
		}, slices.Concat(layoutChecks, concurrentChecks, []string{"a trace of 10,000 spans"})...)
	})
}

// flushing is a store that flushes after each request and merges what is due.
type flushing struct {
	*exporter
	tb testing.TB
}

func (f flushing) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if err := f.exporter.Consume(ctx, b); err != nil {
		return err
	}
	flushStore(f.tb, f.exporter)
	mergeAll(f.tb, f.exporter)
	return nil
}

func TestSecondProcessIsRejected(t *testing.T) {
	fs := vfstest.NewMem()
	newSetup(fs).open(t)
	err := newSetup(fs).build(t).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "in use by another process") || !strings.Contains(err.Error(), folder) {
		t.Errorf("second store on the folder: %v", err)
	}
}

func TestConsumeAfterStop(t *testing.T) {
	e := newSetup(vfstest.NewMem()).start(t)
	n := newNumbers()
	n.send(t, e, 10)
	stopStore(t, e)
	if err := e.Consume(t.Context(), n.next(1)); err == nil {
		t.Error("stopped store accepted spans")
	} else if code, _ := pipeline.HTTPStatus(err); code != 503 {
		t.Errorf("stopped store returned status %d, want 503", code)
	}
}

// TestStopLeavesOnlySegments: a stopped store has all spans in segments and no logs, so that the
// next start needs no recovery.
func TestStopLeavesOnlySegments(t *testing.T) {
	fs := vfstest.NewMem()
	s := newSetup(fs)
	e := s.start(t)
	n := newNumbers()
	n.send(t, e, 100)
	stopStore(t, e)
	if logs, err := fs.ReadDir(folder + "/log"); err != nil || len(logs) > 0 {
		t.Errorf("files in the folder of logs: %v, %v", logs, err)
	}
	e = s.open(t)
	if len(e.intake.frozen) > 0 || len(e.segments.list) != 1 {
		t.Errorf("%d memtables to recover, %d segments; want none and one", len(e.intake.frozen), len(e.segments.list))
	}
	n.check(t, e)
}

// TestDurability: the store reports its spans as stored only if it syncs before it acknowledges.
func TestDurability(t *testing.T) {
	for sync, want := range map[string]pipeline.Durability{
		"always":   pipeline.DurabilityStored,
		"interval": pipeline.DurabilityWritten,
		"os":       pipeline.DurabilityWritten,
	} {
		s := newSetup(vfstest.NewMem())
		s.config.Sync = sync
		if got := s.build(t).Durability(); got != want {
			t.Errorf("sync: %s: durability %q, want %q", sync, got, want)
		}
	}
}
