package otlpdata

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// decodeSpan decodes an encoded Span into w.span, reusing its slices.
func (w *walker) decodeSpan(b []byte) error {
	s := &w.span
	s.reset(b)
	w.nested, w.items = w.nested[:0], listLengths{}
	pos, err := w.attributeRun(b, s.commonPrefix(b))
	if err != nil {
		return err
	}
	return w.spanFields(b, pos)
}

// reset clears the span field by field, which is faster than copying a zero value over all fields.
func (s *Span) reset(b []byte) {
	s.Raw = b
	s.TraceID, s.SpanID, s.ParentID = TraceID{}, SpanID{}, SpanID{}
	s.TraceState, s.Name, s.StatusMessage = "", "", ""
	s.Kind, s.StatusCode, s.Flags = 0, 0, 0
	s.Start, s.End = 0, 0
	s.DroppedAttributes, s.DroppedEvents, s.DroppedLinks = 0, 0, 0
	s.Attributes, s.Events, s.Links = s.Attributes[:0], s.Events[:0], s.Links[:0]
}

// commonPrefix reads the fields before the attributes as long as they have the form that encoders
// usually write: in the order of their numbers, with complete ids and a short name. It returns the
// position of the first field that it did not read.
func (s *Span) commonPrefix(b []byte) int {
	const ids = 2 + 16 + 2 + 8
	if len(b) < ids || b[0] != 1<<3|protoenc.Length || b[1] != 16 || b[18] != 2<<3|protoenc.Length || b[19] != 8 {
		return 0
	}
	s.TraceID, s.SpanID = TraceID(b[2:]), SpanID(b[20:])
	pos := ids
	if r := b[pos:]; len(r) >= 2+8 && r[0] == 4<<3|protoenc.Length && r[1] == 8 {
		s.ParentID = SpanID(r[2:])
		pos += 2 + 8
	}
	if r := b[pos:]; len(r) >= 2 && r[0] == 5<<3|protoenc.Length && r[1] < 0x80 && int(r[1]) <= len(r)-2 {
		s.Name = unsafeString(r[2 : 2+int(r[1])])
		pos += 2 + int(r[1])
	}
	if r := b[pos:]; len(r) >= 2 && r[0] == 6<<3|protoenc.Varint && r[1] < 0x80 {
		s.Kind = int32(r[1])
		pos += 2
	}
	if r := b[pos:]; len(r) >= 9+9 && r[0] == 7<<3|protoenc.Fixed64 && r[9] == 8<<3|protoenc.Fixed64 {
		s.Start, s.End = binary.LittleEndian.Uint64(r[1:]), binary.LittleEndian.Uint64(r[10:])
		pos += 9 + 9
	}
	return pos
}

// attributeRun reads consecutive attributes from pos on and returns the position after them. With
// checkOnly each attribute overwrites the previous one, except that the flags attribute is kept if
// it is the first.
func (w *walker) attributeRun(b []byte, pos int) (int, error) {
	kvs := w.span.Attributes[:cap(w.span.Attributes)]
	at, step, read := 0, 1, 0
	if w.checkOnly {
		step = 0
	}
	for pos+2 < len(b) && b[pos] == 9<<3|protoenc.Length {
		from, n := pos+2, int(b[pos+1])
		if n >= 0x80 && b[from] < 0x80 {
			n, from = n&0x7f|int(b[from])<<7, from+1
		}
		if n > len(b)-from || n >= 0x80 && from == pos+2 {
			break
		}
		if read++; read > w.lim.Items {
			return 0, errTooManyItems(w.lim.Items)
		}
		if at == len(kvs) {
			kvs = append(kvs, KeyValue{})
			kvs = kvs[:cap(kvs)]
		}
		pos = from + n
		if err := kvs[at].replace(b[from:pos], w.lim.Depth); err != nil {
			return 0, err
		}
		if at += step; step == 0 && at == 0 && kvs[0].Key == FlagsAttribute {
			at = 1
		}
	}
	w.span.Attributes, w.items.attributes = kvs[:at], read
	return pos, nil
}

// spanFields reads all fields from pos on.
func (w *walker) spanFields(b []byte, pos int) error {
	s := &w.span
	var f protoenc.Reader
	for pos < len(b) {
		const flags = 16<<3 | protoenc.Fixed32 // the only tag of two bytes, and usually the last one
		if len(b)-pos == 2+4 && b[pos] == flags&0x7f|0x80 && b[pos+1] == flags>>7 {
			s.Flags = binary.LittleEndian.Uint32(b[pos+2:])
			return nil
		}
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			err = s.TraceID.decode(f.Data)
		case 2<<3 | protoenc.Length:
			err = s.SpanID.decode(f.Data)
		case 4<<3 | protoenc.Length:
			err = s.ParentID.decode(f.Data)
		case 5<<3 | protoenc.Length:
			s.Name = unsafeString(f.Data)
		case 6<<3 | protoenc.Varint:
			s.Kind = int32(f.Num)
		case 7<<3 | protoenc.Fixed64:
			s.Start = f.Num
		case 8<<3 | protoenc.Fixed64:
			s.End = f.Num
		case 9<<3 | protoenc.Length:
			s.Attributes, err = w.attribute(s.Attributes, &w.items.attributes, f.Data, FlagsAttribute)
		case 11<<3 | protoenc.Length:
			err = w.event(f.Data)
		case 13<<3 | protoenc.Length:
			err = w.link(f.Data)
		case 15<<3 | protoenc.Length:
			err = s.decodeStatus(f.Data)
		default:
			err = w.rareSpanField(&f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) rareSpanField(f *protoenc.Reader) error {
	s := &w.span
	switch f.Tag {
	case 3<<3 | protoenc.Length:
		s.TraceState = unsafeString(f.Data)
	case 10<<3 | protoenc.Varint:
		s.DroppedAttributes = uint32(f.Num)
	case 12<<3 | protoenc.Varint:
		s.DroppedEvents = uint32(f.Num)
	case 14<<3 | protoenc.Varint:
		s.DroppedLinks = uint32(f.Num)
	case 16<<3 | protoenc.Fixed32:
		s.Flags = uint32(f.Num)
	default:
		return f.Unknown(1<<17 - 2)
	}
	return nil
}

func (t *TraceID) decode(b []byte) error {
	switch len(b) {
	case 16:
		*t = TraceID(b)
	case 0:
		*t = TraceID{}
	default:
		return errTraceID
	}
	return nil
}

func (s *SpanID) decode(b []byte) error {
	switch len(b) {
	case 8:
		*s = SpanID(b)
	case 0:
		*s = SpanID{}
	default:
		return errSpanID
	}
	return nil
}

func (s *Span) decodeStatus(b []byte) error {
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 2<<3 | protoenc.Length:
			s.StatusMessage = unsafeString(f.Data)
		case 3<<3 | protoenc.Varint:
			s.StatusCode = int32(f.Num)
		default:
			if err = f.Unknown(0b1100); err != nil {
				return err
			}
		}
	}
	return nil
}

// event decodes an encoded Span.Event. Its attributes are appended to w.nested. If that slice
// grows, earlier events keep the previous array.
func (w *walker) event(b []byte) error {
	if err := w.count(&w.items.events); err != nil {
		return err
	}
	var e Event
	from := len(w.nested)
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Fixed64:
			e.Time = f.Num
		case 2<<3 | protoenc.Length:
			e.Name = unsafeString(f.Data)
		case 3<<3 | protoenc.Length:
			w.nested, err = w.attribute(w.nested, &w.items.nested, f.Data, "")
		case 4<<3 | protoenc.Varint:
			e.DroppedAttributes = uint32(f.Num)
		default:
			err = f.Unknown(0b11110)
		}
		if err != nil {
			return err
		}
	}
	if w.checkOnly {
		return nil
	}
	e.Attributes = w.nested[from:len(w.nested):len(w.nested)]
	w.span.Events = append(w.span.Events, e)
	return nil
}

// link decodes an encoded Span.Link. See event for its attributes.
func (w *walker) link(b []byte) error {
	if err := w.count(&w.items.links); err != nil {
		return err
	}
	var l Link
	from := len(w.nested)
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			err = l.TraceID.decode(f.Data)
		case 2<<3 | protoenc.Length:
			err = l.SpanID.decode(f.Data)
		case 3<<3 | protoenc.Length:
			l.TraceState = unsafeString(f.Data)
		case 4<<3 | protoenc.Length:
			w.nested, err = w.attribute(w.nested, &w.items.nested, f.Data, "")
		case 5<<3 | protoenc.Varint:
			l.DroppedAttributes = uint32(f.Num)
		case 6<<3 | protoenc.Fixed32:
			l.Flags = uint32(f.Num)
		default:
			err = f.Unknown(0b1111110)
		}
		if err != nil {
			return err
		}
	}
	if w.checkOnly {
		return nil
	}
	l.Attributes = w.nested[from:len(w.nested):len(w.nested)]
	w.span.Links = append(w.span.Links, l)
	return nil
}
