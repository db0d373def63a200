package rows

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// AppendExtra appends the data of a cell of place Extra: attributes without a column, and the
// position of each among all attributes of the span. Positions ascend.
func AppendExtra(dst []byte, positions []int, attributes []otlpdata.KeyValue) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(positions)))
	for _, p := range positions {
		dst = binary.AppendUvarint(dst, uint64(p))
	}
	return otlpdata.AppendAttributes(dst, attributes)
}

// Assembler builds spans from heads and cells. It reuses its memory and is not safe for concurrent
// use. The zero value is ready to use.
type Assembler struct {
	span                 otlpdata.Span
	merged, nested       []otlpdata.KeyValue
	from                 []int    // by event: index of its first attribute in nested
	at                   []uint64 // positions of extra attributes
	extra, events, links otlpdata.SpanReader
}

// Span returns the span of a head and its cells. It is valid until the next call; its strings alias
// the cells and the tables. It returns an error if the cells do not fit the shape or an encoded
// part is damaged.
func (a *Assembler) Span(t *Tables, h *Head, cells []Cell) (*otlpdata.Span, error) {
	shape := &t.Shapes[h.Shape]
	if len(cells) != len(shape.Columns) {
		return nil, corrupt("number of cells differs from the number of the shape's columns")
	}
	s := &a.span
	a.reset(otlpdata.Span{TraceID: h.TraceID, SpanID: h.SpanID, ParentID: h.ParentID, Start: h.Start, End: h.End,
		Name: shape.Name, Kind: shape.Kind, StatusCode: shape.Status})
	for i, id := range shape.Columns {
		if err := a.cell(t, id, cells[i]); err != nil {
			return nil, err
		}
	}
	for i, from := range a.from {
		to := len(a.nested)
		if i+1 < len(a.from) {
			to = a.from[i+1]
		}
		s.Events[i].Attributes = a.nested[from:to:to]
	}
	return s, nil
}

// Encoded decodes the data of a cell of place Extra, Events or Links. The returned span has only
// the attributes, events or links in it. It is valid until the next call; its strings alias the
// data. It returns an error if the data is damaged.
func (a *Assembler) Encoded(p Place, data string) (*otlpdata.Span, error) {
	a.reset(otlpdata.Span{})
	return &a.span, a.encoded(p, data)
}

// reset begins a span, in the memory of the previous one.
func (a *Assembler) reset(s otlpdata.Span) {
	s.Attributes, s.Events, s.Links = a.span.Attributes[:0], a.span.Events[:0], a.span.Links[:0]
	a.span, a.nested, a.from = s, a.nested[:0], a.from[:0]
}

func (a *Assembler) cell(t *Tables, id uint32, c Cell) error {
	s := &a.span
	col := &t.Columns[id]
	switch col.Place {
	case Attribute:
		s.Attributes = append(s.Attributes, otlpdata.KeyValue{Key: col.Key, Value: t.Value(id, c)})
	case Name:
		s.Name = t.Text(id, c)
	case TraceState:
		s.TraceState = t.Text(id, c)
	case StatusMessage:
		s.StatusMessage = t.Text(id, c)
	case Flags:
		s.Flags = uint32(c.Num)
	case DroppedAttributes:
		s.DroppedAttributes = uint32(c.Num)
	case DroppedEvents:
		s.DroppedEvents = uint32(c.Num)
	case DroppedLinks:
		s.DroppedLinks = uint32(c.Num)
	case EventTime:
		s.Events = append(s.Events, otlpdata.Event{Time: s.Start + c.Num})
		a.from = append(a.from, len(a.nested))
	case EventName, EventDropped, EventAttribute:
		return a.event(t, id, c)
	default:
		return a.encoded(col.Place, c.Data)
	}
	return nil
}

func (a *Assembler) event(t *Tables, id uint32, c Cell) error {
	if len(a.span.Events) == 0 {
		return corrupt("part of an event without a preceding event time")
	}
	e := &a.span.Events[len(a.span.Events)-1]
	switch col := &t.Columns[id]; col.Place {
	case EventName:
		e.Name = t.Text(id, c)
	case EventDropped:
		e.DroppedAttributes = uint32(c.Num)
	default:
		a.nested = append(a.nested, otlpdata.KeyValue{Key: col.Key, Value: t.Value(id, c)})
	}
	return nil
}

// encoded decodes cells that are parts of an encoded span.
func (a *Assembler) encoded(p Place, data string) error {
	switch p {
	case Extra:
		return a.merge([]byte(data))
	case Events:
		s, err := a.events.Read([]byte(data))
		if err != nil {
			return corrupt("events: " + err.Error())
		}
		a.span.Events = append(a.span.Events, s.Events...)
	case Links:
		s, err := a.links.Read([]byte(data))
		if err != nil {
			return corrupt("links: " + err.Error())
		}
		a.span.Links = append(a.span.Links, s.Links...)
	}
	return nil
}

// merge inserts extra attributes at their positions between the attributes that have columns.
func (a *Assembler) merge(b []byte) error {
	n, pos := uvarint(b, 0)
	if pos < 0 || n > uint64(len(b)) {
		return corrupt("invalid number of extra attributes")
	}
	at := a.at[:0]
	for range n {
		var p uint64
		p, pos = uvarint(b, pos)
		at = append(at, p)
	}
	a.at = at
	if pos < 0 {
		return corrupt("truncated extra attributes")
	}
	extra, err := a.extra.Read(b[pos:])
	if err != nil || len(extra.Attributes) != len(at) {
		return corrupt("extra attributes do not match their positions")
	}
	own := a.span.Attributes
	a.merged = a.merged[:0]
	for i := range at {
		for uint64(len(a.merged)) < at[i] && len(own) > 0 {
			a.merged, own = append(a.merged, own[0]), own[1:]
		}
		a.merged = append(a.merged, extra.Attributes[i])
	}
	a.merged = append(a.merged, own...)
	a.span.Attributes, a.merged = a.merged, a.span.Attributes
	return nil
}
