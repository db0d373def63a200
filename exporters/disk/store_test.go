package disk

import (
	"context"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestStore runs the suite of all stores on spans in memory, on spans in segments, flushed and
// merged, and on both.
func TestStore(t *testing.T) {
	t.Run("memtable", func(t *testing.T) {
		storetest.Store(t, func(tb testing.TB) storetest.Subject { return small(vfstest.NewMem()).open(tb) })
	})
	t.Run("segments", func(t *testing.T) {
		storetest.Store(t, func(tb testing.TB) storetest.Subject {
			return flushing{small(vfstest.NewMem()).open(tb), tb}
		})
	})
	t.Run("merged", func(t *testing.T) {
		storetest.Store(t, func(tb testing.TB) storetest.Subject {
			s := small(vfstest.NewMem())
			s.config.Merge.MinSegments = 2
			return flushing{s.open(tb), tb}
		})
	})
	t.Run("both", func(t *testing.T) {
		storetest.Store(t, func(tb testing.TB) storetest.Subject {
			s := small(vfstest.NewMem())
			s.config.Memtable.MaxSpans = 30
			return s.open(tb)
		})
	})
	t.Run("files", func(t *testing.T) {
		storetest.Store(t, func(tb testing.TB) storetest.Subject {
			s := small(vfs.OS())
			s.config.Directory, s.config.Memtable.MaxSpans = tb.TempDir(), 2000
			return s.open(tb)
		})
	})
}

// flushing is a store that makes a segment of every request, and merges what is due.
type flushing struct {
	*exporter
	tb testing.TB
}

func (f flushing) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if err := f.exporter.Consume(ctx, b); err != nil {
		return err
	}
	flushed(f.tb, f.exporter)
	merged(f.tb, f.exporter)
	return nil
}

func TestOnlyOneProcess(t *testing.T) {
	fs := vfstest.NewMem()
	small(fs).open(t)
	err := small(fs).build(t).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "in use by another process") || !strings.Contains(err.Error(), folder) {
		t.Errorf("a second store on the folder: %v", err)
	}
}

func TestNewerVersion(t *testing.T) {
	fs := vfstest.NewMem()
	if err := fs.MkdirAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileAtomic(fs, folder+"/FORMAT", []byte("tracing span store, version 7\n")); err != nil {
		t.Fatal(err)
	}
	err := small(fs).build(t).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "version 7") || !strings.Contains(err.Error(), "run a newer program") {
		t.Errorf("a folder of a newer version: %v", err)
	}
}

func TestNothingIsTakenAfterStop(t *testing.T) {
	e := small(vfstest.NewMem()).start(t)
	n := newNumbers()
	n.send(t, e, 10)
	stopStore(t, e)
	if err := e.Consume(t.Context(), n.next(1)); err == nil {
		t.Error("a stopped store takes spans")
	} else if code, _ := pipeline.HTTPStatus(err); code != 503 {
		t.Errorf("a stopped store answers %d", code)
	}
}

// TestStopLeavesOnlySegments: what a stopped store leaves behind needs no recovery, and takes no
// more space than the spans do.
func TestStopLeavesOnlySegments(t *testing.T) {
	fs := vfstest.NewMem()
	s := small(fs)
	e := s.start(t)
	n := newNumbers()
	n.send(t, e, 100)
	stopStore(t, e)
	if logs, err := fs.ReadDir(folder + "/log"); err != nil || len(logs) > 0 {
		t.Errorf("files in the log's folder: %v, %v", logs, err)
	}
	e = s.open(t)
	if len(e.frozen) > 0 || len(e.segments) != 1 {
		t.Errorf("%d memtables to recover, %d segments; want none and one", len(e.frozen), len(e.segments))
	}
	n.check(t, e)
}

// TestDurability checks that only synced spans are reported as stored.
func TestDurability(t *testing.T) {
	for sync, want := range map[string]pipeline.Durability{"always": pipeline.DurabilityStored, "interval": pipeline.DurabilityWritten, "os": pipeline.DurabilityWritten} {
		s := small(vfstest.NewMem())
		s.config.Sync = sync
		if got := s.build(t).Durability(); got != want {
			t.Errorf("sync: %s keeps spans %q, want %q", sync, got, want)
		}
	}
}
