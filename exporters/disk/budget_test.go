//go:build unix

package disk

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/test/bench"
)

// Limit of the memory for writing a segment: flushFixed bytes plus flushFactor times the size of
// the memtable.
const (
	flushFixed  = 16 << 20
	flushFactor = 3
)

// TestMemoryOfHostileSpans checks with hostile spans that a memtable reports its size correctly,
// that it becomes full at its limit, and that writing its segment takes memory in proportion to its
// size.
func TestMemoryOfHostileSpans(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory, which the race detector distorts; make test-long runs it")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that the peak of a flush is not mostly garbage
	s := newSetup(vfs.OS())
	s.config.Memtable.MaxBytes = 4 << 20
	s.config.Directory = t.TempDir()
	e := s.build(t)
	d := bench.New(1, newClock().now())
	for _, kind := range bench.HostileKinds() {
		t.Run(kind.String(), func(t *testing.T) {
			spans, perRequest := 25_000, 100
			if kind == bench.LargeValues {
				spans, perRequest = 10, 1
			}
			checkMemory(t, e, newWorkload(t, d.Hostile(kind, spans, perRequest)))
		})
	}
}

func checkMemory(t *testing.T, e *exporter, w *workload) {
	t.Helper()
	empty := liveHeap()
	table := e.intake.newTable()
	for _, b := range w.batches {
		if table.Full() {
			break
		}
		if _, err := table.Append(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	const slack = 2 << 20 // one request, one partly filled chunk
	reported, used := table.Bytes(), liveHeap()-empty
	if limit := int64(e.config.Memtable.MaxBytes) + slack; reported > limit {
		t.Errorf("full memtable reports %d bytes, want at most %d", reported, limit)
	}
	if limit := reported + reported/2 + slack; used > limit {
		t.Errorf("memtable with %d spans reports %d bytes, but the heap grew by %d", table.Rows(), reported, used)
	}
	growth := watchHeap()
	info, err := segment.Write(vfs.OS(), t.TempDir()+"/s", segment.Input(table.Input()), segment.Meta{}, segment.Options{})
	if err != nil {
		t.Fatal(err)
	}
	flush := growth().live
	if limit := flushFixed + flushFactor*reported; flush > limit {
		t.Errorf("writing a segment with %d spans took %d bytes of memory, want at most %d", info.Rows, flush, limit)
	}
	t.Logf("%d spans: %.1f MiB reported, %.1f MiB used, %.1f MiB to flush", info.Rows, mib(reported), mib(used), mib(flush))
	runtime.KeepAlive(table)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func liveHeap() int64 {
	runtime.GC()
	return readHeap().live
}
