package stats

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// AppendSeries appends the section of series. The Collector may go on.
func (c *Collector) AppendSeries(dst []byte) []byte {
	order := sortedOrder(c.series, Series.compare)
	rank := ranks(order)
	cells := c.cells.sorted(func(key uint64) uint64 {
		id := key >> octaveBits & (1<<nameBits - 1)
		return key + (uint64(rank[id])-id)<<octaveBits
	})
	of := byte(version)
	if slices.ContainsFunc(c.series, func(s Series) bool { return s.Extra }) {
		of = versionExtra
	}
	dst = binary.AppendUvarint(append(dst, of), c.dropped)
	dst = appendSeriesNames(dst, of, c.series, order)
	var w groupWriter
	var h tracestore.Histogram
	for len(cells) > 0 {
		name := cells[0].key >> octaveBits
		n := 0
		for h.Reset(); n < len(cells) && cells[n].key>>octaveBits == name; n++ {
			addCell(&h, int(cells[n].key&(1<<octaveBits-1)), &c.cells.slots[cells[n].slot].value)
		}
		cells = cells[n:]
		w.point(name>>nameBits, name&(1<<nameBits-1))
		w.bodies = appendHistogram(w.bodies, &h)
	}
	return w.append(dst)
}

func appendSeriesNames(dst []byte, of byte, series []Series, order []uint32) []byte {
	var all []string
	for _, s := range series {
		all = append(all, s.Tenant, s.Service, s.Operation, s.Kind)
	}
	t := newTexts(all)
	dst = binary.AppendUvarint(t.append(dst), uint64(len(series)))
	for _, id := range order {
		s := &series[id]
		kind := t.number[s.Kind]
		if of >= versionExtra {
			kind = withFlag(kind, s.Extra)
		}
		kind = withFlag(kind, s.Error)
		dst = appendNumbers(dst, t.number[s.Tenant], t.number[s.Service], t.number[s.Operation], kind)
	}
	return dst
}

// withFlag puts a flag behind a number.
func withFlag(n uint64, flag bool) uint64 {
	n <<= 1
	if flag {
		n |= 1
	}
	return n
}

// SeriesStats is a section of series that was read. Safe for concurrent use.
type SeriesStats struct {
	// Series are all series, sorted. They alias the section.
	Series []Series
	// Extra: some of them are. If none is, each span stands for itself, or the section is from before there were any.
	Extra bool
	// Dropped is how many spans are not counted, or not all that they stand for, because there was no room. Who needs them has to look at
	// the spans of the segment.
	Dropped uint64
	groups  []group
	places  []pointPlace // of all points, group by group
}

// pointPlace is where a point is.
type pointPlace struct {
	series uint32
	left   uint32 // bytes from its histogram to the end of the group
}

// SeriesPoint is what is known of a series in a minute.
type SeriesPoint struct {
	Minute    uint64
	Series    int // index of SeriesStats.Series
	Durations tracestore.Histogram
}

// DecodeSeries reads a section of series, and keeps it. An error matches ErrCorrupt.
func DecodeSeries(section []byte) (*SeriesStats, error) {
	const leastName, leastPoint = 4, 5
	r := reader{b: section}
	of, dropped := r.head(versionExtra)
	s := &SeriesStats{Dropped: dropped}
	t := r.texts()
	s.Series = make([]Series, r.names(leastName))
	for i := range s.Series {
		x := &s.Series[i]
		x.Tenant, x.Service, x.Operation = r.text(t), r.text(t), r.text(t)
		kind := r.uvarint()
		x.Error, kind = kind&1 == 1, kind>>1
		if of >= versionExtra {
			x.Extra, kind = kind&1 == 1, kind>>1
			s.Extra = s.Extra || x.Extra
		}
		if kind >= uint64(len(t)) {
			r.fail("there is no such text")
			break
		}
		x.Kind = t[kind]
		if i > 0 && s.Series[i-1].compare(*x) >= 0 {
			r.fail("series are not in order")
		}
	}
	s.groups = r.groups(leastPoint)
	if len(section) > math.MaxUint32 {
		r.fail("it is too long")
	}
	series := 0
	r.check(s.groups, func(r *reader, first bool) {
		series = r.nextName(series, first, len(s.Series))
		s.places = append(s.places, pointPlace{uint32(series), uint32(len(r.b))})
		r.histogram(nil)
	})
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// nextName reads the number of a point's name, which is greater than the one before.
func (r *reader) nextName(before int, first bool, names int) int {
	delta := r.below(uint64(max(names, 1)), "there is no such name")
	if first {
		before = 0
	} else if delta == 0 {
		r.fail("points are not in order")
	}
	if before += int(delta); before >= names {
		r.fail("there is no such name")
		return 0
	}
	return before
}

// Memory estimates the bytes that s takes beside the section.
func (s *SeriesStats) Memory() int64 {
	return int64(len(s.Series))*int64(unsafe.Sizeof(Series{})) + int64(len(s.groups))*int64(unsafe.Sizeof(group{})) +
		int64(cap(s.places))*int64(unsafe.Sizeof(pointPlace{}))
}

// Minutes returns the first and the last minute that have spans; ok is false where there are none.
func (s *SeriesStats) Minutes() (first, last uint64, ok bool) { return minutes(s.groups) }

func minutes(g []group) (first, last uint64, ok bool) {
	if len(g) == 0 {
		return 0, 0, false
	}
	return g[0].minute, g[len(g)-1].minute, true
}

// Points returns what is known of the minutes from first to last, both included, by minute and series. A point is valid until the next.
func (s *SeriesStats) Points(first, last uint64) iter.Seq[*SeriesPoint] {
	return s.PointsOf(first, last, nil)
}

// PointsOf is Points for some series: those whose index has true in wanted; nil: all.
func (s *SeriesStats) PointsOf(first, last uint64, wanted []bool) iter.Seq[*SeriesPoint] {
	return func(yield func(*SeriesPoint) bool) {
		var p SeriesPoint
		for _, g := range within(s.groups, first, last) {
			p.Minute = g.minute
			for _, place := range s.places[g.first : g.first+g.points] {
				if wanted != nil && !wanted[place.series] {
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
func sortedOrder[N any](names []N, compare func(a, b N) int) []uint32 {
	order := make([]uint32, len(names))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return compare(names[a], names[b]) })
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
