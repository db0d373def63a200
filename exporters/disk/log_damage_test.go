package disk

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/test/bench"
)

// logOf returns the only log of a store that was killed after it acknowledged the spans.
func logOf(t *testing.T, spans, perRequest int) (name string, content []byte, batches []*otlpdata.Batch) {
	t.Helper()
	mem := vfstest.NewMem()
	s := newSetup(mem)
	s.config.Memtable.MaxBytes = 256 << 20
	e := s.start(t)
	for r := range bench.New(1, s.clock.now()).Requests(spans, perRequest) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{Received: s.clock.now()}, otlpdata.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Consume(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	e.intake.checkpoint()
	mem = mem.Kill()
	e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
	logs := slices.DeleteFunc(filesBelow(t, mem, folder), func(n string) bool { return !strings.HasSuffix(n, ".log") })
	if len(logs) != 1 {
		t.Fatalf("logs: %v, want one", logs)
	}
	content, err := vfs.ReadFile(mem, logs[0], 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return logs[0], content, batches
}

// recovered opens a store that has only a log, and returns how many spans were read, and how many
// are counted as lost.
func recovered(t *testing.T, name string, content []byte) (spans, lost int) {
	t.Helper()
	mem := vfstest.NewMem()
	err := mem.MkdirAll(path.Dir(name))
	if err == nil {
		err = vfs.WriteFileAtomic(mem, name, content)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := newSetup(mem)
	s.config.Memtable.MaxBytes = 256 << 20
	e := s.build(t)
	if err := e.openFolder(); err != nil {
		t.Fatal(err)
	}
	for _, l := range e.intake.frozen {
		spans += l.table.Rows()
	}
	lost = int(testutil.ToFloat64(e.metrics.lostSpans))
	e.closeAll()
	if err := e.dir.Close(); err != nil {
		t.Fatal(err)
	}
	return spans, lost
}

// TestFlippedBitInLog: a flipped bit costs the spans of one record, wherever it is in the log, and
// they are counted.
func TestFlippedBitInLog(t *testing.T) {
	soak.SkipIfRaced(t)
	for _, perRequest := range []int{500, 20_000} { // a record has at most about 128 KiB
		testFlippedBits(t, perRequest, 2000)
	}
}

// testFlippedBits flips bits all over a log. Each may cost maxLost spans.
func testFlippedBits(t *testing.T, perRequest, maxLost int) {
	t.Helper()
	const flips = 13
	name, content, batches := logOf(t, 20_000, perRequest)
	total := 0
	for _, b := range batches {
		total += b.Len()
	}
	used := len(content)
	for used > 0 && content[used-1] == 0 {
		used--
	}
	t.Logf("%d spans in %d bytes", total, used)
	for i := range flips {
		at := i*used/flips + 1000
		content[at] ^= 4
		spans, lost := recovered(t, name, content)
		content[at] ^= 4
		t.Logf("bit flipped at %d: %d spans are lost", at, total-spans)
		if total-spans > maxLost {
			t.Errorf("bit flipped at %d: %d of %d spans are lost, want at most %d", at, total-spans, total, maxLost)
		}
		if lost != total-spans {
			t.Errorf("bit flipped at %d: %d spans are counted as lost, want %d", at, lost, total-spans)
		}
	}
}

// TestTrailingData: a segment that is followed by other data stays in the store, which removes the
// data and says so.
func TestTrailingData(t *testing.T) {
	for what, garbage := range map[string][]byte{
		"zeros": make([]byte, 4096), "one byte": {1}, "magic": []byte("SPANSEGM"), "a header": append([]byte("SPANSEGM"), make([]byte, 40)...),
	} {
		v := newVictim(t)
		i := slices.IndexFunc(v.files, func(name string) bool { return strings.HasSuffix(name, ".seg") })
		name, content := v.files[i], v.content[v.files[i]]
		core, logs := observer.New(zapcore.WarnLevel)
		v.setup.fs, v.setup.log = v.disk(t, name, append(slices.Clone(content), garbage...)), zap.New(core)
		e := v.setup.start(t)
		if err := v.compare(t, e, func() bool { return false }); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if logs.FilterMessageSnippet("followed by other data").FilterLevelExact(zapcore.WarnLevel).Len() != 1 {
			t.Errorf("%s: logs: %v, want a warning", what, logs.All())
		}
		if err := e.health.damageError(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		stopStore(t, e)
		if b, err := vfs.ReadFile(v.setup.fs, name, 1<<20); err != nil || !slices.Equal(b, content) {
			t.Errorf("%s: file has %d bytes, %v, want %d", what, len(b), err, len(content))
		}
	}
}

// TestZeroedEndOfLog: zeros from the middle of a sector of a log on are said as a possible loss,
// also if the list of logs does not know the records yet. Zeros from the start of a sector on are
// what an interrupted write leaves, and zeros from the padding of a group on are no damage.
func TestZeroedEndOfLog(t *testing.T) {
	soak.SkipIfRaced(t)
	mem := vfstest.NewMem()
	s := newSetup(mem)
	e := s.start(t)
	for r := range bench.New(1, s.clock.now()).Requests(100, 100) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{Received: s.clock.now()}, otlpdata.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Consume(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	mem = mem.Kill()
	e.Stop(t.Context()) //nolint:errcheck // its disk has crashed
	names := filesBelow(t, mem, folder)
	name := names[slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, ".log") })]
	content, err := vfs.ReadFile(mem, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(content, "\x00"))
	for at := 512; at < used; at += 64 {
		damaged := slices.Clone(content)
		clear(damaged[at:])
		s.fs = mem.Kill()
		if err := vfs.WriteFileAtomic(s.fs, name, damaged); err != nil {
			t.Fatal(err)
		}
		e := s.start(t)
		if said := e.health.damageError() != nil && e.health.lossReason() != ""; said == isZero(content[at:(at+511)/512*512]) {
			t.Errorf("zeros from byte %d of %d: a loss is said: %v", at, used, said)
		}
		stopStore(t, e)
	}
}

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
