package segment

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// statsBuilder resolves the parents of rows within a trace, and adds each row to the statistics: as
// an edge from its parent's service, or as an orphan.
type statsBuilder struct {
	in           *rows.Tables
	collector    *stats.Collector
	shapes       []shapeInfo // by shape of the input
	rows         []rowKey    // of the trace, by index
	ids          []uint64    // span ids of the rows of a short trace, searched linearly
	slots        []int32     // for longer traces: hash table of 1 + row, by span id
	duplicateIDs []uint32    // rows with the span id of an earlier row
	factor       uint64      // random, so that senders cannot construct collisions
	slotCount    int         // number of slots in use
	copyNames    bool        // names are valid only during add and must be copied
}

// shapeInfo holds the properties of a shape that statistics use.
type shapeInfo struct {
	series, service uint32
	side            stats.Side
	known           bool
	nameInRow       bool
	failed          bool
}

func newStatsBuilder(t *rows.Tables) *statsBuilder {
	c := stats.NewCollector()
	c.Reserve(len(t.Shapes)) // few shapes have a series for each row
	return &statsBuilder{in: t, collector: c, shapes: make([]shapeInfo, len(t.Shapes)), factor: rand.Uint64() | 1}
}

// maxLinearRows is the maximum number of rows of a trace for linear search of span ids.
const maxLinearRows = 32

// beginTrace starts the next trace. The builder retains list until the next call.
func (b *statsBuilder) beginTrace(list []rowKey) {
	b.rows, b.duplicateIDs, b.ids = list, b.duplicateIDs[:0], b.ids[:0]
	if len(list) > maxLinearRows {
		b.fillSlots(list)
		return
	}
	if cap(b.slots) > maxBuffer/4 {
		b.slots = nil // left over from a very long trace
	}
	for i := range list {
		id := list[i].span
		if b.find(id) > 0 {
			b.duplicateIDs = append(b.duplicateIDs, uint32(i))
		}
		b.ids = append(b.ids, id)
	}
}

func (b *statsBuilder) fillSlots(list []rowKey) {
	b.slotCount = 1 << bits.Len(uint(2*len(list)-1))
	b.slots = slices.Grow(b.slots[:0], b.slotCount)[:b.slotCount]
	clear(b.slots)
	for i := range list {
		slot := b.slot(list[i].span)
		if *slot == 0 {
			*slot = int32(i + 1)
		} else if len(b.duplicateIDs) < maxDuplicateIDs {
			b.duplicateIDs = append(b.duplicateIDs, uint32(i))
		}
	}
}

// find returns 1 + the first row with a span id, or 0.
func (b *statsBuilder) find(id uint64) int32 {
	if len(b.rows) > maxLinearRows {
		return *b.slot(id)
	}
	for i, has := range b.ids {
		if has == id {
			return int32(i + 1)
		}
	}
	return 0
}

// slot returns the slot of a span id, which may be free.
func (b *statsBuilder) slot(id uint64) *int32 {
	h := (id ^ id>>32) * b.factor >> 32
	for mask := uint64(b.slotCount - 1); ; h++ {
		slot := &b.slots[h&mask]
		if *slot == 0 || b.rows[*slot-1].span == id {
			return slot
		}
	}
}

// add adds a row of the trace to edges or orphans. It does not add the row to its series but
// returns the id of the series. name is the span name if the rows of the shape have different
// names.
func (b *statsBuilder) add(row uint32, h *rows.Head, name string) (series uint32) {
	s := b.shapeInfo(h.Shape)
	series = s.series
	if s.nameInRow {
		if b.copyNames {
			name = strings.Clone(name)
		}
		series = b.collector.SeriesID(b.series(&b.in.Shapes[h.Shape], name))
	}
	duration := h.Duration()
	parent, found := b.parent(row, h)
	switch {
	case found:
		of := b.shapeInfo(b.rows[parent].shape)
		b.collector.AddEdge(of.service, s.service, stats.EdgeKindOf(of.side, s.side), h.Start, duration, s.failed)
	case !h.ParentID.IsZero():
		b.collector.AddOrphan(h.TraceID, h.ParentID, s.service, stats.OrphanKindOf(s.side), h.Start, duration, s.failed)
	}
	return series
}

// parent returns the parent row of a row. If several spans share an id, like the two sides of a
// call in Zipkin's model, the client side is the parent of the server side, and a child belongs to
// the side with its own service, otherwise to the server side.
func (b *statsBuilder) parent(row uint32, h *rows.Head) (uint32, bool) {
	if len(b.duplicateIDs) > 0 && b.isServer(row) {
		if client, ok := b.firstWithID(spanKey(h.SpanID), func(r uint32) bool { return r != row && !b.isServer(r) }); ok {
			return client, true
		}
	}
	if h.ParentID.IsZero() {
		return 0, false
	}
	parent := spanKey(h.ParentID)
	if len(b.duplicateIDs) > 0 {
		service := b.shapeInfo(h.Shape).service
		if r, ok := b.firstWithID(parent, func(r uint32) bool { return r != row && b.shapeInfo(b.rows[r].shape).service == service }); ok {
			return r, true
		}
		if r, ok := b.firstWithID(parent, func(r uint32) bool { return r != row && b.isServer(r) }); ok {
			return r, true
		}
	}
	return b.firstWithID(parent, func(r uint32) bool { return r != row })
}

// firstWithID returns the first row with a span id that is accepted.
func (b *statsBuilder) firstWithID(id uint64, accept func(row uint32) bool) (uint32, bool) {
	at := b.find(id)
	if at == 0 {
		return 0, false
	}
	if first := uint32(at - 1); accept(first) {
		return first, true
	}
	for _, r := range b.duplicateIDs {
		if b.rows[r].span == id && accept(r) {
			return r, true
		}
	}
	return 0, false
}

func (b *statsBuilder) isServer(row uint32) bool {
	kind := b.shapeInfo(b.rows[row].shape).side.Kind
	return kind == otlpdata.KindServer || kind == otlpdata.KindConsumer
}

// shapeInfo returns the properties of a shape.
func (b *statsBuilder) shapeInfo(id uint32) *shapeInfo {
	s := &b.shapes[id]
	if !s.known {
		shape := &b.in.Shapes[id]
		s.known, s.nameInRow, s.failed = true, shape.NameInRow, shape.Status == otlpdata.StatusError
		s.side = stats.SideOf(shape.Service, shape.Kind, b.in.AttributeKeys(shape))
		s.service = b.collector.ServiceID(shape.Tenant, shape.Service)
		if !shape.NameInRow {
			s.series = b.collector.SeriesID(b.series(shape, shape.Name))
		}
	}
	return s
}

func (b *statsBuilder) series(s *rows.Shape, name string) stats.Series {
	span := otlpdata.Span{Name: name, Kind: s.Kind}
	return stats.Series{Tenant: s.Tenant, Service: s.Service, Operation: span.Operation(), Kind: span.KindName(),
		Error: s.Status == otlpdata.StatusError}
}
