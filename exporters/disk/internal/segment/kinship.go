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

// kinship finds the parents of rows, and gives each row to the statistics: the edge to its parent's service or an orphan.
type kinship struct {
	in        *rows.Tables
	collector *stats.Collector
	shapes    []shapeStats // by shape of the input
	rows      []rowKey     // of the trace; they are called by their index
	ids       []uint64     // of its rows, if these are few: span ids; they are searched from the front
	slots     []int32      // else: hash table of 1 + row, by span id
	shared    []uint32     // rows whose span id an earlier one has
	factor    uint64       // random, so that nobody can send ids that collide
	wide      int          // how many slots are in use
	borrowed  bool         // names do not stay what they are
}

// shapeStats is what the statistics know of a shape.
type shapeStats struct {
	series, service uint32
	kind            int32
	known           bool
	nameInRow       bool
	failed          bool
}

func newKinship(t *rows.Tables) *kinship {
	return &kinship{in: t, collector: stats.NewCollector(), shapes: make([]shapeStats, len(t.Shapes)), factor: rand.Uint64() | 1}
}

// fewRows is how many rows a trace has at most whose span ids are searched one by one.
const fewRows = 32

// begin takes in the rows of the next trace, which it keeps until the one after it.
func (k *kinship) begin(list []rowKey) {
	k.rows, k.shared, k.ids = list, k.shared[:0], k.ids[:0]
	if len(list) > fewRows {
		k.fillSlots(list)
		return
	}
	if cap(k.slots) > maxKept/4 {
		k.slots = nil // of a trace of very many rows
	}
	for i := range list {
		id := list[i].span
		if k.find(id) > 0 {
			k.shared = append(k.shared, uint32(i))
		}
		k.ids = append(k.ids, id)
	}
}

func (k *kinship) fillSlots(list []rowKey) {
	k.wide = 1 << bits.Len(uint(2*len(list)-1))
	k.slots = slices.Grow(k.slots[:0], k.wide)[:k.wide]
	clear(k.slots)
	for i := range list {
		slot := k.slot(list[i].span)
		if *slot == 0 {
			*slot = int32(i + 1)
		} else if len(k.shared) < maxShared {
			k.shared = append(k.shared, uint32(i))
		}
	}
}

// find returns 1 + the first row with a span id, or 0.
func (k *kinship) find(id uint64) int32 {
	if len(k.rows) > fewRows {
		return *k.slot(id)
	}
	for i, has := range k.ids {
		if has == id {
			return int32(i + 1)
		}
	}
	return 0
}

// slot returns where the first row with a span id stands, or would.
func (k *kinship) slot(id uint64) *int32 {
	h := (id ^ id>>32) * k.factor >> 32
	for mask := uint64(k.wide - 1); ; h++ {
		slot := &k.slots[h&mask]
		if *slot == 0 || k.rows[*slot-1].span == id {
			return slot
		}
	}
}

// add counts a row of the trace, but not in its series, which it returns. name is that of the span if the rows of its shape have names of
// their own.
func (k *kinship) add(row uint32, h *rows.Head, name string) (series uint32) {
	s := k.statsOf(h.Shape)
	series = s.series
	if s.nameInRow {
		if k.borrowed {
			name = strings.Clone(name)
		}
		series = k.collector.SeriesID(k.series(&k.in.Shapes[h.Shape], name))
	}
	duration := h.Duration()
	parent, found := k.parent(row, h)
	switch {
	case found:
		of := k.statsOf(k.rows[parent].shape)
		k.collector.AddEdge(of.service, s.service, stats.EdgeKindOf(of.kind, s.kind), h.Start, duration, s.failed)
	case !h.ParentID.IsZero():
		edge := stats.EdgeKindOf(otlpdata.KindUnspecified, s.kind)
		k.collector.AddOrphan(h.TraceID, h.ParentID, s.service, edge, h.Start, duration, s.failed)
	}
	return series
}

// parent returns the row of a row's parent. Where several spans share an id, as the two sides of a call do in Zipkin's model, the client's
// side is the parent of the server's, and a child belongs to the side that is of its service, else to the server's.
func (k *kinship) parent(row uint32, h *rows.Head) (uint32, bool) {
	if len(k.shared) > 0 && k.isServer(row) {
		if client, ok := k.among(spanKey(h.SpanID), func(r uint32) bool { return r != row && !k.isServer(r) }); ok {
			return client, true
		}
	}
	if h.ParentID.IsZero() {
		return 0, false
	}
	parent := spanKey(h.ParentID)
	if len(k.shared) > 0 {
		service := k.statsOf(h.Shape).service
		if r, ok := k.among(parent, func(r uint32) bool { return r != row && k.statsOf(k.rows[r].shape).service == service }); ok {
			return r, true
		}
		if r, ok := k.among(parent, func(r uint32) bool { return r != row && k.isServer(r) }); ok {
			return r, true
		}
	}
	return k.among(parent, func(r uint32) bool { return r != row })
}

// among returns the first row with a span id that will do.
func (k *kinship) among(id uint64, will func(row uint32) bool) (uint32, bool) {
	at := k.find(id)
	if at == 0 {
		return 0, false
	}
	if first := uint32(at - 1); will(first) {
		return first, true
	}
	for _, r := range k.shared {
		if k.rows[r].span == id && will(r) {
			return r, true
		}
	}
	return 0, false
}

func (k *kinship) isServer(row uint32) bool {
	kind := k.statsOf(k.rows[row].shape).kind
	return kind == otlpdata.KindServer || kind == otlpdata.KindConsumer
}

// statsOf returns what the statistics know of a shape.
func (k *kinship) statsOf(id uint32) *shapeStats {
	s := &k.shapes[id]
	if !s.known {
		shape := &k.in.Shapes[id]
		s.known, s.kind, s.nameInRow, s.failed = true, shape.Kind, shape.NameInRow, shape.Status == otlpdata.StatusError
		s.service = k.collector.ServiceID(shape.Tenant, shape.Service)
		if !shape.NameInRow {
			s.series = k.collector.SeriesID(k.series(shape, shape.Name))
		}
	}
	return s
}

func (k *kinship) series(s *rows.Shape, name string) stats.Series {
	span := otlpdata.Span{Name: name, Kind: s.Kind}
	return stats.Series{Tenant: s.Tenant, Service: s.Service, Operation: span.Operation(), Kind: span.KindName(),
		Error: s.Status == otlpdata.StatusError}
}
