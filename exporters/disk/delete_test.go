package disk

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// delete deletes spans from both stores and the model.
func (m *machine) delete() {
	m.model.Delete(m.store, m.memory)
	m.store.intake.mu.Lock()
	frozen := m.store.intake.active == nil
	m.store.intake.mu.Unlock()
	if frozen {
		m.flush()
	}
}

// deletedNumbers extends numbers for tests that delete spans. It records which spans must be
// deleted, and the service of each span.
type deletedNumbers struct {
	*numbers
	gone     map[int]bool
	services []string
}

func newDeletedNumbers() *deletedNumbers {
	return &deletedNumbers{numbers: newNumbers(), gone: map[int]bool{}}
}

// write sends spans. If the request fails, check accepts them as present or absent.
func (d *deletedNumbers) write(t testing.TB, e *exporter, count int) {
	t.Helper()
	b := d.next(count)
	eachNumber(b, func(int) { d.services = append(d.services, b.Services()[0].Service) })
	if err := e.Consume(t.Context(), b); err == nil {
		d.ack(b)
	}
}

// deleteRandom deletes random spans and returns the error. If the deletion fails, check accepts
// these spans as present or absent.
func (d *deletedNumbers) deleteRandom(t testing.TB, e *exporter, rnd *rand.Rand) error {
	t.Helper()
	if len(d.services) == 0 {
		return nil
	}
	some := rnd.IntN(len(d.services))
	var what tracestore.Deletion
	var covers func(i int) bool
	switch rnd.IntN(3) {
	case 0:
		what.Traces = []otlpdata.TraceID{refOf(some)[0].ID, refOf(0)[0].ID}
		covers = func(i int) bool { return i/spansPerTrace == some/spansPerTrace || i < spansPerTrace }
	case 1:
		what.Service = d.services[some]
		covers = func(i int) bool { return d.services[i] == what.Service }
	default:
		what.From, what.To = startOf(some), startOf(some+10)
		covers = func(i int) bool { return i >= some && i <= some+10 }
	}
	_, err := e.Delete(t.Context(), "", what)
	for i := range d.services {
		if covers(i) {
			d.acked[i] = false
			d.gone[i] = d.gone[i] || err == nil
		}
	}
	return err
}

// startOf returns the start time of a span by its number.
func startOf(number int) time.Time { return time.Date(2026, 11, 21, 12, 0, 0, number*1000, time.UTC) }

// check is like numbers.check and also checks that deleted spans are absent.
func (d *deletedNumbers) check(t testing.TB, e *exporter) {
	t.Helper()
	d.numbers.check(t, e)
	results, err := e.Find(t.Context(), everything(), tracestore.WantFull)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range results.All {
		if err != nil {
			t.Fatal(err)
		}
		eachNumber(r.Spans, func(i int) {
			if d.gone[i] {
				t.Errorf("span %d was deleted but is still visible", i)
			}
		})
	}
}

// TestCrashesAfterDeletions cuts the power at a random disk operation while spans are written,
// deleted and merged and tombstones removed. Deleted spans must stay deleted, even if they are in
// the log or in files whose removal the crash undid; other acknowledged spans must survive.
func TestCrashesAfterDeletions(t *testing.T) {
	forEachSeed(t, soak.Rounds(t, 100, 20), deleteAndCrash)
}

func deleteAndCrash(t testing.TB, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	mem, clock, spans := vfstest.NewMem(), newClock(), newDeletedNumbers()
	open := func(fs *setup) *setup {
		fs.clock, fs.config.MaxWait, fs.config.Merge.MinSegments = clock, 0, 2
		if soak.Repeating() {
			fs.withLog(t)
		}
		return fs
	}
	for range 1 + rnd.IntN(4) {
		o := newOutage(mem, rnd)
		e := open(newSetup(vfstest.Inject(mem, o.after(rnd.IntN(150))))).build(t)
		if err := e.Start(t.Context()); err == nil {
			for range 60 {
				spans.operate(t, e, rnd, clock)
			}
			o.strike()
			e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
		}
		o.strike()
		mem = o.left
	}
	for range 2 {
		e := open(newSetup(mem)).start(t)
		spans.check(t, e)
		flushStore(t, e)
		clock.advance(2 * rewriteAfter)
		for range 2 {
			if err := e.deletions.clean(t.Context()); err != nil {
				t.Error(err)
			}
			mergeAll(t, e)
			spans.check(t, e)
		}
		stopStore(t, e)
	}
}

// operate executes one random operation.
func (d *deletedNumbers) operate(t testing.TB, e *exporter, rnd *rand.Rand, clock *clock) {
	t.Helper()
	switch p := rnd.IntN(100); {
	case p < 60:
		d.write(t, e, 1+rnd.IntN(15))
	case p < 75:
		d.deleteRandom(t, e, rnd) //nolint:errcheck // the disk may be gone
	case p < 85:
		e.intake.writing.Lock()
		e.intake.mu.Lock()
		if len(e.intake.frozen) == 0 {
			e.intake.freeze()
		}
		e.intake.mu.Unlock()
		e.intake.writing.Unlock()
	case p < 95:
		e.merger.mergeNext(withoutPauses(e)) //nolint:errcheck // the disk may be gone
	default:
		clock.advance(rewriteAfter / 2)
		e.deletions.clean(t.Context()) //nolint:errcheck // the disk may be gone
	}
}

// TestDeletionIsNotAllowed: without allow_delete nothing is deleted, and the error names the key.
func TestDeletionIsNotAllowed(t *testing.T) {
	s := newSetup(vfstest.NewMem())
	s.config.AllowDelete = false
	e, n := s.open(t), newNumbers()
	n.send(t, e, 10)
	_, err := e.Delete(t.Context(), "", tracestore.Deletion{Traces: []otlpdata.TraceID{refOf(1)[0].ID}})
	if !errors.Is(err, tracestore.ErrNotAllowed) || !pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "allow_delete") {
		t.Errorf("error %v", err)
	}
	n.check(t, e)
}

// TestDeletionOfAbsentSpansFreezesNothing: a memtable without matching spans stays active, and the
// deletion does not affect later spans.
func TestDeletionOfAbsentSpansFreezesNothing(t *testing.T) {
	e, d := newSetup(vfstest.NewMem()).open(t), newDeletedNumbers()
	d.write(t, e, 10)
	active := e.intake.active
	late := tracestore.Deletion{Traces: []otlpdata.TraceID{refOf(1000)[0].ID}}
	for _, what := range []tracestore.Deletion{late, {Service: "absent"}, {From: startOf(500)}} {
		if got, err := e.Delete(t.Context(), "", what); err != nil || got.Spans != 0 {
			t.Fatalf("%+v: %+v, %v", what, got, err)
		}
	}
	if e.intake.active != active || len(e.intake.frozen) > 0 || len(e.segments.list) > 0 {
		t.Error("the memtable was frozen")
	}
	d.write(t, e, 1000)
	d.check(t, e)
	if got, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(500)}); err != nil || got.Spans != 510 {
		t.Errorf("%+v, %v", got, err)
	}
	if e.intake.active == active {
		t.Error("memtable with deleted spans is still active")
	}
}

// TestDeletedSpaceIsReclaimed: a segment with many deleted spans, or with old deletions, is
// rewritten without them; a segment with only deleted spans is removed. Then all tombstones except
// the last are removed.
func TestDeletedSpaceIsReclaimed(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	s := newSetup(vfstest.NewMem())
	s.log = zap.New(core)
	e, d := s.open(t), newDeletedNumbers()
	write := func(count int) *handle {
		d.write(t, e, count)
		flushStore(t, e)
		return e.segments.list[len(e.segments.list)-1]
	}
	remove := func(from, to int) {
		t.Helper()
		got, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(from), To: startOf(to - 1)})
		if err != nil || got.Spans != to-from {
			t.Fatalf("delete %d to %d: %+v, %v", from, to, got, err)
		}
		for i := from; i < to; i++ {
			d.acked[i], d.gone[i] = false, true
		}
	}
	many, few, all := write(100), write(100), write(100)
	remove(0, 50)    // of many
	remove(100, 101) // of few
	remove(200, 300) // of all
	for _, step := range []struct {
		wait       time.Duration
		tombstones int
	}{{0, 2}, {2 * rewriteAfter, 1}} {
		s.clock.advance(step.wait)
		if err := e.deletions.clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		mergeAll(t, e)
		if err := e.deletions.clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.check(t, e)
		files, err := s.fs.ReadDir(folder + "/deletions")
		if err != nil || len(files) != 2*step.tombstones { // with copies
			t.Errorf("after %s: tombstones %v, %v; want %d", step.wait, files, err, step.tombstones)
		}
	}
	rows := 0
	for _, h := range e.segments.list {
		if h == many || h == few || h == all {
			t.Errorf("segment %s still exists", h.name)
		}
		rows += h.info.Rows
		if _, filtered := e.deletions.sourceOf(h).(*tombstone.Filter); filtered {
			t.Errorf("%s still has a deletion filter", h.name)
		}
	}
	if rows != 149 {
		t.Errorf("segments have %d rows, want 149", rows)
	}
	reported := logs.FilterMessage("deleted spans on request").FilterField(zap.Int("spans", 50)).FilterField(zap.String("tenant", ""))
	if reported.Len() != 1 {
		t.Errorf("log messages: %v", logs.All())
	}
}

// TestDamagedTombstone: a tombstone is restored from its copy. If both are damaged, they are moved
// to the quarantine and reported, the number is not reused, and the store works.
func TestDamagedTombstone(t *testing.T) {
	mem := vfstest.NewMem()
	s := newSetup(mem)
	var reported error
	s.report = func(err error) { reported = err }
	e, d := s.start(t), newDeletedNumbers()
	d.write(t, e, 30)
	first := tracestore.Deletion{To: startOf(4)}
	if _, err := e.Delete(t.Context(), "", first); err != nil {
		t.Fatal(err)
	}
	mark := tombstone.Dir{Path: folder + "/deletions"}.File(1)
	copied := strings.TrimSuffix(mark, ".mark") + ".copy"
	for _, damaged := range []string{mark, copied} {
		stopStore(t, e)
		flipBit(t, mem, damaged, 20)
		e = s.start(t)
		if n := rowsOf(t, e); n != 25 || testutil.ToFloat64(e.metrics.restored) != 1 || reported != nil {
			t.Errorf("%s damaged: %d spans are visible, want 25; reported %v", damaged, n, reported)
		}
	}
	stopStore(t, e)
	flipBit(t, mem, mark, 20)
	flipBit(t, mem, copied, 21)
	e = s.open(t)
	if n := d.numbers.check(t, e); n != 30 {
		t.Errorf("%d spans are visible, want 30", n)
	}
	if _, err := e.Delete(t.Context(), "", first); err != nil {
		t.Fatal(err)
	}
	if got := e.deletions.rules[0].Number; got != 2 {
		t.Errorf("next tombstone has number %d, want 2", got)
	}
	if files, err := mem.ReadDir(folder + "/quarantine"); err != nil || len(files) != 2 {
		t.Errorf("quarantine has %v, %v; want two files", files, err)
	}
	if reported == nil || !strings.Contains(reported.Error(), "0000000000000001.mark") {
		t.Errorf("reported %v, want the quarantine", reported)
	}
}

// flipBit flips the lowest bit of a byte of a file.
func flipBit(t testing.TB, fs vfs.FS, name string, at int64) {
	t.Helper()
	f, err := fs.OpenWrite(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 1
	if _, failed := f.WriteAt(b[:], at); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// TestLaterEpochsAreNotDeleted: after the clock was set back, a deletion does not apply to new
// spans.
func TestLaterEpochsAreNotDeleted(t *testing.T) {
	mem := vfstest.NewMem()
	s := newSetup(mem)
	e, d := s.start(t), newDeletedNumbers()
	d.write(t, e, 30)
	if _, err := e.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)}); err != nil {
		t.Fatal(err)
	}
	flushStore(t, e)
	waitForLogRemoval(e)
	if err := e.deletions.clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(e.segments.list) > 0 {
		t.Fatalf("segment without visible spans still exists: %s", e.segments.list[0].name)
	}
	stopStore(t, e)
	s.clock.advance(-48 * time.Hour)
	e, again := s.open(t), newNumbers()
	again.send(t, e, 30)
	flushStore(t, e)
	if n := again.check(t, e); n != 30 {
		t.Errorf("%d of 30 later spans are visible", n)
	}
}

// TestTombstonesOutliveTheQuarantine: as long as an operator can move a segment back from the
// quarantine, or put a missing segment back from a copy, the tombstone that hides its spans stays.
func TestTombstonesOutliveTheQuarantine(t *testing.T) {
	for what, outside := range map[string]string{"quarantined": "quarantine", "missing": "log"} {
		t.Run(what, func(t *testing.T) { testTombstonesOutlive(t, folder+"/"+outside+"/") })
	}
}

func testTombstonesOutlive(t *testing.T, outside string) {
	mem := vfstest.NewMem()
	s := newSetup(mem)
	e, d := s.start(t), newDeletedNumbers()
	d.write(t, e, 30)
	flushStore(t, e)
	remove := func(what tracestore.Deletion) {
		t.Helper()
		if _, err := e.Delete(t.Context(), "", what); err != nil {
			t.Fatal(err)
		}
	}
	remove(tracestore.Deletion{To: startOf(0)})
	d.acked[0], d.gone[0] = false, true
	name := e.segments.list[0].name
	stopStore(t, e)
	path, away := folder+"/seg/"+name.String(), outside+strings.SplitAfter(name.String(), "/")[1]
	if err := mem.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	e = s.start(t)
	remove(tracestore.Deletion{Service: "absent"})
	remove(tracestore.Deletion{Service: "also absent"})
	if err := e.deletions.clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files, err := mem.ReadDir(folder + "/deletions"); err != nil || len(files) != 2 { // with its copy
		t.Errorf("deletions %v, %v; want the last one", files, err)
	}
	stopStore(t, e)
	if err := mem.MkdirAll(folder + "/seg/" + name.Day); err != nil {
		t.Fatal(err)
	}
	if err := mem.Rename(away, path); err != nil {
		t.Fatal(err)
	}
	d.check(t, s.open(t))
}

// A merged segment has applied all current deletions, and not fewer than its inputs had.
func TestDeletionsApplied(t *testing.T) {
	input := func(last uint64) *handle { return &handle{info: segment.Info{Meta: segment.Meta{LastTombstone: last}}} }
	d := &deletions{}
	for _, c := range []struct{ current, a, b, want uint64 }{{0, 0, 0, 0}, {3, 0, 2, 3}, {3, 5, 0, 5}, {0, 1, 7, 7}} {
		d.last = c.current
		if _, got := d.visibleIn([]*handle{input(c.a), input(c.b)}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
