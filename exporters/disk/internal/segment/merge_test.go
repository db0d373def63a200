package segment

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// split writes the rows of a sample to n segments in directory d. Each row is written to one
// segment, some rows to two.
func split(tb testing.TB, fsys vfs.FS, s *sample, n int, rng *rand.Rand) []source.Source {
	tb.Helper()
	parts := make([][][]byte, n)
	scattered := rng.IntN(2) == 0
	for i := range s.in.Rows {
		at := min(n-1, i*n/s.in.Rows+rng.IntN(2)) // adjacent rows are in the same segment
		if scattered {
			at = rng.IntN(n)
		}
		parts[at] = append(parts[at], s.in.Row(i))
		if rng.IntN(8) == 0 {
			at = rng.IntN(n)
			parts[at] = append(parts[at], s.in.Row(i))
		}
	}
	var inputs []source.Source
	for i, list := range parts {
		name := fmt.Sprintf("d/part%d", i)
		in := Input{Tables: s.in.Tables, Rows: len(list), Row: func(i int) []byte { return list[i] }}
		if _, err := Write(fsys, name, in, Meta{}, Options{blockRows: 1 + rng.IntN(20)}); err != nil {
			tb.Fatal(err)
		}
		inputs = append(inputs, openTest(tb, fsys, name))
	}
	return inputs
}

// TestMerge compares a merge of segments with one segment of all their rows.
func TestMerge(t *testing.T) {
	for seed := range uint64(soak.Rounds(t, 60, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			s := randomSample(t, seed, 1+int(seed))
			whole, _ := writeSample(t, s, 20)
			fsys := writeDir(t)
			info, err := Merge(fsys, "d/s", split(t, fsys, s, 1+rng.IntN(6), rng), testMeta, MergeOptions{blockRows: 1 + rng.IntN(20)})
			if err != nil {
				t.Fatal(err)
			}
			merged := openTest(t, fsys, "d/s")
			if got := merged.Info(); fmt.Sprint(got) != fmt.Sprint(info) || !merged.HoldsIntegers() {
				t.Fatalf("opened %+v, wrote %+v", got, info)
			}
			if info.Rows != len(s.spans) || info.Traces != whole.Info().Traces || info.Unreadable != 0 {
				t.Fatalf("%+v, but %d spans of %d traces", info, len(s.spans), whole.Info().Traces)
			}
			checkSame(t, "reference reader", readAll(t, fsys, "d/s"), s.spans)
			checkSame(t, "blocks", readBlocks(t, merged), s.spans)
			checkTraces(t, merged, s.spans)
			checkHints(t, merged)
			checkStatistics(t, merged, whole)
			checkOrder(t, merged)
		})
	}
}

// checkOrder checks the order of traces and rows.
func checkOrder(t *testing.T, s *Segment) {
	t.Helper()
	tables, _ := s.Tables()
	table := newTraceTable(tables)
	var keys []rowKey
	var numbers []uint32
	for i := range s.Info().Blocks {
		if err := eachHead(s, i, func(h *rows.Head) {
			keys, numbers = append(keys, keyOf(h, 0)), append(numbers, table.add(h, 0, 0))
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < len(keys); i++ {
		switch {
		case numbers[i] == numbers[i-1]:
			if keys[i].before(&keys[i-1]) {
				t.Fatalf("row %d is out of order", i)
			}
		case numbers[i] < numbers[i-1]:
			t.Fatalf("rows of trace %x are not adjacent", table.list[numbers[i]].id)
		case table.list[numbers[i]].compare(&table.list[numbers[i-1]]) <= 0:
			t.Fatalf("trace %x is out of order", table.list[numbers[i]].id)
		}
	}
}

// checkStatistics compares the statistics of two segments of the same spans.
func checkStatistics(t *testing.T, a, b *Segment) {
	t.Helper()
	if x, y := orphansOf(t, a), orphansOf(t, b); !maps.Equal(x, y) {
		t.Errorf("orphans %v, want %v", x, y)
	}
	if x, y := edgesOf(t, a), edgesOf(t, b); !maps.Equal(x, y) {
		t.Errorf("edges %v, want %v", x, y)
	}
	if x, y := seriesOf(t, a), seriesOf(t, b); !slices.Equal(x, y) {
		t.Errorf("series %v, want %v", x, y)
	}
}

func orphansOf(t *testing.T, s *Segment) map[stats.Orphan]int {
	t.Helper()
	orphans, err := s.Orphans()
	if err != nil {
		t.Fatal(err)
	}
	found := map[stats.Orphan]int{}
	for o := range orphans.Orphans(0, math.MaxUint64) {
		found[o]++
	}
	return found
}

func seriesOf(t *testing.T, s *Segment) (list []string) {
	t.Helper()
	series, err := s.Series()
	if err != nil {
		t.Fatal(err)
	}
	for p := range series.Points(0, math.MaxUint64) {
		list = append(list, fmt.Sprintf("%d %v %v", p.Minute, series.Series[p.Series], p.Durations))
	}
	return list
}

// TestMergeFindsParents checks that a span whose parent is in another input is not an orphan.
func TestMergeFindsParents(t *testing.T) {
	fsys := writeDir(t)
	parent := segmentOfCalls(t, call{"a", ptrace.SpanKindClient, 1, 0, false})
	child := segmentOfCalls(t, call{"b", ptrace.SpanKindServer, 2, 1, true})
	if _, err := Merge(fsys, "d/s", []source.Source{child, parent}, Meta{}, MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a > b": "kind 0: 1, 1 failed"}
	if got := edgesOf(t, openTest(t, fsys, "d/s")); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

const goldenMerge = "testdata/v1-merged.segment"

// TestGoldenMerge checks that the same inputs are written identically until the version changes.
func TestGoldenMerge(t *testing.T) {
	s, fsys := goldenSample(t), writeDir(t)
	inputs := split(t, fsys, s, 3, rand.New(rand.NewPCG(4, 2)))
	if _, err := Merge(fsys, "d/s", inputs, testMeta, MergeOptions{blockRows: 10}); err != nil {
		t.Fatal(err)
	}
	data, err := vfs.ReadFile(fsys, "d/s", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := golden.Check(t, goldenMerge, data)
	checkSame(t, "golden file", readAll(t, put(t, want), "s"), s.spans)
	if seg := openTest(t, put(t, want), "s"); !seg.HoldsIntegers() {
		t.Error("filters of the golden file have no integers")
	}
}

// TestMergeOfNothing checks that a merge of empty inputs is a segment without rows.
func TestMergeOfNothing(t *testing.T) {
	fsys := writeDir(t)
	if info, err := Merge(fsys, "d/s", nil, Meta{}, MergeOptions{}); err != nil || info.Rows != 0 || info.Blocks != 0 {
		t.Fatal(info, err)
	}
	if got := readAll(t, fsys, "d/s"); len(got) > 0 {
		t.Errorf("%d rows", len(got))
	}
}

// TestMergeStops checks that Pace can stop the merge at any time, and that no file is left.
func TestMergeStops(t *testing.T) {
	s, fsys := randomSample(t, 11, 1500), writeDir(t)
	inputs := split(t, fsys, s, 2, rand.New(rand.NewPCG(1, 1)))
	stop := errors.New("stop")
	calls := 0
	for at := 0; at <= calls; at++ {
		calls = 0
		_, err := Merge(fsys, "d/s", inputs, Meta{}, MergeOptions{Pace: func() error {
			if calls++; calls > at {
				return stop
			}
			return nil
		}})
		if calls > at != errors.Is(err, stop) || calls <= at && err != nil {
			t.Fatalf("at call %d of %d: %v", at, calls, err)
		}
		if err != nil {
			checkAbsent(t, fsys, fmt.Sprintf("call %d", at))
		}
	}
	if calls < 4 || calls > s.sent/1000 {
		t.Errorf("Pace was called %d times for %d rows", calls, s.sent)
	}
}

// TestEveryFailedOperationOfMerge checks that after any failed operation, including reads, no file
// is left and the next attempt succeeds.
func TestEveryFailedOperationOfMerge(t *testing.T) {
	s, mem := randomSample(t, 11, 12), writeDir(t)
	split(t, mem, s, 3, rand.New(rand.NewPCG(1, 1)))
	merge := func(fsys vfs.FS) error {
		var inputs []source.Source
		for i := range 3 {
			seg, err := Open(fsys, fmt.Sprintf("d/part%d", i))
			if err != nil {
				t.Fatal(err)
			}
			defer seg.Close()
			inputs = append(inputs, seg)
		}
		_, err := Merge(fsys, "d/s", inputs, Meta{}, MergeOptions{blockRows: 10})
		return err
	}
	const ops = vfstest.OpChanges | vfstest.OpRead
	counter := vfstest.Inject(mem)
	if err := merge(counter); err != nil {
		t.Fatal(err)
	}
	const opening = 9 // reads while three files are opened
	failed := 0
	for n := opening; n < counter.Count(ops); n++ {
		if err := mem.Remove("d/s"); err != nil {
			t.Fatal(err)
		}
		rule := &vfstest.Rule{Op: ops, Skip: n, Times: 1, Err: vfstest.ErrIO, Short: n%2 == 0}
		fsys := vfstest.Inject(mem, rule)
		err := merge(fsys)
		switch {
		case err == nil: // the failed read was not needed
		case !errors.Is(err, vfstest.ErrIO):
			t.Fatalf("operation %d: %v", n, err)
		default:
			failed++
			checkAbsent(t, mem, fmt.Sprintf("operation %d", n))
			if err := merge(fsys); err != nil {
				t.Fatalf("after operation %d: %v", n, err)
			}
		}
		checkSame(t, "in the end", readAll(t, mem, "d/s"), s.spans)
	}
	if failed < 20 {
		t.Errorf("only %d operations failed", failed)
	}
}
