package otlpdata

import "github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"

// decodeResource merges the fields of an encoded Resource into w.resource, because protobuf merges
// a message field that occurs several times.
func (w *walker) decodeResource(b []byte) error {
	r := &w.resource
	r.Raw = joinRaw(r.Raw, b)
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			r.Attributes, err = w.attribute(r.Attributes, &w.items.attributes, f.Data, serviceNameKey)
		case 2<<3 | protoenc.Varint:
			r.DroppedAttributes = uint32(f.Num)
		case 3<<3 | protoenc.Length:
			err = checkEntityRef(f.Data)
		default:
			err = f.Unknown(0b1110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// joinRaw returns the concatenation of two encodings of one message, which is the encoding of the
// merged message. The first encoding aliases the chunk and has no spare capacity, so appending
// copies it to a new slice. That slice grows as usual: a message with a thousand repetitions is not
// copied a thousand times.
func joinRaw(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return append(a, b...)
}

// checkEntityRef validates an EntityRef, which is kept in Resource.Raw and not read otherwise.
func checkEntityRef(b []byte) error {
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		if n := f.Tag >> 3; n <= 4 && f.Tag&7 == protoenc.Length {
			continue
		}
		if err = f.Unknown(0b11110); err != nil {
			return err
		}
	}
	return nil
}

// decodeScope merges the fields of an encoded InstrumentationScope into w.scope.
func (w *walker) decodeScope(b []byte) error {
	s := &w.scope
	s.Raw = joinRaw(s.Raw, b)
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			s.Name = unsafeString(f.Data)
		case 2<<3 | protoenc.Length:
			s.Version = unsafeString(f.Data)
		case 3<<3 | protoenc.Length:
			s.Attributes, err = w.attribute(s.Attributes, &w.items.attributes, f.Data, "")
		case 4<<3 | protoenc.Varint:
			s.DroppedAttributes = uint32(f.Num)
		default:
			err = f.Unknown(0b11110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
