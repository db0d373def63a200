package storetool

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// openedBlocks counts how often blocks of a source are opened or visited.
type openedBlocks struct {
	source.Source
	count *int
}

func (o openedBlocks) Open(ctx context.Context, block int) (source.Block, error) {
	*o.count++
	return o.Source.Open(ctx, block)
}

func (o openedBlocks) Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b source.Block, rows []int32) error) error {
	return o.Source.Trace(ctx, tenant, id, func(b source.Block, rows []int32) error {
		*o.count++
		return visit(b, rows)
	})
}

// overlappingStore returns a store with small segments that have spans of the same time, many of
// them in several segments.
func overlappingStore(t *testing.T, segments int) *store {
	s := newStore(t)
	made := synthetic(t, 1, 12_000, "")
	parts := make([][]*otlpdata.Batch, segments)
	for i, b := range made {
		parts[i%segments] = append(parts[i%segments], b)
		if i%4 == 0 {
			parts[(i+7)%segments] = append(parts[(i+7)%segments], b)
		}
	}
	for i, part := range parts {
		s.segment(uint64(i+1), part...)
	}
	return s
}

// walked is what a walk emits.
type walked struct {
	*walker
	spans    []string // sorted
	byHour   map[uint64][]string
	blocks   int // of all sources
	opened   int
	maxKnown int // spans that were compared with each other at a time
}

func walkStore(t *testing.T, s *snapshot, limit int) *walked {
	t.Helper()
	r := &walked{byHour: map[uint64][]string{}}
	text := spanTexts{}
	w := &walker{ordered: len(s.segments), maxKnown: limit, step: func() {}}
	w.emit = func(rec *record) error {
		r.maxKnown = max(r.maxKnown, len(w.known.known))
		text.tenant, text.resource, text.scope = rec.tenant, *rec.resource, *rec.scope
		check(t, text.Span(rec.span))
		hour := rec.span.Start / uint64(time.Hour)
		r.byHour[hour] = append(r.byHour[hour], text.list[len(text.list)-1])
		return nil
	}
	for _, src := range s.sources() {
		blocks, err := src.Blocks()
		check(t, err)
		r.blocks += len(blocks)
		w.sources = append(w.sources, openedBlocks{src, &r.opened})
	}
	check(t, w.walk(t.Context()))
	r.walker, r.spans = w, text.list
	slices.Sort(r.spans)
	return r
}

// An export opens each block once, however many segments have spans of the same time. If there are
// too many spans to compare with each other, it opens blocks once more to divide time, and once for
// each window. Windows change neither the spans nor, as long as the spans of an hour are in one,
// their order within an hour.
func TestExportOpensBlocksOnce(t *testing.T) {
	soak.SkipIfRaced(t)
	s := overlappingStore(t, 40)
	all := len(s.spans(nil))
	s.deleteSpans(tombstone.Tombstone{Number: 1, Through: 15, Service: s.batch[0].Services()[0].Service, To: math.MaxUint64})
	snap, err := openSnapshot(vfs.OS(), s.unlock(), true)
	check(t, err)
	defer snap.close()
	one := walkStore(t, snap, math.MaxInt)
	if one.opened > one.blocks || one.duplicates == 0 || len(one.spans) == 0 || len(one.spans) >= all {
		t.Errorf("opened %d blocks of %d; %d spans of %d; %d duplicates", one.opened, one.blocks, len(one.spans), all, one.duplicates)
	}
	if !slices.Equal(one.spans, slices.Compact(slices.Clone(one.spans))) {
		t.Error("duplicates were exported")
	}
	largest := 0
	for _, list := range one.byHour {
		largest = max(largest, len(list))
	}
	for _, limit := range []int{2 * largest, 3000, 500} {
		r := walkStore(t, snap, limit)
		opened := r.opened
		windows, err := r.windows(t.Context())
		check(t, err)
		if !slices.Equal(r.spans, one.spans) || r.duplicates != one.duplicates {
			t.Errorf("limit %d: %d spans and %d duplicates, want %d and %d",
				limit, len(r.spans), r.duplicates, len(one.spans), one.duplicates)
		}
		if opened > (len(windows)+1)*r.blocks || len(windows) < len(one.spans)/limit {
			t.Errorf("limit %d: opened %d blocks of %d for %d windows", limit, opened, r.blocks, len(windows))
		}
	}
}

// Windows do not change which spans of segments and logs are exported.
func TestExportLogsInWindows(t *testing.T) {
	t.Parallel()
	soak.SkipIfRaced(t)
	s := mixedStore(t)
	want := len(s.spans(nil))
	snap, err := openSnapshot(vfs.OS(), s.unlock(), true)
	check(t, err)
	defer snap.close()
	one := walkStore(t, snap, math.MaxInt)
	many := walkStore(t, snap, 1000)
	if len(one.spans) != want || !slices.Equal(one.spans, many.spans) || many.duplicates != one.duplicates || many.window.from == 0 {
		t.Errorf("%d and %d spans, want %d; %d and %d duplicates", len(one.spans), len(many.spans), want, one.duplicates, many.duplicates)
	}
}

// A damaged block that overlaps several windows is reported once.
func TestExportDamageInWindows(t *testing.T) {
	t.Parallel()
	soak.SkipIfRaced(t)
	s := newStore(t)
	s.segment(1, synthetic(t, 1, 3000, "")...)
	file := s.segment(3, synthetic(t, 2, 3000, "")...)
	s.segment(5, synthetic(t, 3, 3000, "")...)
	damage(t, file, 2000)
	snap, err := openSnapshot(vfs.OS(), s.unlock(), true)
	check(t, err)
	defer snap.close()
	one, many := walkStore(t, snap, math.MaxInt), walkStore(t, snap, 1000)
	if one.lost == 0 || many.window.from == 0 || !slices.Equal(one.damage, many.damage) || !slices.Equal(one.spans, many.spans) {
		t.Errorf("%d and %d spans; damage %+v and %+v", len(one.spans), len(many.spans), one.damage, many.damage)
	}
}

// The order of the spans of an hour does not depend on the number of windows.
func TestExportOrder(t *testing.T) {
	t.Parallel()
	soak.SkipIfRaced(t)
	s := newStore(t)
	for i, b := range synthetic(t, 1, 6000, "") {
		s.segment(uint64(2*i+1), b)
	}
	snap, err := openSnapshot(vfs.OS(), s.unlock(), true)
	check(t, err)
	defer snap.close()
	one := walkStore(t, snap, math.MaxInt)
	limit := 0
	for _, list := range one.byHour {
		limit = max(limit, len(list))
	}
	two := walkStore(t, snap, limit)
	if two.window.from == 0 || len(one.byHour) < 2 || two.maxKnown > limit {
		t.Fatalf("last window begins at %d; %d hours; %d spans at a time, want %d", two.window.from, len(one.byHour), two.maxKnown, limit)
	}
	for hour, list := range one.byHour {
		if !slices.Equal(list, two.byHour[hour]) {
			t.Errorf("hour %d has another order", hour)
		}
	}
}

// Spans of segments that do not overlap are not compared.
func TestExportComparesOnlyOverlapping(t *testing.T) {
	f := func(want []bool, ranges ...window) {
		t.Helper()
		var inputs []*input
		for _, r := range ranges {
			info := source.BlockInfo{Rows: 1, MinStart: r.from, MaxStart: r.to}
			inputs = append(inputs, &input{Source: bounds{window: r}, ordered: true, blocks: []source.BlockInfo{info}})
		}
		findShared(inputs)
		for i, in := range inputs {
			if in.shared[0] != want[i] {
				t.Errorf("%v: source %d may share: %v", ranges, i, in.shared[0])
			}
		}
	}
	f([]bool{false}, window{1, 9})
	f([]bool{false, false}, window{10, 19}, window{1, 9})
	f([]bool{true, true}, window{9, 19}, window{1, 9})
	f([]bool{true, true, false}, window{5, 5}, window{5, 5}, window{6, 6})
	f([]bool{true, true, true}, window{1, 3}, window{7, 9}, window{0, math.MaxUint64})
}

// bounds is a source with known bounds and nothing else.
type bounds struct {
	source.Source
	window
}

func (b bounds) Bounds() (rows int, minStart, maxStart uint64) { return 1, b.from, b.to }

// Windows follow each other without gaps, begin at full hours where possible, and have at most as
// many spans as the limit unless all start at the same time.
func TestDivideTime(t *testing.T) {
	hour := uint64(time.Hour)
	f := func(limit int, want []window, marks ...mark) {
		t.Helper()
		if got := divide(marks, limit); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	f(10, []window{{0, math.MaxUint64}})
	f(10, []window{{0, math.MaxUint64}}, mark{5, 20})
	f(10, []window{{0, 4}, {5, math.MaxUint64}}, mark{5, 8}, mark{3, 8}, mark{5, 8})
	f(10, []window{{0, hour - 1}, {hour, math.MaxUint64}}, mark{5, 5}, mark{hour + 3, 5}, mark{hour + 5, 5})
	f(10, []window{{0, hour - 1}, {hour, hour + 4}, {hour + 5, math.MaxUint64}}, mark{5, 1}, mark{hour + 3, 9}, mark{hour + 5, 5})

	f(10, []window{{0, 5}, {6, math.MaxUint64}}, mark{5, 8}, mark{6, 1}, mark{5, 8})

	rounds := soak.Rounds(t, 1000, 100)
	random := rand.New(rand.NewPCG(soak.Seed(t), 1))
	for range rounds {
		var marks []mark
		for range random.IntN(100) {
			marks = append(marks, mark{random.Uint64N(30) * hour / 10, 1 + random.IntN(5)})
		}
		windows := divide(slices.Clone(marks), 20)
		next := uint64(0)
		for _, w := range windows {
			spans, starts := 0, map[uint64]bool{}
			for _, m := range marks {
				if w.includes(m.start) {
					spans, starts[m.start] = spans+m.spans, true
				}
			}
			if w.from != next || w.to < w.from || spans > 20 && len(starts) > 1 {
				t.Fatalf("window %v after %d has %d spans", w, next, spans)
			}
			next = w.to + 1
		}
		if next != 0 {
			t.Fatalf("last window ends at %d", next-1)
		}
	}
}
