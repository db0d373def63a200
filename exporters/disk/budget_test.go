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

// What writing a segment may take: something fixed, and so many times the size of its memtable.
const (
	flushFixed  = 16 << 20
	flushFactor = 3
)

// TestMemoryOfHostileSpans: what a memtable says of its size is true whatever the spans are, it is
// full in time, and writing its segment takes no memory out of proportion.
func TestMemoryOfHostileSpans(t *testing.T) {
	if testing.Short() {
		t.Skip("runs without -short: it measures memory, of which the race detector takes several times as much")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that the peak of a flush is what it needs, not its garbage
	s := small(vfs.OS())
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
	table := e.newTable()
	for _, b := range w.batches {
		if table.Full() {
			break
		}
		if _, err := table.Append(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	const slack = 2 << 20 // a request, a chunk that is begun
	said, used := table.Bytes(), liveHeap()-empty
	if most := int64(e.config.Memtable.MaxBytes) + slack; said > most {
		t.Errorf("a full memtable takes %d bytes, more than %d", said, most)
	}
	if most := said + said/2 + slack; used > most {
		t.Errorf("a memtable of %d spans says that it takes %d bytes; the heap grew by %d", table.Rows(), said, used)
	}
	growth := watchHeap()
	info, err := segment.Write(vfs.OS(), t.TempDir()+"/s", segment.Input(table.Input()), segment.Meta{}, segment.Options{})
	if err != nil {
		t.Fatal(err)
	}
	flush := growth().live
	if most := flushFixed + flushFactor*said; flush > most {
		t.Errorf("writing a segment of %d spans took %d bytes, more than %d", info.Rows, flush, most)
	}
	t.Logf("%d spans: %.1f MiB said, %.1f MiB used, %.1f MiB to write", info.Rows, mib(said), mib(used), mib(flush))
	runtime.KeepAlive(table)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func liveHeap() int64 {
	runtime.GC()
	return readHeap().live
}
