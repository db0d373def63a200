package resourcetags

import (
	"bytes"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of an ExportTraceServiceRequest, a ResourceSpans, a Resource, a KeyValue and an AnyValue.
const (
	fieldResourceSpans = 1
	fieldResource      = 1
	fieldAttributes    = 1
	fieldKey           = 1
	fieldValue         = 2
	fieldText          = 1
)

// field is a field of an encoded message.
type field struct {
	num     protowire.Number
	raw     []byte // including the tag
	content []byte // if it is length-delimited
}

// fields yields the fields of a message. If the rest of the message is invalid, it is yielded as a
// field with number 0, so that a copy is complete.
func fields(message []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(message) > 0 {
			num, typ, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				yield(field{raw: message})
				return
			}
			n := protowire.ConsumeFieldValue(num, typ, message[tag:])
			if n < 0 {
				yield(field{raw: message})
				return
			}
			f := field{num: num, raw: message[:tag+n]}
			if typ == protowire.BytesType {
				f.content, _ = protowire.ConsumeBytes(message[tag:])
			}
			if message = message[tag+n:]; !yield(f) {
				return
			}
		}
	}
}

// isResourceSpans reports whether a field of a request is a non-empty ResourceSpans.
func isResourceSpans(f field) bool { return f.num == fieldResourceSpans && len(f.content) > 0 }

// tag is an attribute that is added to resources.
type tag struct {
	key, value []byte
	encoded    []byte // as a KeyValue
}

func newTag(key, value string) tag {
	kv := appendBytes(nil, fieldKey, []byte(key))
	kv = appendBytes(kv, fieldValue, appendBytes(nil, fieldText, []byte(value)))
	return tag{[]byte(key), []byte(value), kv}
}

// isIn reports whether an encoded resource has the tag.
func (t *tag) isIn(resource []byte) bool {
	for f := range fields(resource) {
		if f.num == fieldAttributes && t.equals(f.content) {
			return true
		}
	}
	return false
}

// equals reports whether an encoded KeyValue is equal to the tag. Its fields may be in any order.
func (t *tag) equals(attribute []byte) bool {
	var key, value []byte
	for f := range fields(attribute) {
		switch f.num {
		case fieldKey:
			key = f.content
		case fieldValue:
			value = f.content
		}
	}
	if !bytes.Equal(key, t.key) {
		return false
	}
	for f := range fields(value) {
		if f.num == fieldText && bytes.Equal(f.content, t.value) {
			return true
		}
	}
	return false
}

func appendBytes(dst []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), content)
}
