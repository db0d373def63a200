package storequery

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unique"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// ExemplarPicker picks spans that are spread over start times and durations. The result depends on
// the set of offered spans, not on their order. Not safe for concurrent use.
//
// It retains one span for each cell. A cell is a duration bucket in an interval of time. Intervals
// are initially one nanosecond long, and double in length when there are too many cells. At least
// half of the maximum number of cells remain, which is enough for the result.
type ExemplarPicker struct {
	want, maxCells int
	shift          int // an interval is 2^shift nanoseconds long
	cells          map[exemplarCell]tracestore.Exemplar
}

type exemplarCell struct {
	bucket   int
	interval uint64
}

func (a exemplarCell) compare(b exemplarCell) int {
	return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.interval, b.interval))
}

// NewExemplarPicker returns an ExemplarPicker that picks at most want spans. It uses memory for a
// few times this number.
func NewExemplarPicker(want int) *ExemplarPicker {
	// Merging cannot reduce the number of cells below one for each bucket.
	maxCells := max(2*want, 2*tracestore.HeatBuckets)
	return &ExemplarPicker{want: want, maxCells: maxCells, cells: make(map[exemplarCell]tracestore.Exemplar)}
}

// Wants reports whether a span with this start, duration and ids may be picked. If not, the caller
// need not offer it.
func (p *ExemplarPicker) Wants(start, duration uint64, trace otlpdata.TraceID, span otlpdata.SpanID) bool {
	old, known := p.cells[p.cellOf(start, duration)]
	return !known || hashIDs(trace, span) <= hashIDs(old.TraceID, old.SpanID)
}

// Offer offers a span. It may retain the strings of e.
func (p *ExemplarPicker) Offer(e tracestore.Exemplar) {
	e.Service, e.Name = shortText(e.Service), shortText(e.Name)
	p.put(p.cellOf(e.Start, e.Duration), e)
	if len(p.cells) > overshoot*p.maxCells {
		p.merge()
	}
}

// overshoot is the factor by which the number of cells may temporarily exceed maxCells, because
// merging is expensive. The final intervals do not depend on when cells were merged.
const overshoot = 2

// shortText is like FacetText, but the result does not keep a long text in memory.
func shortText(s string) string {
	if len(s) <= MaxFacetText {
		return s
	}
	return strings.Clone(FacetText(s))
}

func (p *ExemplarPicker) cellOf(start, duration uint64) exemplarCell {
	return exemplarCell{tracestore.HeatBucketOf(duration), start >> p.shift}
}

// Merge offers the spans of another picker for the same number of spans.
func (p *ExemplarPicker) Merge(o *ExemplarPicker) {
	p.double(max(o.shift-p.shift, 0)) // then each cell of o lies in one of p
	for _, e := range o.cells {
		p.Offer(e)
	}
}

func (p *ExemplarPicker) put(at exemplarCell, e tracestore.Exemplar) {
	if old, known := p.cells[at]; !known || compareExemplars(e, old) < 0 {
		p.cells[at] = e
	}
}

// merge doubles the intervals until there are at most maxCells cells.
func (p *ExemplarPicker) merge() { p.double(p.doublings()) }

// double doubles the intervals a number of times.
func (p *ExemplarPicker) double(times int) {
	old := p.cells
	p.shift += times
	p.cells = make(map[exemplarCell]tracestore.Exemplar, p.maxCells)
	for at, e := range old {
		at.interval >>= times
		p.put(at, e)
	}
}

// doublings returns how often the intervals must double. Two adjacent cells of a bucket merge when
// the intervals have doubled as often as the position of the highest bit in which the numbers of
// their intervals differ. Each merge reduces the number of cells by one.
func (p *ExemplarPicker) doublings() int {
	cells := p.sorted()
	var merged [65]int // pairs of adjacent cells, by the doublings after which they merge
	for i := 1; i < len(cells); i++ {
		if a, b := cells[i-1], cells[i]; a.bucket == b.bucket {
			merged[bits.Len64(a.interval^b.interval)]++
		}
	}
	times := 0
	for left := len(cells); left > p.maxCells; left -= merged[times] {
		times++ // terminates: in the end one cell for each bucket is left
	}
	return times
}

func (p *ExemplarPicker) sorted() []exemplarCell {
	return slices.SortedFunc(maps.Keys(p.cells), exemplarCell.compare)
}

// Retained returns the spans that the picker retains, in any order. Equal strings share memory and
// are copies. Offering these spans to another picker for the same number of spans is like merging.
func (p *ExemplarPicker) Retained() []tracestore.Exemplar {
	p.limit()
	out := make([]tracestore.Exemplar, 0, len(p.cells))
	for _, e := range p.cells {
		e.Service, e.Name = unique.Make(e.Service).Value(), unique.Make(e.Name).Value()
		out = append(out, e)
	}
	return out
}

// limit merges cells if there are more than maxCells.
func (p *ExemplarPicker) limit() {
	if len(p.cells) > p.maxCells {
		p.merge()
	}
}

// Answer returns the picked spans, newest first. Their strings are copies.
func (p *ExemplarPicker) Answer() []tracestore.Exemplar {
	p.limit()
	var out []tracestore.Exemplar
	for _, at := range spread(p.sorted(), p.want) {
		e := p.cells[at]
		e.Service, e.Name = strings.Clone(e.Service), strings.Clone(e.Name)
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b tracestore.Exemplar) int {
		return cmp.Or(cmp.Compare(b.Start, a.Start), compareExemplars(a, b))
	})
	return out
}

// spread picks want of the sorted cells: the same number from each bucket, if it has enough, and
// spread over the time of the bucket.
func spread(cells []exemplarCell, want int) []exemplarCell {
	buckets := byBucket(cells)
	slices.SortStableFunc(buckets, func(a, b []exemplarCell) int { return cmp.Compare(len(a), len(b)) })
	var out []exemplarCell
	for i, bucket := range buckets { // small buckets come first: large ones get what small ones do not use
		n := min((want-len(out))/(len(buckets)-i), len(bucket))
		const golden = 0.6180339887498949
		_, phase := math.Modf(float64(i) * golden) // if each bucket gets one cell, these differ in time
		for k := range n {
			out = append(out, bucket[int((float64(k)+phase)*float64(len(bucket))/float64(n))])
		}
	}
	return out
}

// byBucket splits sorted cells by bucket.
func byBucket(cells []exemplarCell) (out [][]exemplarCell) {
	from := 0
	for i := range cells {
		if i+1 == len(cells) || cells[i+1].bucket != cells[i].bucket {
			out = append(out, cells[from:i+1])
			from = i + 1
		}
	}
	return out
}

// compareExemplars orders by a hash of the ids, and then by all fields, so that it does not depend
// on the order of arrival.
func compareExemplars(a, b tracestore.Exemplar) int {
	if c := cmp.Compare(hashIDs(a.TraceID, a.SpanID), hashIDs(b.TraceID, b.SpanID)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Duration, b.Duration), cmp.Compare(a.Service, b.Service),
		cmp.Compare(a.Name, b.Name), slices.Compare(a.TraceID[:], b.TraceID[:]), slices.Compare(a.SpanID[:], b.SpanID[:]),
		cmp.Compare(one(a.Failed), one(b.Failed)))
}

// hashIDs returns a hash of the ids of a span.
func hashIDs(trace otlpdata.TraceID, span otlpdata.SpanID) uint64 {
	const mix1, mix2 = 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	h := binary.LittleEndian.Uint64(trace[8:]) ^ binary.LittleEndian.Uint64(trace[:8])*mix1 ^ binary.LittleEndian.Uint64(span[:])*mix2
	h = (h ^ h>>30) * mix1
	h = (h ^ h>>27) * mix2
	return h ^ h>>31
}
