package memtable

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// shapeCache predicts the shape of a span. It maps properties that are cheap to read to 1 + the
// shape of the last span with these properties, 0 for none. The prediction is checked by comparing
// all properties of the shape, which is much cheaper than hashing them.
type shapeCache [1 << shapeCacheBits]uint32

const shapeCacheBits = 14

// of returns the entry for a span with the given origin. others are the fields other than span
// attributes.
func (g *shapeCache) of(origin originIDs, s *otlpdata.Span, nameInRow bool, others []field) *uint32 {
	h := uint64(origin.service)<<32 | uint64(origin.scope)
	h ^= uint64(uint32(s.Kind))<<8 ^ uint64(uint32(s.StatusCode))<<16
	if !nameInRow {
		h = fold(h, sketch(s.Name))
	}
	for i := range s.Attributes {
		h = bits.RotateLeft64(h, 7) + tail(s.Attributes[i].Key) + uint64(s.Attributes[i].Value.Kind())
	}
	for i := range others {
		h = bits.RotateLeft64(h, 7) + tail(others[i].key) + uint64(others[i].place)
	}
	return &g[fold(h, uint64(len(s.Attributes)))>>(64-shapeCacheBits)]
}

// tail combines the last eight bytes of a text with its length.
func tail(s string) uint64 {
	n := len(s)
	if n >= 8 {
		return binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), n)[n-8:]) + uint64(n)
	}
	h := uint64(n)
	for i := range n {
		h = h<<8 | uint64(s[i])
	}
	return h
}

// sketch combines all groups of eight bytes of a text.
func sketch(s string) uint64 {
	h := uint64(len(s))
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for len(b) > 8 {
		h = bits.RotateLeft64(h, 23) + binary.LittleEndian.Uint64(b)
		b = b[8:]
	}
	return bits.RotateLeft64(h, 23) + tail(s)
}

// matchesShape reports whether a span has the given shape, in a layout with a column for each
// attribute. n.list holds the fields other than span attributes.
func (n *interner) matchesShape(id uint32, s *otlpdata.Span, nameInRow bool) bool {
	t, info := n.t, &n.t.shapes[id]
	if info.service != n.origin.service || info.scope != n.origin.scope || info.kind != s.Kind || info.status != s.StatusCode ||
		info.nameInRow != nameInRow || !nameInRow && info.name != s.Name || int(info.columns) != len(s.Attributes)+len(n.list) {
		return false
	}
	slots := t.slotsOf(id)
	for i := range s.Attributes {
		c, kv := &t.tables.Columns[slots[i].column], &s.Attributes[i]
		if c.Place != rows.Attribute || c.Kind != kv.Value.Kind() || c.Key != kv.Key {
			return false
		}
	}
	slots = slots[len(s.Attributes):]
	for i := range n.list {
		if !sameColumn(&t.tables.Columns[slots[i].column], &n.list[i]) {
			return false
		}
	}
	return true
}
