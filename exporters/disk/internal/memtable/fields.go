package memtable

import (
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// field is the value of a span for one column.
type field struct {
	hash  uint64 // of place, kind and key; set only by interner.fields
	place rows.Place
	key   string
	value otlpdata.Value
}

// spanLayout determines how the parts of a span become fields.
type spanLayout struct {
	nameInRow  bool
	attributes partLayout
	events     partLayout
}

// partLayout determines how attributes or events become fields.
type partLayout uint8

const (
	asColumns       partLayout = iota // one field each
	asCommonColumns                   // attributes with common keys get one field each; others are encoded as Extra
	asBlob                            // all encoded in one field
)

// fields lists the fields of a span in the order of rows.Shape.Columns. They are valid until the
// next call.
func (n *interner) fields(s *otlpdata.Span, f spanLayout) {
	n.beginFields(true)
	if f.attributes == asColumns {
		n.attributes(rows.Attribute, s.Attributes)
	} else {
		n.splitAttributes(s.Attributes, f.attributes)
	}
	n.others(s, f)
	for i := range n.list {
		l := &n.list[i]
		l.hash = n.t.fieldHash(l.place, l.value.Kind(), l.key)
	}
}

// beginFields starts a list. listed reports whether it will include the attributes of the span.
func (n *interner) beginFields(listed bool) {
	n.list, n.blob, n.listed = n.list[:0], n.blob[:0], listed
	n.rowHints.reset()
}

// others adds the fields other than span attributes, without hashes.
func (n *interner) others(s *otlpdata.Span, f spanLayout) {
	if f.nameInRow {
		n.add(rows.Name, otlpdata.StringValue(s.Name))
	}
	n.text(rows.TraceState, s.TraceState)
	n.text(rows.StatusMessage, s.StatusMessage)
	n.number(rows.Flags, s.Flags)
	n.number(rows.DroppedAttributes, s.DroppedAttributes)
	n.number(rows.DroppedEvents, s.DroppedEvents)
	n.number(rows.DroppedLinks, s.DroppedLinks)
	if len(s.Events) > 0 {
		n.events(s, f.events)
	}
	if len(s.Links) > 0 {
		n.links(s.Links)
	}
}

func (n *interner) attributes(place rows.Place, kvs []otlpdata.KeyValue) {
	for i := range kvs {
		n.list = append(n.list, field{place: place, key: kvs[i].Key, value: kvs[i].Value})
	}
}

// splitAttributes adds attributes with common keys as fields if p is asCommonColumns, and all
// others as Extra.
func (n *interner) splitAttributes(kvs []otlpdata.KeyValue, p partLayout) {
	n.positions, n.extra = n.positions[:0], n.extra[:0]
	common := &n.service().guard(n.head.kind).common
	for i := range kvs {
		kv := &kvs[i]
		if p == asCommonColumns {
			if common.has(n.t.fieldHash(rows.Attribute, kv.Value.Kind(), kv.Key)) {
				n.list = append(n.list, field{place: rows.Attribute, key: kv.Key, value: kv.Value})
				continue
			}
		}
		n.positions, n.extra = append(n.positions, i), append(n.extra, *kv)
	}
	if len(n.extra) > 0 {
		from := len(n.blob)
		n.blob = rows.AppendExtra(n.blob, n.positions, n.extra)
		n.encoded(rows.Extra, from)
		n.addEncodedHints(n.extra)
	}
}

func (n *interner) events(s *otlpdata.Span, p partLayout) {
	if p != asColumns {
		from := len(n.blob)
		n.blob = otlpdata.AppendEvents(n.blob, s.Events)
		n.encoded(rows.Events, from)
		for i := range s.Events {
			n.addEncodedHints(s.Events[i].Attributes)
		}
		return
	}
	for i := range s.Events {
		e := &s.Events[i]
		n.add(rows.EventTime, otlpdata.IntValue(int64(e.Time-s.Start)))
		n.text(rows.EventName, e.Name)
		n.number(rows.EventDropped, e.DroppedAttributes)
		n.attributes(rows.EventAttribute, e.Attributes)
	}
}

func (n *interner) links(links []otlpdata.Link) {
	from := len(n.blob)
	n.blob = otlpdata.AppendLinks(n.blob, links)
	n.encoded(rows.Links, from)
	for i := range links {
		n.addEncodedHints(links[i].Attributes)
	}
}

// addEncodedHints adds the attributes within an encoded part to the hints of the row.
func (n *interner) addEncodedHints(kvs []otlpdata.KeyValue) {
	hash := &n.t.hash
	for i := range kvs {
		n.rowHints.encoded = true
		switch v := &kvs[i].Value; v.Kind() {
		case otlpdata.ValueString:
			n.rowHints.texts = append(n.rowHints.texts, hash.attribute(hash.text(kvs[i].Key), v.Str()))
		case otlpdata.ValueArray:
			n.rowHints.addArray(hash, hash.text(kvs[i].Key), *v)
		}
	}
}

func (n *interner) add(place rows.Place, v otlpdata.Value) {
	n.list = append(n.list, field{place: place, value: v})
}

func (n *interner) text(place rows.Place, s string) {
	if s != "" {
		n.add(place, otlpdata.StringValue(s))
	}
}

func (n *interner) number(place rows.Place, v uint32) {
	if v != 0 {
		n.add(place, otlpdata.IntValue(int64(v)))
	}
}

// encoded adds a field with the bytes of the blob from the given position on. The blob may be
// reallocated when it grows; fields that were added before keep the old memory.
func (n *interner) encoded(place rows.Place, from int) {
	b := n.blob[from:]
	n.add(place, otlpdata.EncodedValue(otlpdata.ValueBytes, unsafe.String(unsafe.SliceData(b), len(b))))
}

// fieldHash returns the hash of a column's properties.
func (t *Table) fieldHash(place rows.Place, kind otlpdata.ValueKind, key string) uint64 {
	const odd = 0xd6e8feb86659fd93
	h := (uint64(place)<<8 | uint64(kind)) * odd
	if key == "" {
		return h ^ t.hash.secret[1]
	}
	return h ^ t.hash.text(key)
}
