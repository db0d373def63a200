package find

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// extent is the time from the earliest start to the latest end of a part, or a longer one.
type extent struct{ start, end uint64 }

// maxGap is the maximum time in nanoseconds between two parts that count as parts of the same
// trace. Two of a million traces have the same hash, but seldom at the same time, and most traces
// have no gaps between their spans.
const maxGap = 1e9

// setFacts sets facts from the parts of a trace.
func (b *filterBuilder) setFacts(keys []uint64) {
	f := &b.facts
	f.roots = f.roots[:0]
	f.shortest, f.longest = 0, math.MaxUint64
	b.setRoots(keys)
	if len(keys) == 1 {
		if p, _ := b.part(keys[0]); p.Bounds != source.Unbounded {
			f.longest = p.Duration.End()
			if p.Bounds == source.Exact {
				f.shortest = p.Duration.Begin()
			}
		}
		return
	}
	// The trace starts between minStart and maxStart, and ends between minEnd and maxEnd.
	minStart, maxStart, minEnd, maxEnd := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(0), uint64(0)
	b.extents = b.extents[:0]
	for _, key := range keys {
		p, _ := b.part(key)
		if p.Bounds == source.Unbounded {
			f.shortest, f.roots = 0, f.roots[:0]
			return
		}
		earliest, latest := addUpTo(p.Base, p.Start.Begin()), addUpTo(p.Base, p.Start.End())
		end := addUpTo(latest, p.Duration.End())
		b.extents = append(b.extents, extent{earliest, end})
		minStart, maxEnd = min(minStart, earliest), max(maxEnd, end)
		if p.Bounds == source.Exact {
			maxStart, minEnd = min(maxStart, latest), max(minEnd, addUpTo(earliest, p.Duration.Begin()))
			f.shortest = max(f.shortest, p.Duration.Begin())
		}
	}
	f.longest = maxEnd - minStart
	if minEnd > maxStart {
		f.shortest = max(f.shortest, minEnd-maxStart)
	}
	if b.apart() { // maybe two traces: facts about both together say little about each
		f.shortest, f.roots = 0, f.roots[:0]
	}
}

// apart reports whether there is a gap between extents. It sorts them.
func (b *filterBuilder) apart() bool {
	slices.SortFunc(b.extents, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
	end := b.extents[0].end
	for _, e := range b.extents {
		if e.start > addUpTo(end, maxGap) {
			return true
		}
		end = max(end, e.end)
	}
	return false
}

// addUpTo returns the sum, or the maximum if it overflows.
func addUpTo(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

// setRoots sets the possible roots. The root of a trace is the earliest span without a parent, so
// it is the root of one of its parts.
func (b *filterBuilder) setRoots(keys []uint64) {
	f := &b.facts
	for _, key := range keys {
		p, src := b.part(key)
		if p.Root == 0 {
			f.roots = f.roots[:0]
			return
		}
		if shape, rootSpan, ok := p.Root.Shape(); ok && (rootSpan || len(keys) == 1) {
			f.roots = append(f.roots, rootAt{src, shape})
		}
	}
}
