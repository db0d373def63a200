package storequery

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// ExemplarPicker chooses spans that are spread over starts and durations. What it chooses depends on which spans it was shown, not on their
// order. Not for concurrent use.
//
// It keeps one span for each cell, a bucket of durations in a stretch of time. The stretches begin with a nanosecond, and double in length
// when there are too many cells; so at least half as many as were allowed are left, which is more than are asked for.
type ExemplarPicker struct {
	want, most int
	shift      int // a stretch is 2^shift nanoseconds long
	cells      map[exemplarCell]tracestore.Exemplar
}

type exemplarCell struct {
	bucket  int
	stretch uint64
}

func (a exemplarCell) compare(b exemplarCell) int {
	return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.stretch, b.stretch))
}

// NewExemplarPicker returns an ExemplarPicker that chooses at most want spans, and takes memory for a few times as many.
func NewExemplarPicker(want int) *ExemplarPicker {
	// One cell for each bucket is the least to which they can be joined.
	return &ExemplarPicker{want: want, most: max(2*want, 2*tracestore.Buckets), cells: make(map[exemplarCell]tracestore.Exemplar)}
}

// Wants reports whether a span of this start and duration and of these ids may be chosen: if not, it need not be offered.
func (p *ExemplarPicker) Wants(start, duration uint64, trace otlpdata.TraceID, span otlpdata.SpanID) bool {
	old, known := p.cells[p.cellOf(start, duration)]
	return !known || order(trace, span) <= order(old.TraceID, old.SpanID)
}

// Offer shows the picker a span. It keeps the texts of e, unless they are cut.
func (p *ExemplarPicker) Offer(e tracestore.Exemplar) {
	e.Service, e.Name = shortText(e.Service), shortText(e.Name)
	p.put(p.cellOf(e.Start, e.Duration), e)
	if len(p.cells) > overfull*p.most {
		p.join()
	}
}

// overfull is how many times as many cells there may be as in the end: to join them at each one that is too many would take longer than all
// else. Which stretches are left does not depend on when cells were joined.
const overfull = 2

// shortText returns a text that does not keep a long one in memory.
func shortText(s string) string {
	if len(s) <= MaxFacetText {
		return s
	}
	return strings.Clone(FacetText(s))
}

func (p *ExemplarPicker) cellOf(start, duration uint64) exemplarCell {
	return exemplarCell{tracestore.BucketOf(duration), start >> p.shift}
}

func (p *ExemplarPicker) put(at exemplarCell, e tracestore.Exemplar) {
	if old, known := p.cells[at]; !known || compareExemplars(e, old) < 0 {
		p.cells[at] = e
	}
}

// join doubles the stretches as often as it takes until there are few enough cells.
func (p *ExemplarPicker) join() {
	old, times := p.cells, p.doublings()
	p.shift += times
	p.cells = make(map[exemplarCell]tracestore.Exemplar, p.most)
	for at, e := range old {
		at.stretch >>= times
		p.put(at, e)
	}
}

// doublings returns how often stretches are to be doubled. Two cells of a bucket that follow each other are one after as many times as the
// numbers of their stretches have different bits, counted from the highest that differs; those between two others are so before these.
func (p *ExemplarPicker) doublings() int {
	cells := p.sorted()
	var joined [65]int // by how many doublings that takes
	for i := 1; i < len(cells); i++ {
		if a, b := cells[i-1], cells[i]; a.bucket == b.bucket {
			joined[bits.Len64(a.stretch^b.stretch)]++
		}
	}
	times := 0
	for left := len(cells); left > p.most; left -= joined[times] {
		times++ // one cell for each bucket is left in the end, which is few enough
	}
	return times
}

func (p *ExemplarPicker) sorted() []exemplarCell {
	return slices.SortedFunc(maps.Keys(p.cells), exemplarCell.compare)
}

// Answer returns the spans, the newest first. Their texts are copies.
func (p *ExemplarPicker) Answer() []tracestore.Exemplar {
	if len(p.cells) > p.most {
		p.join()
	}
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

// spread chooses some of sorted cells: as many of each bucket as of any other that has as many, and in each from all of its time.
func spread(cells []exemplarCell, want int) []exemplarCell {
	buckets := byBucket(cells)
	slices.SortStableFunc(buckets, func(a, b []exemplarCell) int { return cmp.Compare(len(a), len(b)) })
	var out []exemplarCell
	for i, bucket := range buckets { // what smaller ones do not need is left for the greater ones
		n := min((want-len(out))/(len(buckets)-i), len(bucket))
		const golden = 0.6180339887498949
		_, phase := math.Modf(float64(i) * golden) // where one of each bucket is chosen, they are not all from the middle
		for k := range n {
			out = append(out, bucket[int((float64(k)+phase)*float64(len(bucket))/float64(n))])
		}
	}
	return out
}

// byBucket divides sorted cells.
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

// compareExemplars orders by a hash of the ids, and then by all fields, so that the order never depends on the order of arrival.
func compareExemplars(a, b tracestore.Exemplar) int {
	if c := cmp.Compare(order(a.TraceID, a.SpanID), order(b.TraceID, b.SpanID)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Duration, b.Duration), cmp.Compare(a.Service, b.Service),
		cmp.Compare(a.Name, b.Name), slices.Compare(a.TraceID[:], b.TraceID[:]), slices.Compare(a.SpanID[:], b.SpanID[:]),
		cmp.Compare(one(a.Failed), one(b.Failed)))
}

// order makes of the ids of a span a number that looks random.
func order(trace otlpdata.TraceID, span otlpdata.SpanID) uint64 {
	const mix1, mix2 = 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	h := binary.LittleEndian.Uint64(trace[8:]) ^ binary.LittleEndian.Uint64(trace[:8])*mix1 ^ binary.LittleEndian.Uint64(span[:])*mix2
	h = (h ^ h>>30) * mix1
	h = (h ^ h>>27) * mix2
	return h ^ h>>31
}
