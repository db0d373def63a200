package stats

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxNames bounds services, series and edges of a section, each.
	maxNames = 1 << 22
	// maxOrphans bounds the orphans of a section.
	maxOrphans = 1 << 19
)

const (
	nanosPerMinute = 60_000_000_000
	octaveBits     = 6
	perOctave      = tracestore.BucketsPerOctave
	nameBits       = 29 // of a series or an edge; a minute takes the other 29
)

// none is the number of what has no room; its spans are counted as dropped.
const none = 1<<32 - 1

// MinuteOf returns the minute of a start in nanoseconds since the Unix epoch.
func MinuteOf(start uint64) uint64 { return start / nanosPerMinute }

// Series says which spans are counted together.
type Series struct {
	Tenant, Service string
	Operation       string // as otlpdata.Span.Operation has it
	Kind            string // as otlpdata.Span.KindName has it
	Error           bool   // the status is an error
	// Extra: not the spans of the series that is the same but for this, but how many more calls they stand for, because others were not
	// sampled, with their starts and durations.
	Extra bool
}

func (a Series) compare(b Series) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(a.Kind, b.Kind), compareBool(a.Error, b.Error), compareBool(a.Extra, b.Extra))
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

// EdgeKind says what kind of dependency an edge is. The numbers are part of the format.
type EdgeKind uint8

// The kinds of edges.
const (
	Call      EdgeKind = iota
	Messaging          // the parent is a producer or the child a consumer
)

// EdgeKindOf returns the kind of the edge between two spans of these kinds.
func EdgeKindOf(parent, child int32) EdgeKind {
	if parent == otlpdata.KindProducer || child == otlpdata.KindConsumer {
		return Messaging
	}
	return Call
}

// Collector collects the statistics of a segment while its rows go by. What it keeps is bounded; spans beyond that are counted as dropped.
// Not for concurrent use.
type Collector struct {
	series     []Series
	seriesID   map[Series]uint32
	extra      []uint32 // by series: 1 + the number of the Extra one; 0, or missing: not known
	operations map[service]map[string]bool
	cells      table[cell]
	dropped    uint64 // spans that have no cell, or no Extra one

	services    []service
	serviceID   map[service]uint32
	edges       []edgeName
	edgeID      table[uint32] // by edgeName.key
	calls       table[callCell]
	callsLost   uint64
	orphans     []orphan
	orphansLost uint64
}

type service struct{ tenant, name string }

// cell is what is known of a series' spans of one minute in one octave of durations. Its key is minute, series, octave, so that the order
// of keys is that of a section.
type cell struct {
	sum    uint64
	counts [perOctave]uint32
}

type callCell struct{ calls, errors, sum uint64 }

// edgeName is an edge by the numbers of its services.
type edgeName struct {
	parent, child uint32
	kind          EdgeKind
}

func (e edgeName) key() uint64 { return uint64(e.parent)<<32 | uint64(e.child)<<1 | uint64(e.kind) }

// orphan is a span without its parent; what is a service, a kind and whether it failed.
type orphan struct {
	trace    otlpdata.TraceID
	parent   otlpdata.SpanID
	duration uint64
	minute   uint32
	service  uint32
	kind     EdgeKind
	failed   bool
}

// NewCollector returns a Collector that has seen nothing.
func NewCollector() *Collector {
	return &Collector{seriesID: map[Series]uint32{}, operations: map[service]map[string]bool{}, serviceID: map[service]uint32{},
		cells: table[cell]{seed: rand.Uint64()}, edgeID: table[uint32]{seed: rand.Uint64()}, calls: table[callCell]{seed: rand.Uint64()}}
}

// Series returns the number of a series, for Span. It is slow: ask once per shape. The Collector keeps the strings.
func (c *Collector) Series(s Series) uint32 {
	if id, ok := c.seriesID[s]; ok {
		return id
	}
	if of := (service{s.Tenant, s.Service}); !c.hasOperation(of, s.Operation) {
		s.Operation = tracestore.OtherOperation
		if id, ok := c.seriesID[s]; ok {
			return id
		}
	}
	if len(c.series) >= maxNames {
		return none
	}
	id := uint32(len(c.series))
	c.series = append(c.series, s)
	c.seriesID[s] = id
	return id
}

// hasOperation reports whether an operation of a service may have series of its own.
func (c *Collector) hasOperation(of service, operation string) bool {
	known := c.operations[of]
	switch {
	case known[operation]:
		return true
	case len(known) >= tracestore.MaxOperations:
		return false
	case known == nil:
		known = map[string]bool{}
		c.operations[of] = known
	}
	known[operation] = true
	return true
}

// Span counts a span of a series. start is in nanoseconds since the Unix epoch, duration in nanoseconds.
func (c *Collector) Span(series uint32, start, duration uint64) {
	if cell, bucket := c.cellOf(series, start, duration); cell != nil {
		cell.counts[bucket%perOctave]++
		cell.sum = sumUp(cell.sum, duration)
	}
}

// Extra counts n more calls, at least one, for which a span stands that Span has counted. They are in the Extra series. A bucket of a
// minute has room for 4 billion of them.
func (c *Collector) Extra(series uint32, start, duration, n uint64) {
	cell, bucket := c.cellOf(c.extraOf(series), start, duration)
	if cell == nil {
		return
	}
	count := &cell.counts[bucket%perOctave]
	if n > math.MaxUint32-uint64(*count) {
		c.dropped++
		return
	}
	*count += uint32(n)
	cell.sum = sumUp(cell.sum, timesUp(duration, n))
}

// cellOf returns the cell and the bucket that a span belongs to, or nil when there is no room for it, which is counted.
func (c *Collector) cellOf(series uint32, start, duration uint64) (_ *cell, bucket uint64) {
	if series == none {
		c.dropped++
		return nil, 0
	}
	bucket = uint64(tracestore.BucketOf(duration))
	cell := c.cells.at(start/nanosPerMinute<<(nameBits+octaveBits) | uint64(series)<<octaveBits | bucket/perOctave)
	if cell == nil {
		c.dropped++
	}
	return cell, bucket
}

// extraOf returns the number of the Extra series of a series.
func (c *Collector) extraOf(series uint32) uint32 {
	if series == none {
		return none
	}
	if int(series) >= len(c.extra) {
		c.extra = append(c.extra, make([]uint32, len(c.series)-len(c.extra))...)
	}
	known := &c.extra[series]
	if *known == 0 {
		s := c.series[series]
		s.Extra = true
		id := c.Series(s)
		if id == none {
			return none
		}
		*known = id + 1
	}
	return *known - 1
}

// Cells returns how much the Collector keeps of series: octaves of durations of which it has some, each of a series and a minute. A cell
// takes about 100 bytes.
func (c *Collector) Cells() int { return c.cells.used }

// Dropped returns how many spans are not counted in series, or not all that they stand for, because there was no room.
func (c *Collector) Dropped() uint64 { return c.dropped }

// EachPoint calls visit with what was counted of the minutes from first to last, both included, and of the series that are wanted. It gives
// one or more histograms for each series, by its number, and minute, in any order. They are valid during the call.
func (c *Collector) EachPoint(first, last uint64, wanted []bool, visit func(series int, minute uint64, durations *tracestore.Histogram)) {
	var h tracestore.Histogram
	for i := range c.cells.slots {
		slot := &c.cells.slots[i]
		if slot.key == 0 {
			continue
		}
		key := slot.key - 1
		series, minute := int(key>>octaveBits&(1<<nameBits-1)), key>>(nameBits+octaveBits)
		if !wanted[series] || minute < first || minute > last {
			continue
		}
		h.Reset()
		addCell(&h, int(key&(1<<octaveBits-1)), &slot.value)
		visit(series, minute, &h)
	}
}

// All returns all series by their numbers. They must not be changed.
func (c *Collector) All() []Series { return c.series }

// Service returns the number of a service of a tenant, for Edge and Orphan. The Collector keeps the strings.
func (c *Collector) Service(tenant, name string) uint32 {
	s := service{tenant, name}
	if id, ok := c.serviceID[s]; ok {
		return id
	}
	if len(c.services) >= maxNames {
		return none
	}
	id := uint32(len(c.services))
	c.services = append(c.services, s)
	c.serviceID[s] = id
	return id
}

// Edge counts a span and its parent: one call of the child's service, in the minute of its start, that took duration and failed or not.
// Both services are of one tenant, and may be the same.
func (c *Collector) Edge(parent, child uint32, kind EdgeKind, start, duration uint64, failed bool) {
	calls := c.callsOf(edgeName{parent, child, kind}, start/nanosPerMinute)
	if calls == nil {
		c.callsLost++
		return
	}
	calls.calls++
	if failed {
		calls.errors++
	}
	calls.sum = sumUp(calls.sum, duration)
}

// callsOf returns where the calls of an edge in a minute are counted, or nil when there is no room for them.
func (c *Collector) callsOf(e edgeName, minute uint64) *callCell {
	if e.parent == none || e.child == none {
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
	return c.calls.at(minute<<nameBits | uint64(*id-1))
}

// Orphan notes a span whose parent is not among those that the Collector sees. kind is as far as the span alone tells.
func (c *Collector) Orphan(trace otlpdata.TraceID, parent otlpdata.SpanID, service uint32, kind EdgeKind,
	start, duration uint64, failed bool,
) {
	if service == none || len(c.orphans) >= maxOrphans {
		c.orphansLost++
		return
	}
	c.orphans = append(c.orphans, orphan{trace, parent, duration, uint32(start / nanosPerMinute), service, kind, failed})
}

// sumUp returns the sum, or the greatest number where it exceeds that.
func sumUp(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}

// timesUp returns the product, or the greatest number where it exceeds that.
func timesUp(a, b uint64) uint64 {
	if hi, product := bits.Mul64(a, b); hi == 0 {
		return product
	}
	return math.MaxUint64
}
