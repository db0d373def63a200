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

// Fields yields the fields of a message without copying them. If the rest of the message is
// invalid, it is yielded as a field with number 0, so that a copy is complete.
func Fields(message []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(message) > 0 {
			num, typ, tag := protowire.ConsumeTag(message)
			n := -1
			if tag >= 0 {
				n = protowire.ConsumeFieldValue(num, typ, message[tag:])
			}
			if n < 0 {
				yield(Field{Raw: message})
				return
			}
			f := Field{Num: int(num), Bytes: typ == protowire.BytesType, Raw: message[:tag+n]}
			if f.Bytes {
				f.Content, _ = protowire.ConsumeBytes(message[tag:])
			}
			if message = message[tag+n:]; !yield(f) {
				return
			}
		}
	}
}
