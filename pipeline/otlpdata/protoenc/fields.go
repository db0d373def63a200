package protoenc

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is a field of an encoded message.
type Field struct {
	Num     int    // 0 for an invalid rest of a message
	Bytes   bool   // whether the field is length-delimited: a message, a string or bytes
	Raw     []byte // the field including its tag
	Content []byte // of a length-delimited field
}

// Fields yields the fields of a message without copying them. It reads what pdata accepts, and so
// package otlpdata: varints with excess bits, and a group as its start and the first field in it.
// If the rest of the message is invalid, it is yielded as a field with number 0, so that a copy is
// complete.
func Fields(message []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(message) > 0 {
			num, typ, tag := protowire.ConsumeTag(message)
			n := -1
			if tag >= 0 && typ != protowire.StartGroupType {
				n = protowire.ConsumeFieldValue(num, typ, message[tag:])
			}
			f := Field{Num: int(num), Bytes: typ == protowire.BytesType}
			if n < 0 {
				f, tag, n = lenient(message)
			}
			if n < 0 {
				yield(Field{Raw: message})
				return
			}
			f.Raw = message[:tag+n]
			if f.Bytes && f.Content == nil {
				f.Content, _ = protowire.ConsumeBytes(message[tag:])
			}
			if message = message[tag+n:]; !yield(f) {
				return
			}
		}
	}
}

// lenient reads a field as pdata does. It returns the lengths of its tag and of its value, which is
// negative if the field is invalid.
func lenient(message []byte) (f Field, tag, n int) {
	key, tag := varint(message)
	f.Num = int(int32(key >> 3))
	if tag < 0 || f.Num <= 0 {
		return f, 0, -1
	}
	typ, rest := protowire.Type(key&7), message[tag:]
	if typ != protowire.StartGroupType {
		f.Bytes = typ == protowire.BytesType
		f.Content, n = value(typ, rest)
		return f, tag, n
	}
	at := 0
	for depth := 0; at < len(rest); {
		switch typ {
		case protowire.StartGroupType:
			depth++
		case protowire.EndGroupType:
			if depth--; depth == 0 {
				return f, tag, at
			}
		default:
			if _, n = value(typ, rest[at:]); n >= 0 {
				n += at
			}
			return f, tag, n
		}
		key, n := varint(rest[at:])
		if n < 0 || int32(key>>3) <= 0 {
			return f, 0, -1
		}
		typ, at = protowire.Type(key&7), at+n
	}
	return f, 0, -1
}

// value returns the length of a value, and its content if it is length-delimited. The length is
// negative if the value is invalid.
func value(typ protowire.Type, b []byte) (content []byte, n int) {
	switch typ {
	case protowire.VarintType:
		_, n = varint(b)
	case protowire.BytesType:
		length, from := varint(b)
		if from < 0 || length > uint64(len(b)-from) {
			return nil, -1
		}
		n = from + int(length)
		content = b[from:n:n]
	case protowire.Fixed64Type:
		n = 8
	case protowire.Fixed32Type:
		n = 4
	default:
		return nil, -1
	}
	if n > len(b) {
		return nil, -1
	}
	return content, n
}

// varint reads a number of at most ten bytes, without the excess bits of the tenth. The length is
// negative if the number is invalid.
func varint(b []byte) (v uint64, n int) {
	for n < min(len(b), 10) {
		c := b[n]
		v |= uint64(c&0x7f) << (7 * n)
		if n++; c < 0x80 {
			return v, n
		}
	}
	return 0, -1
}
