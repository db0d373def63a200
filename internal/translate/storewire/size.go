package storewire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Estimated memory of decoded values in bytes, beside their content: a message with the pointer to
// it, a text or list of bytes, and a number.
const (
	messageMemory = 128
	textMemory    = 24
	numberMemory  = 8
)

// maxSizedDepth is the nesting beyond which DecodedSize assumes the worst.
const maxSizedDepth = 64

// DecodedSize returns about how much memory an encoded message takes when it is decoded, in bytes:
// empty texts and messages take much more than their encoded size. It decodes nothing.
func DecodedSize(d protoreflect.MessageDescriptor, b []byte) int64 { return decodedSize(d, b, 0) }

func decodedSize(d protoreflect.MessageDescriptor, b []byte, depth int) int64 {
	size := int64(messageMemory)
	if depth > maxSizedDepth {
		return size + messageMemory*int64(len(b))
	}
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeField(b)
		if n < 0 { // not a valid message
			return size + int64(len(b))
		}
		_, _, tag := protowire.ConsumeTag(b)
		f := d.Fields().ByNumber(number)
		value, _ := protowire.ConsumeBytes(b[tag:n])
		switch {
		case typ != protowire.BytesType:
			size += numberMemory
		case f == nil, f.Kind() == protoreflect.BytesKind, f.Kind() == protoreflect.StringKind:
			size += textMemory + int64(len(value))
		case f.Message() != nil:
			size += decodedSize(f.Message(), value, depth+1)
		default: // a packed list; a number has at least one byte
			size += numberMemory * int64(len(value))
		}
		b = b[n:]
	}
	return size
}
