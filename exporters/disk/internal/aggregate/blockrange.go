package aggregate

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Counts of rangeBlocks blocks of a segment are kept together, and at both ends of a window, counts
// of shorter ranges: each has 1/rangeFactor of the blocks of a longer one, at least
// 1/shortRanges of rangeBlocks. The last range of a segment may have fewer. In a sample with a
// blockStep, a range has only the sampled ones of these blocks. If the window covers a segment, the
// sum of its ranges is kept too. Adding this sum does not require the vocabulary of the segment.
const (
	rangeBlocks = 128
	rangeFactor = 4
	shortRanges = 16
)

// keptValues is the number of values that are kept of a field that has too many to count all; see
// storequery.FacetCounter.Append.
const keptValues = 100

// longRangesFirst moves long ranges to the beginning of a sample. So they show which fields have
// ids, and the many values of these fields are not counted in short ranges.
func (a *aggregation) longRangesFirst(f *blockSample) error {
	var long, rest []sampledBlock
	for at := 0; at < len(f.blocks); {
		end, err := a.segmentEnd(f, at)
		isLong := end > at
		if err == nil && !isLong {
			end, err = a.rangeEnd(f, at)
			isLong = end > at && f.blocks[end-1].block-f.blocks[at].block >= a.rangeBlocks/rangeFactor
		}
		if err != nil {
			return err
		}
		if end = max(end, at+1); isLong {
			long = append(long, f.blocks[at:end]...)
		} else {
			rest = append(rest, f.blocks[at:end]...)
		}
		at = end
	}
	f.blocks = append(long, rest...)
	return nil
}

// rangeEnd returns the end of the longest range of blocks that begins at a block of a sample. It
// returns at if no range begins there that is within both the sample and the window.
func (a *aggregation) rangeEnd(f *blockSample, at int) (int, error) {
	for size := a.rangeBlocks; size >= max(a.rangeBlocks/shortRanges, 1); size /= rangeFactor {
		if end, err := a.alignedEnd(f, at, size); err != nil || end > at {
			return end, err
		}
	}
	return at, nil
}

// segmentEnd is like rangeEnd for a whole segment.
func (a *aggregation) segmentEnd(f *blockSample, at int) (int, error) {
	return a.alignedEnd(f, at, math.MaxInt)
}

// alignedEnd is like rangeEnd for ranges of a size.
func (a *aggregation) alignedEnd(f *blockSample, at, size int) (int, error) {
	src, first := f.blocks[at].src, f.blocks[at].block
	if _, ok := a.session.Sources[src].(source.Statistics); !ok || a.counts == nil || first%size >= f.blockStep {
		return at, nil
	}
	all, err := a.session.Blocks(src)
	if err != nil {
		return at, err
	}
	past := min(first-first%size+min(size, len(all)), len(all))
	if n := (past - first + f.blockStep - 1) / f.blockStep; n <= len(f.blocks)-at && f.coversRange(f.blocks[at:at+n]) {
		return at + n, nil
	}
	return at, nil
}

// coversRange reports whether blocks follow each other and lie within the window.
func (f *blockSample) coversRange(blocks []sampledBlock) bool {
	first, last := &blocks[0], &blocks[len(blocks)-1]
	return last.src == first.src && last.block-first.block == (len(blocks)-1)*f.blockStep &&
		!slices.ContainsFunc(blocks, func(b sampledBlock) bool { return !f.windows[b.src].Covers(b.info) })
}

// countSegment is like countRange for a whole segment.
func (a *aggregation) countSegment(ctx context.Context, f *blockSample, from, end int, to targets) error {
	src := f.blocks[from].src
	key := rangeKey{a.session.Sources[src], wholeSegment, end - from, f.blockStep, a.counts.question}
	if counts := a.counts.find(key); counts != nil {
		a.rowsRead += countRows(f.blocks[from:end])
		a.add(counts, to)
		return nil
	}
	one := a.fork(ctx, a.narrowed(f.blocks[from:end]), to)
	defer one.session.Memory.Release()
	one.idFields = a.idFields
	if last := f.blocks[end-1].block; last < a.rangeBlocks {
		one.counts = nil // the segment is a single range
	}
	if to.facets != nil {
		one.targets.facets.ids = a.idFields
	}
	damaged := a.session.DamagedParts()
	err := one.scanBlocks(ctx, f, from, end, one.targets)
	a.scanned += one.scanned
	a.rowsRead += one.rowsRead
	counts, complete := one.counted()
	a.add(counts, to)
	if err == nil && ctx.Err() == nil && complete && a.session.DamagedParts() == damaged {
		a.counts.keep(key, counts)
	}
	return err
}

// narrowed returns the query with the time of blocks as its window, so that groups have parts for
// these blocks only. All spans of the blocks start within the window of the query.
func (a *aggregation) narrowed(blocks []sampledBlock) tracestore.Query {
	oldest, newest := uint64(math.MaxUint64), uint64(0)
	for i := range blocks {
		oldest, newest = min(oldest, blocks[i].info.MinStart), max(newest, blocks[i].info.MaxStart)
	}
	q := a.query
	q.From, q.To = storequery.TimeOf(oldest), storequery.TimeOf(newest)
	return q
}

// countRange adds the counts of a range. It takes them from the cache, or counts the range and
// caches the counts.
func (s *rowScan) countRange(ctx context.Context, from, end int) error {
	a := s.agg
	key := rangeKey{a.session.Sources[s.src], s.sample.blocks[from].block, end - from, s.sample.blockStep, a.counts.question}
	counts := a.counts.find(key)
	if counts != nil {
		a.rowsRead += countRows(s.sample.blocks[from:end])
		s.add(counts)
		return nil
	}
	one := a.fork(ctx, a.narrowed(s.sample.blocks[from:end]), s.to)
	defer one.session.Memory.Release()
	one.plans = a.plans
	if s.to.facets != nil {
		one.targets.facets.ids = a.idFields
	}
	scan, err := one.rowScan(s.sample, s.src, one.targets)
	if err != nil {
		return err
	}
	damaged := a.session.DamagedParts()
	for at := from; at < end && err == nil; at++ {
		err = scan.spreadBlock(ctx, at)
	}
	a.scanned += one.scanned
	a.rowsRead += one.rowsRead
	counts, complete := scan.counted()
	s.add(counts)
	if err == nil && ctx.Err() == nil && complete && a.session.DamagedParts() == damaged {
		a.counts.keep(key, counts)
	}
	return err
}

// counted returns what a scan has counted. complete is false if memory ran out.
func (s *rowScan) counted() (c *rangeCounts, complete bool) {
	var codes []byte
	if s.counts != nil {
		codes = s.counts.append(nil)
	}
	if s.groups != nil {
		s.groups.finish()
	}
	c, complete = s.agg.counted()
	c.facets.codes = codes
	return c, complete
}

// counted returns what a finished scan has counted. complete is false if memory ran out.
func (a *aggregation) counted() (c *rangeCounts, complete bool) {
	c, complete = new(rangeCounts), true
	if f := a.targets.facets; f != nil {
		f.finishNumbers()
		c.facets.total = f.total
		c.facets.values = string(f.counter.Append(nil, max(keptValues, a.want.Facets.Values)))
		for _, field := range f.fields {
			if field.ids && !f.ids[field.of] {
				c.ids = append(c.ids, field.of)
			}
		}
		complete = !f.counter.OutOfMemory()
	}
	if g := a.targets.groups; g != nil {
		c.groups = g.counts()
		complete = complete && !g.counter.OutOfMemory()
	}
	if a.targets.rest != nil {
		c.rest = *a.targets.rest
		c.picks = a.targets.picks.Retained()
	}
	return c, complete
}

// add adds the counts of a range.
func (s *rowScan) add(c *rangeCounts) {
	if s.counts != nil {
		s.counts.add(c.facets.codes)
	}
	s.agg.add(c, s.to)
}

// add adds the counts of a range, except those by code.
func (a *aggregation) add(c *rangeCounts, to targets) {
	if f := to.facets; f != nil {
		f.total.merge(&c.facets.total)
		f.counter.Add(c.facets.values)
		for _, of := range c.ids {
			a.idFields[of] = true
			if field := f.field(of); field != nil {
				field.ids = true
			}
		}
	}
	if g := to.groups; g != nil {
		g.add(&c.groups)
	}
	if to.rest != nil {
		to.rest.merge(&c.rest)
		for _, e := range c.picks {
			to.picks.Offer(e)
		}
	}
}

// append appends the counts by code to dst, for add.
func (f *facetSource) append(dst []byte) []byte {
	shapes := make([]counts, len(f.shapes))
	for _, id := range f.used {
		shapes[id] = f.shapes[id].spans
	}
	dst = appendCounts(appendCounts(dst, shapes), f.resources)
	for id := range f.columns {
		if words := f.columns[id].words; words != nil {
			dst = appendCounts(binary.AppendUvarint(dst, uint64(id)), words)
		}
	}
	return dst
}

// add adds counts that append has appended.
func (f *facetSource) add(b []byte) {
	b = eachCount(b, func(id uint64, n counts) { f.shape(uint32(id)).spans.add(n) })
	b = eachCount(b, func(id uint64, n counts) { f.resources[id].add(n) })
	for len(b) > 0 {
		id, size := binary.Uvarint(b)
		f.column(uint32(id))
		words := f.words(uint32(id))
		b = eachCount(b[size:], func(word uint64, n counts) { words[word].add(n) })
	}
}

// appendCounts appends the number of counts that are not zero, and for each its distance from the
// preceding one, its spans, and the selected ones among them.
func appendCounts(dst []byte, list []counts) []byte {
	used := 0
	for _, n := range list {
		if n.all > 0 {
			used++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(used))
	last := 0
	for i, n := range list {
		if n.all > 0 {
			dst = binary.AppendUvarint(dst, uint64(i-last))
			dst = binary.AppendUvarint(dst, n.all)
			dst = binary.AppendUvarint(dst, n.selected)
			last = i
		}
	}
	return dst
}

// eachCount calls add for each count that appendCounts has appended, and returns the rest of b.
func eachCount(b []byte, add func(i uint64, n counts)) []byte {
	next := func() uint64 {
		v, size := binary.Uvarint(b)
		b = b[size:]
		return v
	}
	i := uint64(0)
	for range next() {
		i += next()
		add(i, counts{next(), next()})
	}
	return b
}
