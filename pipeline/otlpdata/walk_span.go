package otlpdata

// decodeSpan decodes an encoded Span into w.span, reusing its slices.
func (w *walker) decodeSpan(b []byte) error {
	s := &w.span
	*s = Span{Raw: b, Attributes: s.Attributes[:0], Events: s.Events[:0], Links: s.Links[:0]}
	w.nested, w.items = w.nested[:0], listLengths{}
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 1<<3 | wireLen:
			err = s.TraceID.decode(f.data)
		case 2<<3 | wireLen:
			err = s.SpanID.decode(f.data)
		case 4<<3 | wireLen:
			err = s.ParentID.decode(f.data)
		case 5<<3 | wireLen:
			s.Name = text(f.data)
		case 6<<3 | wireVarint:
			s.Kind = int32(f.num)
		case 7<<3 | wireI64:
			s.Start = f.num
		case 8<<3 | wireI64:
			s.End = f.num
		case 9<<3 | wireLen:
			s.Attributes, err = w.attribute(s.Attributes, &w.items.attributes, f.data)
		case 11<<3 | wireLen:
			err = w.event(f.data)
		case 13<<3 | wireLen:
			err = w.link(f.data)
		case 15<<3 | wireLen:
			err = s.decodeStatus(f.data)
		default:
			pos, err = w.rareSpanField(&f, b, pos)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) rareSpanField(f *field, b []byte, pos int) (int, error) {
	s := &w.span
	switch f.key {
	case 3<<3 | wireLen:
		s.TraceState = text(f.data)
	case 10<<3 | wireVarint:
		s.DroppedAttributes = uint32(f.num)
	case 12<<3 | wireVarint:
		s.DroppedEvents = uint32(f.num)
	case 14<<3 | wireVarint:
		s.DroppedLinks = uint32(f.num)
	case 16<<3 | wireI32:
		s.Flags = uint32(f.num)
	default:
		return f.unknown(b, pos, 1<<17-2)
	}
	return pos, nil
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
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 2<<3 | wireLen:
			s.StatusMessage = text(f.data)
		case 3<<3 | wireVarint:
			s.StatusCode = int32(f.num)
		default:
			if pos, err = f.unknown(b, pos, 0b1100); err != nil {
				return err
			}
		}
	}
	return nil
}

// event decodes an encoded Span.Event. Its attributes go to the arena; where that grows, events before keep the array they have.
func (w *walker) event(b []byte) error {
	if err := w.count(&w.items.events); err != nil {
		return err
	}
	var e Event
	from := len(w.nested)
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 1<<3 | wireI64:
			e.Time = f.num
		case 2<<3 | wireLen:
			e.Name = text(f.data)
		case 3<<3 | wireLen:
			w.nested, err = w.attribute(w.nested, &w.items.nested, f.data)
		case 4<<3 | wireVarint:
			e.DroppedAttributes = uint32(f.num)
		default:
			pos, err = f.unknown(b, pos, 0b11110)
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

// link decodes an encoded Span.Link, see event.
func (w *walker) link(b []byte) error {
	if err := w.count(&w.items.links); err != nil {
		return err
	}
	var l Link
	from := len(w.nested)
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 1<<3 | wireLen:
			err = l.TraceID.decode(f.data)
		case 2<<3 | wireLen:
			err = l.SpanID.decode(f.data)
		case 3<<3 | wireLen:
			l.TraceState = text(f.data)
		case 4<<3 | wireLen:
			w.nested, err = w.attribute(w.nested, &w.items.nested, f.data)
		case 5<<3 | wireVarint:
			l.DroppedAttributes = uint32(f.num)
		case 6<<3 | wireI32:
			l.Flags = uint32(f.num)
		default:
			pos, err = f.unknown(b, pos, 0b1111110)
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

// count counts one more item of a list, whose length so far is n.
func (w *walker) count(n *int) error {
	if *n++; *n > w.lim.Items {
		return errTooManyItems(w.lim.Items)
	}
	return nil
}

// attribute appends an encoded KeyValue to a list, whose length on the wire so far is n. Where lists are only checked it takes the place of
// the one before, unless that is the first and may be the service's name.
func (w *walker) attribute(kvs []KeyValue, n *int, b []byte) ([]KeyValue, error) {
	if err := w.count(n); err != nil {
		return kvs, err
	}
	if w.checkOnly {
		kvs = kvs[:keepService(kvs)]
	}
	kvs = append(kvs, KeyValue{})
	return kvs, kvs[len(kvs)-1].decode(b, w.lim.Depth)
}

func keepService(kvs []KeyValue) int {
	if len(kvs) > 0 && kvs[0].Key == serviceNameKey {
		return 1
	}
	return 0
}

// decode adds the fields of an encoded KeyValue to kv. Encoders write key and value in this order with short lengths, which is worth
// a path of its own: attributes are most of a request.
func (kv *KeyValue) decode(b []byte, depth int) error {
	if len(b) > 4 && b[0] == 1<<3|wireLen && b[1] < 0x80 {
		if k := 2 + int(b[1]); k+2 <= len(b) && b[k] == 2<<3|wireLen && b[k+1] < 0x80 && int(b[k+1]) == len(b)-k-2 {
			kv.Key = text(b[2:k])
			return kv.Value.decode(b[k+2:], depth)
		}
	}
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 1<<3 | wireLen:
			kv.Key = text(f.data)
		case 2<<3 | wireLen:
			err = kv.Value.decode(f.data, depth)
		case 3<<3 | wireVarint: // index into a string table: profiles only
		default:
			pos, err = f.unknown(b, pos, 0b1110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wasChecked in place of a depth says that a value was validated before, so that what is nested in it need not be looked at again.
const wasChecked = 0

// decode adds the fields of an encoded AnyValue to v: of several members the last one counts. depth is how many levels of values,
// this one included, may still follow, or wasChecked.
func (v *Value) decode(b []byte, depth int) error {
	if len(b) >= 2 && b[0] == 1<<3|wireLen && b[1] < 0x80 && int(b[1]) == len(b)-2 {
		*v = Value{kind: ValueString, data: text(b[2:])}
		return nil
	}
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch f.key {
		case 1<<3 | wireLen:
			*v = Value{kind: ValueString, data: text(f.data)}
		case 2<<3 | wireVarint:
			*v = BoolValue(f.num != 0)
		case 3<<3 | wireVarint:
			*v = Value{kind: ValueInt, num: f.num}
		case 4<<3 | wireI64:
			*v = Value{kind: ValueDouble, num: f.num}
		case 5<<3 | wireLen:
			err = v.setNested(ValueArray, f.data, depth)
		case 6<<3 | wireLen:
			err = v.setNested(ValueMap, f.data, depth)
		case 7<<3 | wireLen:
			*v = Value{kind: ValueBytes, data: text(f.data)}
		case 8<<3 | wireVarint: // index into a string table: profiles only
			*v = Value{}
		default:
			pos, err = f.unknown(b, pos, 0b111111110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *Value) setNested(kind ValueKind, b []byte, depth int) error {
	*v = Value{kind: kind, data: text(b)}
	if depth == wasChecked {
		return nil
	}
	return checkValues(b, depth-1, kind == ValueMap)
}

// checkValues checks an encoded ArrayValue, or with keys set a KeyValueList.
func checkValues(b []byte, depth int, keys bool) error {
	var f field
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.next(b, pos); err != nil {
			return err
		}
		switch {
		case f.key != 1<<3|wireLen:
			pos, err = f.unknown(b, pos, 0b10)
		case depth <= 0:
			return errDepth
		case keys:
			var kv KeyValue
			err = kv.decode(f.data, depth)
		default:
			var v Value
			err = v.decode(f.data, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
