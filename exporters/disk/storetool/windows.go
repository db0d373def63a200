package storetool

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"time"
)

const (
	// maxKnownSpans is the approximate maximum number of spans that an export compares with each
	// other to find duplicates. Each takes about 50 bytes. More spans are exported in several
	// windows; spans with the same start time are always in one window.
	maxKnownSpans = 1 << 20
	// markSpans is the number of spans per mark.
	markSpans = 1024
)

// window is a range of start times in nanoseconds, both ends inclusive.
type window struct{ from, to uint64 }

func (w window) includes(start uint64) bool { return start >= w.from && start <= w.to }

// mark stands for a number of spans that start at a time or soon after it.
type mark struct {
	start uint64
	spans int
}

// findShared determines which blocks may have duplicates: blocks that overlap another source in
// time, and all blocks of unordered sources.
func findShared(inputs []*input) {
	var begins, ends []uint64
	for _, in := range inputs {
		_, first, last := in.Bounds()
		begins, ends = append(begins, first), append(ends, last)
	}
	slices.Sort(begins)
	slices.Sort(ends)
	for _, in := range inputs {
		for _, info := range in.blocks {
			begun := sort.Search(len(begins), func(i int) bool { return begins[i] > info.MaxStart })
			ended, _ := slices.BinarySearch(ends, info.MinStart)
			in.shared = append(in.shared, !in.ordered || begun-ended > 1)
		}
	}
}

// windows divides time so that each window has at most about maxKnown spans of blocks that may have
// duplicates.
func (w *walker) windows(ctx context.Context) ([]window, error) {
	all := window{0, math.MaxUint64}
	var blocks []func() []mark
	spans := 0
	w.window = all
	for _, in := range w.inputs {
		for i := range in.blocks {
			if info := &in.blocks[i]; in.shared[i] && w.wanted(info) {
				spans += info.Rows
				blocks = append(blocks, func() []mark { return marksOf(ctx, in, i) })
			}
		}
	}
	if spans <= w.maxKnown {
		return []window{all}, nil
	}
	var marks []mark
	for _, read := range blocks {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		w.step()
		marks = append(marks, read()...)
	}
	return divide(marks, w.maxKnown), nil
}

// marksOf returns the marks of a block. Damage is recorded when the block is read for its spans.
func marksOf(ctx context.Context, in *input, number int) []mark {
	info := in.blocks[number]
	b, err := in.Open(ctx, number)
	if err != nil {
		return []mark{{info.MinStart, info.Rows}}
	}
	defer b.Close()
	starts, err := b.Starts()
	if err != nil {
		return []mark{{info.MinStart, info.Rows}}
	}
	var marks []mark
	for part := range slices.Chunk(slices.Sorted(slices.Values(starts)), markSpans) {
		marks = append(marks, mark{part[0], len(part)})
	}
	return marks
}

// divide returns windows with at most about limit spans each. They begin at full hours where
// possible, so that most partitions are exported in one window.
func divide(marks []mark, limit int) (windows []window) {
	var from, hour uint64
	spans, inHour := 0, 0 // since from, since hour
	begin := func(at uint64, held int) {
		windows = append(windows, window{from, at - 1})
		from, spans = at, held
	}
	for _, m := range merged(marks) {
		if h := m.start - m.start%uint64(time.Hour); h > hour {
			hour, inHour = h, 0
		}
		if spans+m.spans > limit && spans > inHour {
			begin(hour, inHour)
		}
		if spans+m.spans > limit && spans > 0 {
			begin(m.start, 0)
		}
		spans, inHour = spans+m.spans, inHour+m.spans
	}
	return append(windows, window{from, math.MaxUint64})
}

// merged sorts marks and adds up those with the same start.
func merged(marks []mark) []mark {
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.start, b.start) })
	list := marks[:0]
	for _, m := range marks {
		if n := len(list); n > 0 && list[n-1].start == m.start {
			list[n-1].spans += m.spans
			continue
		}
		list = append(list, m)
	}
	return list
}
