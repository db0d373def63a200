package protoenc

import "iter"

// Field is a field of an encoded message.
type Field struct {
	Num     int    // 0 for an invalid rest of a message
	Bytes   bool   // whether the field is length-delimited: a message, a string or bytes
	Raw     []byte // the field including its tag
	Content []byte // of a length-delimited field
	Value   uint64 // of any other field, without its interpretation as signed or float
}

// Fields yields the fields of a message without copying them, see [Reader]. If the rest of the
// message is invalid, it is yielded as a field with number 0, so that a copy is complete.
func Fields(message []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for pos := 0; pos < len(message); {
			var r Reader
			end, err := r.Next(message, pos)
			if err != nil {
				yield(Field{Raw: message[pos:]})
				return
			}
			f := Field{int(r.Tag >> 3), r.Tag&7 == Length, message[pos:end], r.Data, r.Num}
			if pos = end; !yield(f) {
				return
			}
		}
	}
}
