package native

// maxThriftDepth is the maximum nesting of values in unknown fields.
const maxThriftDepth = 64

// skip skips the value of a field that the struct does not define or defines with another type.
func (r *thriftReader) skip(f *thriftField) {
	if f.typ == thriftBool && r.compact {
		return // the value was in the header
	}
	r.skipValue(f.typ, maxThriftDepth)
}

func (r *thriftReader) skipValue(typ thriftType, depth int) {
	if depth == 0 {
		r.fail(errThriftNesting)
		return
	}
	switch typ {
	case thriftBool, thriftByte:
		r.advance(1)
	case thriftI16:
		r.skipInteger(2)
	case thriftI32:
		r.skipInteger(4)
	case thriftI64:
		r.skipInteger(8)
	case thriftDouble:
		r.advance(8)
	case thriftUUID:
		r.advance(16)
	case thriftString:
		r.advance(r.length())
	case thriftStruct:
		r.skipStruct(depth - 1)
	case thriftList, thriftSet:
		elem, n := r.container()
		for ; n > 0 && r.err == nil; n-- {
			r.skipValue(elem, depth-1)
		}
	case thriftMap:
		r.skipMap(depth - 1)
	default:
		r.fail(errThriftType)
	}
}

func (r *thriftReader) advance(n int) {
	if n > len(r.b)-r.pos {
		r.fail(errThriftTruncated)
		return
	}
	r.pos += n
}

// skipInteger skips an integer that takes n bytes in the binary protocol.
func (r *thriftReader) skipInteger(n int) {
	if r.compact {
		r.varint()
		return
	}
	r.advance(n)
}

func (r *thriftReader) skipStruct(depth int) {
	for f := (thriftField{}); r.next(&f); {
		if f.typ != thriftBool || !r.compact {
			r.skipValue(f.typ, depth)
		}
	}
}

func (r *thriftReader) skipMap(depth int) {
	key, value, n := r.mapHeader()
	for ; n > 0 && r.err == nil; n-- {
		r.skipValue(key, depth)
		r.skipValue(value, depth)
	}
}

// mapHeader reads the header of a map. In the compact protocol an empty map has no types.
func (r *thriftReader) mapHeader() (key, value thriftType, n int) {
	if !r.compact {
		if len(r.b)-r.pos < 2 {
			r.fail(errThriftTruncated)
			return 0, 0, 0
		}
		key, value = thriftType(r.b[r.pos]), thriftType(r.b[r.pos+1])
		r.pos += 2
		return key, value, r.length()
	}
	if n = r.length(); n == 0 {
		return 0, 0, 0
	}
	types := r.b[r.pos]
	r.pos++
	return compactTypes[types>>4], compactTypes[types&15], n
}
