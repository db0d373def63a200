package otlpdata

// decodeResource merges the fields of an encoded Resource into w.resource, because a message field
// that is repeated on the wire is merged.
func (w *walker) decodeResource(b []byte) error {
	r := &w.resource
	r.Raw = joinRaw(r.Raw, b)
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 1<<3 | wireLen:
			r.Attributes, err = w.attribute(r.Attributes, &w.items.attributes, f.data, serviceNameKey)
		case 2<<3 | wireVarint:
			r.DroppedAttributes = uint32(f.num)
		case 3<<3 | wireLen:
			err = checkEntityRef(f.data)
		default:
			pos, err = f.unknown(b, pos, 0b1110)
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
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		if n := f.key >> 3; n <= 4 && f.key&7 == wireLen {
			continue
		}
		if pos, err = f.unknown(b, pos, 0b11110); err != nil {
			return err
		}
	}
	return nil
}

// decodeScope merges the fields of an encoded InstrumentationScope into w.scope.
func (w *walker) decodeScope(b []byte) error {
	s := &w.scope
	s.Raw = joinRaw(s.Raw, b)
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 1<<3 | wireLen:
			s.Name = unsafeString(f.data)
		case 2<<3 | wireLen:
			s.Version = unsafeString(f.data)
		case 3<<3 | wireLen:
			s.Attributes, err = w.attribute(s.Attributes, &w.items.attributes, f.data, "")
		case 4<<3 | wireVarint:
			s.DroppedAttributes = uint32(f.num)
		default:
			pos, err = f.unknown(b, pos, 0b11110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
