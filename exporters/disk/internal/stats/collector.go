package stats

import (
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxNames is the maximum number of services, of series, and of edges in a section.
	maxNames = 1 << 22
	// maxOrphans is the maximum number of orphans in a section.
	maxOrphans = 1 << 19
)

const (
	nanosPerMinute = 60_000_000_000
	perCell        = tracestore.BucketsPerOctave / 2 // buckets of durations in a cell
	rangeBits      = 7                               // bits for a cell's range of durations in a key
	nameBits       = 28                              // bits for a series or edge in a key; a minute takes the other 29
)

// noID replaces an id if a limit was reached. Spans with it are counted as dropped.
const noID = 1<<32 - 1

// MinuteOf returns the minute of a time in nanoseconds since the Unix epoch.
func MinuteOf(start uint64) uint64 { return start / nanosPerMinute }

// Collector collects the statistics of a segment while its rows are written. Its memory is bounded;
// spans beyond the limits are counted as dropped. It is not safe for concurrent use.
type Collector struct {
	series     []Series
	seriesID   nameIndex
	sorted     []uint32 // ids of series, sorted; outdated if shorter than series
	seriesLost bool     // a series was refused because a limit was reached
	unsampled  []uint32 // by series: 1 + id of the unsampled series; 0, or missing: not known
	// Ids of the first series of each operation, except operations beyond tracestore.MaxOperations.
	operations nameIndex
	counts     map[service]int // number of operations; above tracestore.MaxOperations if there are more
	cells      table[cell]
	dropped    uint64 // spans without a cell, or without a cell for their unsampled calls

	services       []service
	serviceID      map[service]uint32
	edges          []edgeName
	edgeID         table[uint32] // by edgeName.key
	calls          table[callCell]
	callsDropped   uint64
	orphans        []orphan
	orphansDropped uint64
}

type service struct{ tenant, name string }

// cell counts the spans of a series in one minute and one range of durations, which is half of an
// octave. Its key consists of minute, series and range, so that keys sort as sections do.
type cell struct {
	sum    uint64
	counts [perCell]uint32
}

// callCell counts the calls of an edge in one minute and one range of durations. Its key has the
// edge in place of the series. Inner calls are in the first range, regardless of their durations.
type callCell struct {
	cell
	errors uint64
}

// edgeName is an edge between two services, given by their ids.
type edgeName struct {
	parent, child uint32
	kind          EdgeKind
}

func (e edgeName) key() uint64 {
	return uint64(e.parent)<<32 | uint64(e.child)<<kindBits | uint64(e.kind)
}

// orphan is a span whose parent is not in the segment.
type orphan struct {
	trace    otlpdata.TraceID
	parent   otlpdata.SpanID
	duration uint64
	minute   uint32
	service  uint32
	kind     EdgeKind
	failed   bool
}

// NewCollector returns an empty Collector.
func NewCollector() *Collector {
	return &Collector{counts: map[service]int{}, serviceID: map[service]uint32{},
		cells: table[cell]{seed: rand.Uint64()}, edgeID: table[uint32]{seed: rand.Uint64()}, calls: table[callCell]{seed: rand.Uint64()}}
}

// Reserve announces the approximate number of series. Call it before SeriesID.
func (c *Collector) Reserve(series int) {
	series = min(series, maxNames)
	c.series = slices.Grow(c.series, series)
	c.seriesID.reserve(series)
	c.operations.reserve(series)
}

// SeriesID returns the id of a series for AddSpan. It is slow: call it once per shape. The
// Collector retains the strings.
func (c *Collector) SeriesID(s Series) uint32 {
	if id, ok := c.findSeries(&s); ok {
		return id
	}
	known, of := c.hasOperation(&s), service{s.Tenant, s.Service}
	fresh := !known && c.counts[of] < tracestore.MaxOperations
	if !known && !fresh {
		c.counts[of] = tracestore.MaxOperations + 1
		s.Operation = tracestore.OtherOperation
		if id, ok := c.findSeries(&s); ok {
			return id
		}
	}
	if len(c.series) >= maxNames {
		c.seriesLost = true
		return noID
	}
	id := uint32(len(c.series))
	c.series = append(c.series, s)
	c.seriesID.add(id, c.seriesHash)
	if fresh {
		c.counts[of]++
		c.operations.add(id, c.operationHash)
	}
	return id
}

func (c *Collector) findSeries(s *Series) (id uint32, ok bool) {
	return c.seriesID.find(maphash.Comparable(nameSeed, *s), func(id uint32) bool { return c.series[id] == *s })
}

// hasOperation reports whether the operation of a series has series of its own.
func (c *Collector) hasOperation(s *Series) bool {
	_, ok := c.operations.find(s.operationHash(), func(id uint32) bool {
		o := &c.series[id]
		return o.Operation == s.Operation && o.Service == s.Service && o.Tenant == s.Tenant
	})
	return ok
}

func (c *Collector) seriesHash(id uint32) uint64    { return maphash.Comparable(nameSeed, c.series[id]) }
func (c *Collector) operationHash(id uint32) uint64 { return c.series[id].operationHash() }

func (a *Series) operationHash() uint64 {
	return maphash.Comparable(nameSeed, [3]string{a.Tenant, a.Service, a.Operation})
}

// sortedSeries returns the ids of all series in the order of the series. The slice must not be
// modified.
func (c *Collector) sortedSeries() []uint32 {
	if len(c.sorted) < len(c.series) {
		c.sorted = sortedOrder(c.series, (*Series).compare)
	}
	return c.sorted
}

// AddSpan counts a span of a series. start is in nanoseconds since the Unix epoch, duration in
// nanoseconds.
func (c *Collector) AddSpan(series uint32, start, duration uint64) {
	if cell, bucket := c.cellOf(series, start, duration); cell != nil {
		cell.counts[bucket%perCell]++
		cell.sum = saturatingAdd(cell.sum, duration)
	}
}

// AddUnsampled counts n > 0 further calls that are represented by a span that AddSpan has counted.
// They go to the unsampled series. A bucket of a minute holds up to 2^32 - 1 of them.
func (c *Collector) AddUnsampled(series uint32, start, duration, n uint64) {
	cell, bucket := c.cellOf(c.unsampledOf(series), start, duration)
	if cell == nil {
		return
	}
	count := &cell.counts[bucket%perCell]
	if n > math.MaxUint32-uint64(*count) {
		c.dropped++
		return
	}
	*count += uint32(n)
	cell.sum = saturatingAdd(cell.sum, saturatingMul(duration, n))
}

// cellOf returns the cell and bucket of a span. If a limit was reached, it returns nil and counts
// the span as dropped.
func (c *Collector) cellOf(series uint32, start, duration uint64) (_ *cell, bucket uint64) {
	if series == noID {
		c.dropped++
		return nil, 0
	}
	bucket = uint64(tracestore.BucketOf(duration))
	cell := c.cells.at(start/nanosPerMinute<<(nameBits+rangeBits) | uint64(series)<<rangeBits | bucket/perCell)
	if cell == nil {
		c.dropped++
	}
	return cell, bucket
}

// unsampledOf returns the id of the unsampled series of a series.
func (c *Collector) unsampledOf(series uint32) uint32 {
	if series == noID {
		return noID
	}
	if int(series) >= len(c.unsampled) {
		c.unsampled = append(c.unsampled, make([]uint32, len(c.series)-len(c.unsampled))...)
	}
	known := &c.unsampled[series]
	if *known == 0 {
		s := c.series[series]
		s.Unsampled = true
		id := c.SeriesID(s)
		if id == noID {
			return noID
		}
		*known = id + 1
	}
	return *known - 1
}

// Cells returns the number of cells of series. A cell takes about 130 bytes.
func (c *Collector) Cells() int { return c.cells.used }

// Dropped returns the number of spans that were not counted in series, or whose unsampled calls
// were not counted, because a limit was reached.
func (c *Collector) Dropped() uint64 { return c.dropped }

// EachPoint calls visit with the durations of the minutes from first to last, both inclusive, for
// each series whose id is true in selected. It calls visit one or more times for each series and
// minute, in any order. The histogram is valid during the call.
func (c *Collector) EachPoint(first, last uint64, selected []bool, visit func(series int, minute uint64, durations *tracestore.Histogram)) {
	var h tracestore.Histogram
	for i := range c.cells.slots {
		slot := &c.cells.slots[i]
		if slot.key == 0 {
			continue
		}
		key := slot.key - 1
		series, minute := int(key>>rangeBits&(1<<nameBits-1)), key>>(nameBits+rangeBits)
		if !selected[series] || minute < first || minute > last {
			continue
		}
		h.Reset()
		addCell(&h, int(key&(1<<rangeBits-1)), &slot.value)
		visit(series, minute, &h)
	}
}

// EachOperation calls visit with a series of each operation, by tenant, service, name and kind.
// Operations with errors or unsampled calls are visited several times in a row. others is true if
// the series is for the operations beyond tracestore.MaxOperations, and possibly for an operation
// with the same name.
func (c *Collector) EachOperation(visit func(s *Series, others bool)) {
	for _, id := range c.sortedSeries() {
		s := &c.series[id]
		visit(s, s.Operation == tracestore.OtherOperation && c.counts[service{s.Tenant, s.Service}] > tracestore.MaxOperations)
	}
}

// HasAllSeries reports whether each span was counted in a series, or would have been if there was a
// cell for its minute.
func (c *Collector) HasAllSeries() bool { return !c.seriesLost }

// AllSeries returns all series by id. The slice must not be modified.
func (c *Collector) AllSeries() []Series { return c.series }

// ServiceID returns the id of a service of a tenant for AddEdge and AddOrphan. The Collector
// retains the strings.
func (c *Collector) ServiceID(tenant, name string) uint32 {
	s := service{tenant, name}
	if id, ok := c.serviceID[s]; ok {
		return id
	}
	if len(c.services) >= maxNames {
		return noID
	}
	id := uint32(len(c.services))
	c.services = append(c.services, s)
	c.serviceID[s] = id
	return id
}

// AddEdge counts a span with its parent as one call of the child's service in the minute of its
// start. Both services belong to the same tenant, and may be the same.
func (c *Collector) AddEdge(parent, child uint32, kind EdgeKind, start, duration uint64, failed bool) {
	bucket := uint64(0)
	if kind&Inner == 0 {
		bucket = uint64(tracestore.BucketOf(duration))
	}
	calls := c.callsOf(edgeName{parent, child, kind}, start/nanosPerMinute, bucket/perCell)
	if calls == nil {
		c.callsDropped++
		return
	}
	calls.counts[bucket%perCell]++
	if failed {
		calls.errors++
	}
	calls.sum = saturatingAdd(calls.sum, duration)
}

// callsOf returns the cell of an edge, a minute and a range of durations, or nil if a limit was
// reached.
func (c *Collector) callsOf(e edgeName, minute, durations uint64) *callCell {
	if e.parent == noID || e.child == noID {
		return nil
	}
	id := c.edgeID.at(e.key())
	if id == nil {
		return nil
	}
	if *id == 0 {
		c.edges = append(c.edges, e)
		*id = uint32(len(c.edges))
	}
	return c.calls.at(minute<<(nameBits+rangeBits) | uint64(*id-1)<<rangeBits | durations)
}

// AddOrphan adds a span whose parent is not in the segment. kind is determined from the span alone.
func (c *Collector) AddOrphan(trace otlpdata.TraceID, parent otlpdata.SpanID, service uint32, kind EdgeKind,
	start, duration uint64, failed bool,
) {
	if service == noID || len(c.orphans) >= maxOrphans {
		c.orphansDropped++
		return
	}
	c.orphans = append(c.orphans, orphan{trace, parent, duration, uint32(start / nanosPerMinute), service, kind, failed})
}

// saturatingAdd returns a + b, or the maximum if the sum overflows.
func saturatingAdd(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}

// saturatingMul returns a * b, or the maximum if the product overflows.
func saturatingMul(a, b uint64) uint64 {
	if hi, product := bits.Mul64(a, b); hi == 0 {
		return product
	}
	return math.MaxUint64
}
