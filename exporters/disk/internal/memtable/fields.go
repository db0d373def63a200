package memtable

import (
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// field is what a span has for one column.
type field struct {
	hash  uint64 // of place, kind and key; only what fields lists has it
	place rows.Place
	key   string
	value otlpdata.Value
}

// form says how the parts of a span become fields.
type form struct {
	nameInRow  bool
	attributes part
	events     part
}

// part says how a list of attributes, or of events, becomes fields.
type part uint8

const (
	asColumns part = iota // one field for each
	asCommon              // attributes with common keys; the others are Extra
	asBlob                // all in one encoded field
)

// fields lists the fields of a span in the order of rows.Shape.Columns. They are valid until the next call.
func (n *interner) fields(s *otlpdata.Span, f form) {
	n.begins(true)
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

// begins begins a list, which shall have the attributes of the span or not.
func (n *interner) begins(listed bool) {
	n.list, n.blob, n.listed = n.list[:0], n.blob[:0], listed
	n.remarks.reset()
}

// others lists the fields that are no attributes of the span. They have no hash yet.
func (n *interner) others(s *otlpdata.Span, f form) {
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

// splitAttributes adds the attributes with common keys, if those shall have columns, and the others as Extra.
func (n *interner) splitAttributes(kvs []otlpdata.KeyValue, p part) {
	n.positions, n.extra = n.positions[:0], n.extra[:0]
	common := &n.service().guard(n.head.kind).common
	for i := range kvs {
		kv := &kvs[i]
		if p == asCommon {
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
		n.remark(n.extra)
	}
}

func (n *interner) events(s *otlpdata.Span, p part) {
	if p != asColumns {
		from := len(n.blob)
		n.blob = otlpdata.AppendEvents(n.blob, s.Events)
		n.encoded(rows.Events, from)
		for i := range s.Events {
			n.remark(s.Events[i].Attributes)
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
		n.remark(links[i].Attributes)
	}
}

// remark notes attributes within an encoded part.
func (n *interner) remark(kvs []otlpdata.KeyValue) {
	hash := &n.t.hash
	for i := range kvs {
		n.remarks.blobs = true
		if v := &kvs[i].Value; v.Kind() == otlpdata.ValueString {
			n.remarks.texts = append(n.remarks.texts, hash.attribute(hash.text(kvs[i].Key), v.Str()))
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

// encoded adds what was appended to the blob from a position on. The blob may move when it grows; what was added before keeps the memory
// that it has.
func (n *interner) encoded(place rows.Place, from int) {
	b := n.blob[from:]
	n.add(place, otlpdata.EncodedValue(otlpdata.ValueBytes, unsafe.String(unsafe.SliceData(b), len(b))))
}

// fieldHash hashes what makes a column.
func (t *Table) fieldHash(place rows.Place, kind otlpdata.ValueKind, key string) uint64 {
	const odd = 0xd6e8feb86659fd93
	h := (uint64(place)<<8 | uint64(kind)) * odd
	if key == "" {
		return h ^ t.hash.secret[1]
	}
	return h ^ t.hash.text(key)
}
