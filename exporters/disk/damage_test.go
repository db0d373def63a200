package disk

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// victim is a small store whose files are damaged: two segments, the log of a memtable, deletions
// of a part of each segment, and the state of adaptive sampling.
type victim struct {
	setup   *setup
	spans   int
	deleted map[int]bool
	files   []string // paths
	content map[string][]byte
	// reported overrides whether damage was logged.
	reported func() bool
}

func newVictim(t testing.TB) *victim {
	mem := vfstest.NewMem()
	v := &victim{setup: newSetup(mem), deleted: map[int]bool{}, content: map[string][]byte{}}
	e, n := v.setup.start(t), newNumbers()
	n.send(t, e, 30)
	flushStore(t, e)
	n.send(t, e, 20)
	flushStore(t, e)
	for _, d := range []tracestore.Deletion{{To: startOf(4)}, {From: startOf(26), To: startOf(33)}} {
		if _, err := e.Delete(t.Context(), "", d); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n.acked {
		v.deleted[i] = i <= 4 || i >= 26 && i <= 33
	}
	for range 3 {
		n.send(t, e, 5)
	}
	if err := e.AddThroughput(t.Context(), sampling.Throughput{Until: startOf(0), Length: time.Second}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	waitForLogRemoval(e)
	e.intake.checkpoint()
	v.spans = len(n.acked)
	mem = mem.Kill()
	e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
	v.files = filesBelow(t, mem, folder)
	for _, name := range v.files {
		b, err := vfs.ReadFile(mem, name, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		v.content[name] = b
	}
	v.reported = func() bool { return false }
	if err := v.check(t, "", nil); err != nil {
		t.Fatalf("without damage: %v", err)
	}
	v.reported = nil
	return v
}

// disk returns a disk with the files of the store. One of them has other content, or is missing if
// that is nil.
func (v *victim) disk(t testing.TB, changed string, content []byte) *vfstest.Mem {
	t.Helper()
	mem := vfstest.NewMem()
	for _, name := range v.files {
		b := v.content[name]
		if name == changed {
			b = content
		}
		if b == nil {
			continue
		}
		err := mem.MkdirAll(path.Dir(name))
		if err == nil {
			err = vfs.WriteFileAtomic(mem, name, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return mem
}

// filesBelow lists the files of a store, except the lock and spare logs, which have no content.
func filesBelow(t testing.TB, fs vfs.FS, dir string) (list []string) {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch name := path.Join(dir, e.Name); {
		case e.IsDir:
			list = append(list, filesBelow(t, fs, name)...)
		case e.Name != "LOCK" && !strings.HasPrefix(e.Name, "spare"):
			list = append(list, name)
		}
	}
	return list
}

// check opens the store with other content of a file; nil means that the file is missing. The store
// must open. It returns an error for each span that is neither found nor reported as lost, and for
// anything that is wrong.
func (v *victim) check(t testing.TB, name string, content []byte) error {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	s := *v.setup
	s.fs, s.log = v.disk(t, name, content), zap.New(core)
	s.config.Reserve = 0
	e := s.build(t)
	if err := e.openFolder(); err != nil {
		return fmt.Errorf("cannot open the store: %w", err)
	}
	defer func() {
		e.closeAll()
		if err := e.dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	if v.reported != nil {
		return v.compare(t, e, v.reported)
	}
	return v.compare(t, e, func() bool { return logs.Len() > 0 })
}

// compare compares the results of a store with what it should hold.
func (v *victim) compare(t testing.TB, e *exporter, reported func() bool) error {
	byID, warned := map[int]int{}, map[int]bool{}
	for first := 0; first < v.spans; first += spansPerTrace {
		for tr, err := range e.Traces(t.Context(), "", refOf(first)) {
			if d := (*tracestore.DamagedError)(nil); errors.As(err, &d) {
				for i := range spansPerTrace {
					warned[first+i] = true
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("reading a trace: %w", err)
			}
			eachNumber(tr.Spans, func(i int) { byID[i]++ })
		}
	}
	found := map[int]int{}
	results, err := e.Find(t.Context(), everything(), tracestore.WantFull)
	if err != nil {
		return fmt.Errorf("searching: %w", err)
	}
	for r, err := range results.All {
		if err != nil {
			return fmt.Errorf("searching: %w", err)
		}
		eachNumber(r.Spans, func(i int) { found[i]++ })
	}
	for i := range v.spans {
		switch {
		case v.deleted[i] && byID[i] > 0 && !reported():
			return fmt.Errorf("deleted span %d is visible", i)
		case v.deleted[i]:
		case byID[i] > 1 || found[i] > 1:
			return fmt.Errorf("span %d is found %d and %d times", i, byID[i], found[i])
		case byID[i] == 0 && !warned[i] && !reported():
			return fmt.Errorf("span %d is not found by the id of its trace, without a report", i)
		case found[i] == 0 && results.Outcome().Complete() && !reported():
			return fmt.Errorf("span %d is not found by a search, without a report", i)
		case byID[i] < found[i]:
			return fmt.Errorf("span %d is found by a search, but not by the id of its trace", i)
		}
	}
	for i := range byID {
		if i < 0 || i >= v.spans {
			return fmt.Errorf("span %d was never sent", i)
		}
	}
	return nil
}

// TestEveryBit flips every bit of what the other bytes depend on, truncates each file, and removes
// it. With -short it takes a sample, and in long runs (TRACING_SOAK) every bit of everything and
// every length.
func TestEveryBit(t *testing.T) {
	v := newVictim(t)
	stride := 31
	if testing.Short() {
		stride = 997
	}
	stride = max(1, stride/soak.Rounds(t, 1, 1))
	tested := 0
	test := func(what, name string, content []byte) {
		tested++
		if err := v.check(t, name, content); err != nil {
			t.Errorf("%s: %s: %v", name, what, err)
		}
	}
	for _, name := range v.files {
		content := slices.Clone(v.content[name])
		size := len(content)
		if strings.HasSuffix(name, ".log") { // the rest is preallocated
			size = len(strings.TrimRight(string(content), "\x00")) + 1024
		}
		step := func(i int) int {
			if !testing.Short() && v.critical(name, i) {
				return 1
			}
			return stride
		}
		for bit := 0; bit < 8*size; bit += step(bit / 8) {
			content[bit/8] ^= 1 << (bit % 8)
			test(fmt.Sprintf("bit %d of byte %d of %d flipped", bit%8, bit/8, size), name, content)
			content[bit/8] ^= 1 << (bit % 8)
		}
		for n := 0; n < size; n += stride {
			test(fmt.Sprintf("cut to %d of %d bytes", n, size), name, content[:n])
		}
		test("removed", name, nil)
	}
	t.Logf("%d mutations of %d files", tested, len(v.files))
}

// critical reports whether a byte belongs to what makes the rest of a file readable: headers and
// footers, and small files as a whole. Of files of the same kind, it selects one.
func (v *victim) critical(name string, i int) bool {
	const logHeader, footer = 40, 32 + 13*32 // the trailer and the directory of a segment
	switch {
	case strings.HasSuffix(name, ".log"):
		return i%512 < logHeader && v.content[name][i] != 0
	case strings.HasSuffix(name, ".seg"):
		return strings.HasSuffix(v.files[len(v.files)-1], path.Base(name)) && (i < 24 || i >= len(v.content[name])-footer)
	}
	return !strings.HasSuffix(name, ".copy")
}

// TestRandomDamage damages random files in random ways.
func TestRandomDamage(t *testing.T) {
	v := newVictim(t)
	forEachSeed(t, soak.Rounds(t, 1000, 60), func(t testing.TB, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		name := v.files[rnd.IntN(len(v.files))]
		content, what := mutate(rnd, slices.Clone(v.content[name]))
		if err := v.check(t, name, content); err != nil {
			t.Errorf("%s: %s: %v", name, what, err)
		}
	})
}

// mutate changes the content of a file as broken disks and people do.
func mutate(rnd *rand.Rand, b []byte) (changed []byte, what string) {
	at := rnd.IntN(len(b))
	end := min(len(b), at+1+rnd.IntN(600))
	switch rnd.IntN(6) {
	case 0:
		for range 1 + rnd.IntN(20) {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		return b, "flipped bits"
	case 1:
		return b[:at], fmt.Sprintf("cut to %d bytes", at)
	case 2:
		clear(b[at:end])
		return b, fmt.Sprintf("zeros from %d to %d", at, end)
	case 3:
		for i := range b[at:end] {
			b[at+i] = byte(rnd.Uint32())
		}
		return b, fmt.Sprintf("noise from %d to %d", at, end)
	case 4:
		return slices.Delete(b, at, end), fmt.Sprintf("removed %d to %d", at, end)
	}
	return append(b, b[at:end]...), fmt.Sprintf("appended %d bytes", end-at)
}

// TestLostLogs: a log that is gone or cut to nothing is reported with the number of its spans, in
// the log, as a metric, and as degraded, also after the next start.
func TestLostLogs(t *testing.T) {
	for what, content := range map[string][]byte{"removed": nil, "empty": {}, "cut": make([]byte, 100)} {
		v := newVictim(t)
		i := slices.IndexFunc(v.files, func(name string) bool { return strings.HasSuffix(name, ".log") })
		var reported error
		v.setup.fs, v.setup.report = v.disk(t, v.files[i], content), func(err error) { reported = err }
		for start := range 2 {
			e := v.setup.start(t)
			if n := testutil.ToFloat64(e.metrics.lostSpans); start == 0 && n != 15 {
				t.Errorf("%s: %v spans are reported as lost, want 15", what, n)
			}
			if reported == nil || !strings.Contains(reported.Error(), ".damage.txt") {
				t.Errorf("%s, start %d: the store reports %v, want the quarantine", what, start, reported)
			}
			stopStore(t, e)
		}
	}
}

// TestLostLogBesideEmptyOne: a log that is gone is reported although the start removes another log
// and so writes the list of logs again.
func TestLostLogBesideEmptyOne(t *testing.T) {
	v := newVictim(t)
	mem := v.disk(t, "", nil)
	logs, err := wal.OpenDir(mem, folder+"/log", wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := logs.Create(math.MaxInt64)
	if err == nil {
		err = empty.Close()
	}
	i := slices.IndexFunc(v.files, func(name string) bool { return strings.HasSuffix(name, ".log") })
	if err := errors.Join(err, mem.Remove(v.files[i])); err != nil {
		t.Fatal(err)
	}
	v.setup.fs = mem
	if n := testutil.ToFloat64(v.setup.open(t).metrics.lostSpans); n != 15 {
		t.Errorf("%v spans are reported as lost, want 15", n)
	}
}

// TestLostLogOnFullDisk: a log that is gone is recorded on a full disk, too, and the store starts.
func TestLostLogOnFullDisk(t *testing.T) {
	v := newVictim(t)
	i := slices.IndexFunc(v.files, func(name string) bool { return strings.HasSuffix(name, ".log") })
	full := &vfstest.Rule{Op: vfstest.OpCreate, Path: "*.damage.txt*", Times: 1, Err: vfstest.ErrNoSpace}
	v.setup.fs = vfstest.Inject(v.disk(t, v.files[i], nil), full)
	e := v.setup.open(t)
	files, err := e.dir.Quarantined()
	if n := testutil.ToFloat64(e.metrics.lostSpans); n != 15 || err != nil || len(files) != 1 {
		t.Errorf("%v spans are reported as lost, want 15; quarantine: %v, %v", n, files, err)
	}
}

// TestDamageWhileRunning: damage that a query finds makes the store degraded without a restart,
// until the segment is gone. The other spans are answered.
func TestDamageWhileRunning(t *testing.T) {
	mem := vfstest.NewMem()
	s := newSetup(mem)
	var reported error
	s.report = func(err error) { reported = err }
	e, n := s.open(t), newNumbers()
	e.config.Retention.Time = 0
	n.send(t, e, 30)
	flushStore(t, e)
	n.send(t, e, 30)
	flushStore(t, e)
	first := e.handles()[0]
	v := &victim{spans: 60}
	name := e.dir.Path(first.name)
	for at := int64(20); at < 400; at += 8 {
		flipBit(t, mem, name, at)
	}
	if err := v.compare(t, e, func() bool { return false }); err != nil {
		t.Error(err)
	}
	e.health.damage = e.health.damageError()
	e.health.update(0, 0, nil)
	if reported == nil || !strings.Contains(reported.Error(), name) {
		t.Errorf("reported %v, want %s", reported, name)
	}
	e.segments.drop(first, expiredBySize)
	e.health.damage = e.health.damageError()
	e.health.update(0, 0, nil)
	if reported != nil {
		t.Errorf("reported %v after the segment is gone", reported)
	}
}

// TestNewerFilesStopTheStart: a sound file of a later version stops the start.
func TestNewerFilesStopTheStart(t *testing.T) {
	v := newVictim(t)
	content := []byte("tracing span store, version 7\ncrc32c 1fd3b80d\n")
	const want = "format 7, newer than format 1 of this program"
	if err := v.check(t, folder+"/FORMAT", content); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an error about the version", err)
	}
}

// TestDeletionOnFullDisk: a deletion on a full disk uses the space of the reserve, at the first
// attempt.
func TestDeletionOnFullDisk(t *testing.T) {
	mem := vfstest.NewMem()
	s := newSetup(mem)
	s.config.Reserve = 64 << 10
	e, d := s.open(t), newDeletedNumbers()
	d.write(t, e, 30)
	const large = 1 << 40
	mem.SetQuota(large)
	free, err := mem.Free(folder)
	if err != nil {
		t.Fatal(err)
	}
	mem.SetQuota(large - free)
	if _, err := e.Delete(t.Context(), "", tracestore.Deletion{To: startOf(4)}); err != nil {
		t.Errorf("deletion on a full disk: %v", err)
	}
	if n := rowsOf(t, e); n != 25 {
		t.Errorf("%d spans are visible, want 25", n)
	}
}

// TestQuarantineDoesNotPinDeletions: deletions after a segment was quarantined do not count as
// pending forever. When the segment is restored, they hide its spans.
func TestQuarantineDoesNotPinDeletions(t *testing.T) {
	mem := vfstest.NewMem()
	s := newSetup(mem)
	e, d := s.start(t), newDeletedNumbers()
	d.write(t, e, 30)
	flushStore(t, e)
	name := e.handles()[0].name
	home := e.dir.Path(name)
	stopStore(t, e)
	aside := folder + "/quarantine/" + path.Base(home)
	if err := mem.Rename(home, aside); err != nil {
		t.Fatal(err)
	}
	e = s.start(t)
	for range 4 {
		if _, err := e.Delete(t.Context(), "", tracestore.Deletion{To: startOf(4)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.deletions.clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(e.deletions.rules); n != 1 {
		t.Errorf("%d deletions are pending, want 1: the last one keeps its number", n)
	}
	stopStore(t, e)
	if err := mem.MkdirAll(path.Dir(home)); err != nil {
		t.Fatal(err)
	}
	if err := mem.Rename(aside, home); err != nil {
		t.Fatal(err)
	}
	e = s.open(t)
	if n := rowsOf(t, e); n != 25 {
		t.Errorf("the restored segment shows %d spans, want 25", n)
	}
	mergeAll(t, e)
	for range 2 {
		if err := e.deletions.clean(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFutureArrivalsExpire: a segment that arrived while the clock was wrong expires when the spans
// that arrived after it do, or after the retention time in this process if there are none.
func TestFutureArrivalsExpire(t *testing.T) {
	s := newSetup(vfstest.NewMem())
	const retention = 72 * time.Hour
	s.config.Retention.Time = pipeline.Duration(retention)
	now := s.clock.now()
	s.clock.advance(70 * 365 * 24 * time.Hour)
	e, n := s.start(t), newNumbers()
	n.send(t, e, 10)
	stopStore(t, e)
	s.clock.ns.Store(now.UnixNano())
	segments := func(e *exporter, after time.Duration) int {
		s.clock.advance(after)
		e.retention.clock = clockGuard{} // this test is about segments, not about jumps
		e.segments.removeLogs()          // spans of a log must not come back from it
		e.retention.expire()
		return len(e.handles())
	}
	e = s.start(t)
	if left := segments(e, retention-time.Hour); left != 1 {
		t.Errorf("%d segments before the retention time, want 1", left)
	}
	n.send(t, e, 10)
	stopStore(t, e)
	e = s.open(t) // with a segment that arrived later, the start does not matter
	if left := segments(e, retention-time.Hour); left != 2 {
		t.Errorf("%d segments before the retention time of the second one, want 2", left)
	}
	if left := segments(e, 2*time.Hour); left != 0 {
		t.Errorf("%d segments after the retention time, want none", left)
	}
	n.send(t, e, 1)
	flushStore(t, e)
	alone := e.handles()[0]
	alone.info.LastArrival = s.clock.now().Add(1000 * time.Hour)
	if left := segments(e, retention-time.Hour); left != 1 {
		t.Errorf("%d segments before the retention time, want 1", left)
	}
	if left := segments(e, 2*time.Hour); left != 0 {
		t.Errorf("%d segments after the retention time, want none", left)
	}
}
