package stats

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Series identifies spans that are counted together.
type Series struct {
	Tenant, Service string
	Operation       string // as returned by otlpdata.Span.Operation
	Kind            string // as returned by otlpdata.Span.KindName
	Error           bool   // status is error
	// Unsampled series count the further calls for which the sampled spans of the series with
	// Unsampled == false stand, with the starts and durations of these spans.
	Unsampled bool
}

// compare is called very often for many series. Most differ in the first names.
func (a *Series) compare(b *Series) int {
	if c := cmp.Compare(a.Tenant, b.Tenant); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Service, b.Service); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Operation, b.Operation); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), compareBool(a.Error, b.Error), compareBool(a.Unsampled, b.Unsampled))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// AppendSeries appends the encoded section of series. The Collector may still be used afterwards.
func (c *Collector) AppendSeries(dst []byte) []byte {
	order := c.sortedSeries()
	rank := ranks(order)
	cells := c.cells.sorted(func(key uint64) uint64 {
		id := key >> rangeBits & (1<<nameBits - 1)
		return key + (uint64(rank[id])-id)<<rangeBits
	})
	dst = binary.AppendUvarint(append(dst, version), c.dropped)
	dst = appendSeriesNames(dst, c.series, order)
	var w groupWriter
	var h tracestore.Histogram
	for len(cells) > 0 {
		name := cells[0].key >> rangeBits
		n := 0
		for h.Reset(); n < len(cells) && cells[n].key>>rangeBits == name; n++ {
			addCell(&h, int(cells[n].key&(1<<rangeBits-1)), &c.cells.slots[cells[n].slot].value)
		}
		cells = cells[n:]
		w.point(name>>nameBits, name&(1<<nameBits-1))
		w.bodies = appendHistogram(w.bodies, &h)
	}
	return w.append(dst)
}

func appendSeriesNames(dst []byte, series []Series, order []uint32) []byte {
	t := newTexts(func(yield func(string) bool) {
		for i := range series {
			if s := &series[i]; !yield(s.Tenant) || !yield(s.Service) || !yield(s.Operation) || !yield(s.Kind) {
				return
			}
		}
	})
	dst = binary.AppendUvarint(t.append(dst), uint64(len(series)))
	for _, id := range order {
		s := &series[id]
		kind := withFlag(withFlag(t.number[s.Kind], s.Unsampled), s.Error)
		dst = appendNumbers(dst, t.number[s.Tenant], t.number[s.Service], t.number[s.Operation], kind)
	}
	return dst
}

// withFlag appends a flag as the lowest bit of a number.
func withFlag(n uint64, flag bool) uint64 {
	n <<= 1
	if flag {
		n |= 1
	}
	return n
}

// SeriesStats is a decoded section of series. Immutable and safe for concurrent use.
type SeriesStats struct {
	// Series lists all series, sorted. The strings alias the section.
	Series []Series
	// Unsampled reports whether some series is unsampled. If not, each span stands for one call.
	Unsampled bool
	// Dropped is the number of spans that are not counted, or whose unsampled calls are not
	// counted, because a limit was reached. Exact counts then require reading the spans of the
	// segment.
	Dropped uint64
	groups  []group
	points  []pointOffset // of all groups, one after the other
}

// pointOffset locates a point in its group.
type pointOffset struct {
	series uint32
	left   uint32 // bytes from the histogram to the end of the group
}

// SeriesPoint holds the durations of a series in a minute.
type SeriesPoint struct {
	Minute    uint64
	Series    int // index into SeriesStats.Series
	Durations tracestore.Histogram
}

// DecodeSeries decodes a section of series, which it retains. Errors match ErrCorrupt.
func DecodeSeries(section []byte) (*SeriesStats, error) {
	const minNameSize, minPointSize = 4, 5
	r := reader{b: section}
	s := &SeriesStats{Dropped: r.head()}
	t := r.texts()
	s.Series = make([]Series, r.names(minNameSize))
	for i := range s.Series {
		x := &s.Series[i]
		x.Tenant, x.Service, x.Operation = r.text(t), r.text(t), r.text(t)
		kind := r.uvarint()
		x.Error, kind = kind&1 == 1, kind>>1
		x.Unsampled, kind = kind&1 == 1, kind>>1
		s.Unsampled = s.Unsampled || x.Unsampled
		if kind >= uint64(len(t)) {
			r.fail("undefined text")
			break
		}
		x.Kind = t[kind]
		if i > 0 && s.Series[i-1].compare(x) >= 0 {
			r.fail("series out of order")
		}
	}
	s.groups = r.groups(minPointSize)
	if len(section) > math.MaxUint32 {
		r.fail("section too long")
	}
	series := 0
	r.check(s.groups, func(r *reader, first bool) {
		series = r.nextName(series, first, len(s.Series))
		s.points = append(s.points, pointOffset{uint32(series), uint32(len(r.b))})
		r.histogram(nil)
	})
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// nextName reads the index of the name of a point, which must be greater than that of the preceding
// point.
func (r *reader) nextName(before int, first bool, names int) int {
	delta := r.below(uint64(max(names, 1)), "undefined name")
	if first {
		before = 0
	} else if delta == 0 {
		r.fail("points out of order")
	}
	if before += int(delta); before >= names {
		r.fail("undefined name")
		return 0
	}
	return before
}

// Memory returns the approximate size of s in bytes, without the section.
func (s *SeriesStats) Memory() int64 {
	return int64(len(s.Series))*int64(unsafe.Sizeof(Series{})) + int64(len(s.groups))*int64(unsafe.Sizeof(group{})) +
		int64(cap(s.points))*int64(unsafe.Sizeof(pointOffset{}))
}

// Minutes returns the first and last minute with spans; ok is false if there are none.
func (s *SeriesStats) Minutes() (first, last uint64, ok bool) { return minutes(s.groups) }

func minutes(g []group) (first, last uint64, ok bool) {
	if len(g) == 0 {
		return 0, 0, false
	}
	return g[0].minute, g[len(g)-1].minute, true
}

// Points returns the points of the minutes from first to last, both inclusive, ordered by minute
// and series. A point is valid until the next iteration.
func (s *SeriesStats) Points(first, last uint64) iter.Seq[*SeriesPoint] {
	return s.PointsOf(first, last, nil)
}

// PointsOf is like Points for the series whose index is true in selected; nil selects all.
func (s *SeriesStats) PointsOf(first, last uint64, selected []bool) iter.Seq[*SeriesPoint] {
	return func(yield func(*SeriesPoint) bool) {
		var p SeriesPoint
		for _, g := range inMinutes(s.groups, first, last) {
			p.Minute = g.minute
			for _, place := range s.points[g.first : g.first+g.points] {
				if selected != nil && !selected[place.series] {
					continue
				}
				p.Series = int(place.series)
				r := reader{b: g.body[len(g.body)-int(place.left):]}
				if r.histogram(&p.Durations); !yield(&p) {
					return
				}
			}
		}
	}
}

// sortedOrder returns the indexes of names in the order of compare.
func sortedOrder[N any](names []N, compare func(a, b *N) int) []uint32 {
	order := make([]uint32, len(names))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return compare(&names[a], &names[b]) })
	return order
}

// ranks returns the inverse of an order.
func ranks(order []uint32) []uint32 {
	rank := make([]uint32, len(order))
	for i, id := range order {
		rank[id] = uint32(i)
	}
	return rank
}
