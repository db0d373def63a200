package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// mergeSetup is like newSetup, for a store that merges four to six segments.
func mergeSetup(fs vfs.FS) *setup {
	s := newSetup(fs)
	s.config.Merge.MinSegments, s.config.Merge.MaxSegments = 4, 6
	return s
}

// withoutPauses returns a pace without pauses. The usual conditions still abort the merge.
func withoutPauses(e *exporter) func(*merge) func() error {
	return func(m *merge) func() error {
		return func() error {
			e.intake.mu.Lock()
			defer e.intake.mu.Unlock()
			return (&pacer{merger: e.merger, merge: m}).interrupted()
		}
	}
}

// mergeAll merges until nothing is due and returns the number of merges.
func mergeAll(tb testing.TB, e *exporter) int {
	tb.Helper()
	waitForLogRemoval(e)
	for n := 0; ; {
		more, err := e.merger.mergeNext(withoutPauses(e))
		switch {
		case errors.Is(err, errInputExpired): // all spans were deleted or expired
		case err != nil:
			tb.Fatal(err)
		case !more:
			return n
		default:
			n++
		}
	}
}

// waitForLogRemoval waits until the logs of flushed memtables are removed, the last step of a
// flush.
func waitForLogRemoval(e *exporter) {
	for waiting := true; waiting; runtime.Gosched() {
		e.segments.mu.Lock()
		waiting = len(e.segments.leftover) > 0
		e.segments.mu.Unlock()
	}
}

// sendSegments writes count segments, one second apart.
func sendSegments(tb testing.TB, s *setup, e *exporter, n *numbers, count int) {
	tb.Helper()
	for range count {
		n.send(tb, e, 30)
		flushStore(tb, e)
		s.clock.advance(time.Second)
	}
	waitForLogRemoval(e)
}

// segmentFiles lists the segment files as level-first-last, with ranks instead of epochs.
func segmentFiles(tb testing.TB, d *directory.Dir) []string {
	tb.Helper()
	names, err := d.Segments()
	if err != nil {
		tb.Fatal(err)
	}
	var epochs []uint64
	for _, s := range names {
		epochs = append(epochs, s.First, s.Last)
	}
	slices.Sort(epochs)
	epochs = slices.Compact(epochs)
	var out []string
	for _, s := range names {
		out = append(out, fmt.Sprintf("%d-%d-%d", s.Level, slices.Index(epochs, s.First), slices.Index(epochs, s.Last)))
	}
	return out
}

func expectFiles(tb testing.TB, e *exporter, want ...string) {
	tb.Helper()
	if got := segmentFiles(tb, e.dir); !slices.Equal(got, want) {
		tb.Errorf("segment files %v, want %v", got, want)
	}
}

// TestMerge: a merged segment has all spans once, including spans of traces that were split across
// its inputs. The inputs are removed and stay removed after a restart.
func TestMerge(t *testing.T) {
	mem := vfstest.NewMem()
	s := mergeSetup(mem)
	e := s.start(t)
	n := newNumbers()
	sendSegments(t, s, e, n, 4)
	twice := emptySpans(t, "twice", 1, 1)[0]
	for range 2 {
		if err := e.Consume(t.Context(), twice); err != nil {
			t.Fatal(err)
		}
		flushStore(t, e)
	}
	if times := mergeAll(t, e); times != 1 {
		t.Fatalf("%d merges, want 1", times)
	}
	expectFiles(t, e, "1-0-1")
	h := e.handles()[0]
	if h.info.Rows != 121 || h.info.Duplicates != 1 || len(h.info.Replaces) != 6 || h.info.FirstArrival.Equal(h.info.LastArrival) {
		t.Errorf("merged segment: %+v", h.info)
	}
	m := e.metrics
	got := []float64{testutil.ToFloat64(m.merges), testutil.ToFloat64(m.mergedSpans), testutil.ToFloat64(m.mergeDuplicates)}
	if !slices.Equal(got, []float64{1, 121, 1}) {
		t.Errorf("counted merges, spans and duplicates: %v, want 1, 121, 1", got)
	}
	if used, file := e.retention.used()-e.retention.fixed, h.info.Size; used != file || len(e.segments.doomed) > 0 {
		t.Errorf("%d bytes are in use, the segment has %d; %d files are waiting for deletion", used, file, len(e.segments.doomed))
	}
	sendSegments(t, s, e, n, 3)
	if times := mergeAll(t, e); times != 0 {
		t.Error("three segments were merged, or a merged one again")
	}
	stopStore(t, e)
	s.clock.advance(48 * time.Hour)
	e = s.open(t)
	if times := mergeAll(t, e); times != 1 {
		t.Errorf("remaining segments of a past day were merged %d times, want 1", times)
	}
	expectFiles(t, e, "1-0-1", "1-2-3")
}

// TestMergeDuringQuery: a search that began before a merge reads the inputs until it ends; then
// their files are removed. A search that begins afterwards reads the output.
func TestMergeDuringQuery(t *testing.T) {
	s := mergeSetup(vfstest.NewMem())
	e := s.open(t)
	n := newNumbers()
	sendSegments(t, s, e, n, 4)
	results, err := e.Find(t.Context(), everything(), tracestore.WantFull)
	if err != nil {
		t.Fatal(err)
	}
	spans := 0
	for r, err := range results.All {
		if err != nil {
			t.Fatal(err)
		}
		if spans == 0 {
			if mergeAll(t, e) != 1 {
				t.Fatal("nothing was merged")
			}
			expectFiles(t, e, "0-0-0", "0-1-1", "0-2-2", "0-3-3", "1-0-3")
			n.check(t, e)
		}
		spans += r.Spans.Len()
	}
	if spans != 120 {
		t.Errorf("search found %d spans, want 120", spans)
	}
	expectFiles(t, e, "1-0-1")
}

// TestReplacedFiles: if files of inputs still exist beside the output, after a crash or because a
// query read them, the next start removes them. It keeps a segment that was in the quarantine
// during the merge and was moved back, although its epoch lies between the epochs of the inputs.
func TestReplacedFiles(t *testing.T) {
	mem := vfstest.NewMem()
	s := mergeSetup(mem)
	e := s.start(t)
	n := newNumbers()
	sendSegments(t, s, e, n, 5)
	aside := e.handles()[2]
	stopStore(t, e)
	path := folder + "/seg/" + aside.name.String()
	whole := read(t, mem, path)
	write(t, mem, path, whole[:len(whole)-1])
	e = s.start(t)
	before := map[string][]byte{}
	for _, h := range e.handles() {
		before[h.name.String()] = read(t, mem, e.dir.Path(h.name))
	}
	if mergeAll(t, e) != 1 {
		t.Fatal("nothing was merged")
	}
	stopStore(t, e)
	for name, b := range before {
		write(t, mem, folder+"/seg/"+name, b)
	}
	write(t, mem, path, whole)
	e = s.open(t)
	expectFiles(t, e, "0-1-1", "1-0-2")
	n.check(t, e)
	if mergeAll(t, e) != 0 {
		t.Error("segment between the inputs of a merged one was merged")
	}
}

// TestMergedLogs: a segment has the spans of a log if it was flushed from the log or merged from
// such a segment, but not if the epoch of the log only lies between the epochs of its inputs.
func TestMergedLogs(t *testing.T) {
	h := &handle{name: directory.Segment{Day: "20261121", Level: 2, First: 10, Last: 30}}
	h.info.Replaces = []string{"20261121/1-000000000000000a-000000000000001e.seg", "20261121/0-000000000000000a-000000000000000a.seg",
		"20261121/0-000000000000001e-000000000000001e.seg", "something else"}
	for epoch, want := range map[uint64]bool{10: true, 20: false, 30: true, 31: false} {
		if h.has(epoch) != want {
			t.Errorf("segment has the spans of log %d: %v, want %v", epoch, !want, want)
		}
	}
	if single := (&handle{name: directory.Segment{First: 5, Last: 5}}); !single.has(5) || single.has(6) {
		t.Error("flushed segment must have the spans of exactly its own log")
	}
}

// TestRewriteChain: a segment that was rewritten from a merged one also replaces the inputs of that
// merge while their files exist.
func TestRewriteChain(t *testing.T) {
	mem := vfstest.NewMem()
	s := mergeSetup(mem)
	e := s.start(t)
	n := newNumbers()
	sendSegments(t, s, e, n, 4)
	reader := e.deletions.view() // keeps the files in use
	mergeAll(t, e)
	for range 2 {
		rewrite(t, e, &merge{inputs: e.handles()})
	}
	expectFiles(t, e, "0-0-0", "0-1-1", "0-2-2", "0-3-3", "3-0-3")
	if replaces := e.handles()[0].info.Replaces; len(replaces) != 5 {
		t.Errorf("last file replaces %q, want 5 files", replaces)
	}
	killed := mem.Kill()
	reader.Release()
	e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
	s.fs = killed
	e = s.open(t)
	expectFiles(t, e, "3-0-1")
	n.check(t, e)
}

// rewrite executes a merge that no rule requires.
func rewrite(t *testing.T, e *exporter, m *merge) {
	t.Helper()
	e.segments.mu.Lock()
	e.merger.acquire(m)
	e.segments.mu.Unlock()
	if _, err := e.merger.writeMerged(m, nil); err != nil {
		t.Fatal(err)
	}
	e.merger.endMerge(m)
}

// TestMergeSkipsDamagedSegment: a segment with a damaged block is not merged; the others are merged
// without it.
func TestMergeSkipsDamagedSegment(t *testing.T) {
	mem := vfstest.NewMem()
	s := mergeSetup(mem)
	e := s.start(t)
	n := newNumbers()
	sendSegments(t, s, e, n, 9)
	bad := e.handles()[4]
	stopStore(t, e)
	path := folder + "/seg/" + bad.name.String()
	b := read(t, mem, path)
	b[40] ^= 1
	write(t, mem, path, b)
	e = s.open(t)
	if _, err := e.merger.mergeNext(withoutPauses(e)); err == nil || !strings.Contains(err.Error(), bad.name.String()) {
		t.Fatalf("merge with a damaged segment: %v, want an error that names it", err)
	}
	if got := testutil.ToFloat64(e.metrics.unmergeable); got != 1 {
		t.Errorf("%v segments are counted as unmergeable, want 1", got)
	}
	if times := mergeAll(t, e); times != 2 {
		t.Errorf("%d merges of the other segments, want 2", times)
	}
	expectFiles(t, e, "0-2-2", "1-0-1", "1-3-4")
}

// TestExpiryAbortsMerge: a merge is aborted if its inputs expire meanwhile, and no expired span
// comes back.
func TestExpiryAbortsMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := &vfstest.Rule{Op: vfstest.OpSync, Path: "1-*.tmp", Times: 1}
		s := mergeSetup(vfstest.Inject(vfstest.NewMem(), written))
		s.config.Retention.Time = pipeline.Duration(30 * time.Minute)
		written.Hook = func() {
			s.clock.advance(30*time.Minute - 2*time.Second)
			time.Sleep(2 * tick) // the maintenance loop runs
		}
		e := s.open(t)
		n := newNumbers()
		sendSegments(t, s, e, n, 4)
		if _, err := e.merger.mergeNext(withoutPauses(e)); !errors.Is(err, errInputExpired) {
			t.Errorf("merge of expired segments: %v, want errInputExpired", err)
		}
		if hasSpan(t, e, 0) {
			t.Error("expired spans are still visible")
		}
		expectFiles(t, e, "0-0-0", "0-1-1")
		if mergeAll(t, e); e.retention.claimed != 0 || e.merger.running.Load() {
			t.Errorf("%d bytes are still claimed for a merge", e.retention.claimed)
		}
	})
}

// TestMergeKeepsInputsUntilPublished: no input expires while the output is being renamed; otherwise
// a crash could bring its spans back. If the rename cannot be made durable, the output is removed,
// and until that succeeds no input expires either.
func TestMergeKeepsInputsUntilPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		var e *exporter
		publish := &vfstest.Rule{Op: vfstest.OpRename, Path: "1-*.seg", Times: 1}
		sync := &vfstest.Rule{Op: vfstest.OpSyncDir, Path: folder + "/seg/*", Err: syscall.EIO}
		remove := &vfstest.Rule{Op: vfstest.OpRemove, Path: "1-*.seg", Err: syscall.EIO}
		for _, r := range []*vfstest.Rule{publish, sync, remove} {
			r.Switch(false)
		}
		s := mergeSetup(vfstest.Inject(mem, publish, sync, remove))
		s.config.Retention.Time = pipeline.Duration(10 * time.Minute)
		publish.Hook = func() {
			s.clock.advance(30 * time.Minute)
			time.Sleep(2 * tick) // the maintenance loop runs
			if left := len(e.handles()); left != 4 {
				t.Errorf("%d of 4 inputs exist while the output is renamed", left)
			}
			sync.Switch(true)
			remove.Switch(true)
		}
		e = s.open(t)
		n := newNumbers()
		sendSegments(t, s, e, n, 4)
		publish.Switch(true)
		if _, err := e.merger.mergeNext(withoutPauses(e)); !errors.Is(err, syscall.EIO) {
			t.Fatalf("merge whose rename is not durable: %v, want an I/O error", err)
		}
		time.Sleep(2 * tick) // the maintenance loop retries
		n.check(t, e)
		if more, err := e.merger.mergeNext(withoutPauses(e)); more || err != nil {
			t.Errorf("second merge while the output of the first one exists: %v, %v", more, err)
		}
		sync.Switch(false)
		remove.Switch(false)
		time.Sleep(2 * tick)
		expectFiles(t, e)
	})
}

// TestMergedSegmentOutlivesInputs: a merged segment does not expire before the files of its inputs
// are removed; otherwise a crash could bring the inputs back.
func TestMergedSegmentOutlivesInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mergeSetup(vfstest.NewMem())
		s.config.Retention.Time = pipeline.Duration(10 * time.Minute)
		e := s.open(t)
		n := newNumbers()
		sendSegments(t, s, e, n, 4)
		reader := e.deletions.view()
		mergeAll(t, e)
		s.clock.advance(30 * time.Minute)
		time.Sleep(2 * tick) // the maintenance loop runs
		expectFiles(t, e, "0-0-0", "0-1-1", "0-2-2", "0-3-3", "1-0-3")
		reader.Release()
		time.Sleep(2 * tick) // the maintenance loop runs
		expectFiles(t, e)
	})
}

// TestMergeFaults: if any disk operation of a merge fails, no span is lost and a later merge
// succeeds.
func TestMergeFaults(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for op := vfstest.OpCreate; op <= vfstest.OpClose; op <<= 1 {
		for skip := 0; skip < 8; skip += stride {
			fault := &vfstest.Rule{Op: op, Skip: skip, Times: 1, Err: syscall.ENOSPC, Path: "*.seg*", Short: true}
			fault.Switch(false)
			s := mergeSetup(vfstest.Inject(vfstest.NewMem(), fault))
			e := s.start(t)
			n := newNumbers()
			sendSegments(t, s, e, n, 4)
			fault.Switch(true)
			e.merger.mergeNext(withoutPauses(e)) //nolint:errcheck // may fail or not
			fault.Switch(false)
			n.check(t, e)
			e.segments.mu.Lock()
			for _, h := range e.segments.list {
				h.unmergeable = false // a failed read looks like damage
			}
			e.segments.mu.Unlock()
			e.segments.retryRemovals()
			mergeAll(t, e)
			expectFiles(t, e, "1-0-1")
			n.check(t, e)
			stopStore(t, e)
			if t.Failed() {
				t.Fatalf("after failing operation %v number %d", op, skip)
			}
		}
	}
}

// TestMergeCrashes cuts the power at each operation of a merge.
func TestMergeCrashes(t *testing.T) {
	stride := uint64(1)
	if testing.Short() {
		stride = 4
	}
	for seed := uint64(0); seed < 100; seed += stride {
		rnd := rand.New(rand.NewPCG(seed, 3))
		mem := vfstest.NewMem()
		after := mem
		crash := &vfstest.Rule{Op: vfstest.OpChanges, Skip: int(seed) % 50, Times: 1, Hook: func() { after = mem.Crash(rnd) }}
		crash.Switch(false)
		s := mergeSetup(vfstest.Inject(mem, crash))
		e := s.start(t)
		n := newNumbers()
		sendSegments(t, s, e, n, 4)
		crash.Switch(true)
		_, err := e.merger.mergeNext(withoutPauses(e))
		if after == mem {
			after = mem.Crash(rnd)
		}
		e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
		s.fs = after
		e = s.start(t)
		if got := len(e.handles()); got != 1 && got != 4 {
			t.Errorf("%d segments after a crash, want 1 or 4; the merge returned %v", got, err)
		}
		checkNothingLost(t, e)
		n.check(t, e)
		mergeAll(t, e)
		n.check(t, e)
		expectFiles(t, e, "1-0-1")
		stopStore(t, e)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestRetentionBySizeWithMerges: under constant load with merges, the folder exceeds retention.size
// by at most one segment, and merging continues.
func TestRetentionBySizeWithMerges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 300 << 10
		mem := vfstest.NewMem()
		watch := &vfstest.Rule{Op: vfstest.OpSync | vfstest.OpRename | vfstest.OpRemove}
		var mu sync.Mutex
		largest := int64(0)
		s := mergeSetup(vfstest.Inject(mem, watch))
		watch.Hook = func() {
			size := folderSize(mem, folder)
			mu.Lock()
			defer mu.Unlock()
			largest = max(largest, size)
		}
		s.config.Merge.Enabled = true
		s.config.Retention.Size, s.config.Memtable.MaxSpans = limit, 200
		e := s.open(t)
		n := newNumbers()
		for range 200 {
			n.send(t, e, 200)
			s.clock.advance(tick)
			time.Sleep(tick)
		}
		one := int64(0)
		for _, h := range e.handles() {
			one = max(one, h.info.Size)
		}
		mu.Lock()
		defer mu.Unlock()
		if largest > limit+one {
			t.Errorf("folder had %d bytes, limit is %d, largest segment has %d", largest, limit, one)
		}
		if first, last := hasSpan(t, e, 0), hasSpan(t, e, 39_999); first || !last {
			t.Errorf("first span visible: %v, want false; last span visible: %v, want true", first, last)
		}
		if merges := testutil.ToFloat64(e.metrics.merges); merges < 20 {
			t.Errorf("%v merges, want 20 or more", merges)
		}
		t.Logf("at most %d KiB, limit %d KiB, largest segment %d KiB, %v merges",
			largest>>10, limit>>10, one>>10, testutil.ToFloat64(e.metrics.merges))
	})
}

// TestDropOldestWithMerges: on a permanently full disk, merging continues at the expense of the
// oldest spans.
func TestDropOldestWithMerges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		mem.SetQuota(1 << 20)
		s := mergeSetup(mem)
		s.config.Merge.Enabled = true
		s.config.DiskFull, s.config.MinFree, s.config.Memtable.MaxSpans = dropWhenFull, 800<<10, 200
		e := s.open(t)
		n := newNumbers()
		for range 200 {
			n.send(t, e, 200)
			s.clock.advance(tick)
			time.Sleep(tick)
		}
		if merges := testutil.ToFloat64(e.metrics.merges); merges < 20 {
			t.Errorf("%v merges, want 20 or more", merges)
		}
		if first, last := hasSpan(t, e, 0), hasSpan(t, e, 39_999); first || !last {
			t.Errorf("first span visible: %v, want false; last span visible: %v, want true", first, last)
		}
	})
}

// TestNoMergeOnAFullDisk: if no span may be dropped, a merge that does not fit does not begin.
func TestNoMergeOnAFullDisk(t *testing.T) {
	mem := vfstest.NewMem()
	s := mergeSetup(mem)
	e := s.open(t)
	n := newNumbers()
	sendSegments(t, s, e, n, 4)
	const quota = 1 << 20
	mem.SetQuota(quota)
	free, err := mem.Free(folder)
	if err != nil {
		t.Fatal(err)
	}
	mem.SetQuota(quota - free + sizeOf(e.handles()) - 1)
	if mergeAll(t, e) != 0 {
		t.Error("merge began without enough space")
	}
	mem.SetQuota(quota - free + sizeOf(e.handles()))
	if mergeAll(t, e) != 1 {
		t.Error("merge did not begin although there was enough space")
	}
	n.check(t, e)
}

// folderSize returns the size of all files in a folder and its subfolders.
func folderSize(fs vfs.FS, dir string) (n int64) {
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if n += e.Size; e.IsDir {
			n += folderSize(fs, dir+"/"+e.Name)
		}
	}
	return n
}

func read(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(fs, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	if err := vfs.WriteFileAtomic(fs, name, b); err != nil {
		t.Fatal(err)
	}
}
