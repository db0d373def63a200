package resourcetags

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
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

// isResourceSpans reports whether a field of a request is a non-empty ResourceSpans.
func isResourceSpans(f protoenc.Field) bool { return f.Num == fieldResourceSpans && len(f.Content) > 0 }

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
	for f := range protoenc.Fields(resource) {
		if f.Num == fieldAttributes && t.equals(f.Content) {
			return true
		}
	}
	return false
}

// equals reports whether an encoded KeyValue is equal to the tag. Its fields may be in any order.
func (t *tag) equals(attribute []byte) bool {
	var key, value []byte
	for f := range protoenc.Fields(attribute) {
		switch f.Num {
		case fieldKey:
			key = f.Content
		case fieldValue:
			value = f.Content
		}
	}
	if !bytes.Equal(key, t.key) {
		return false
	}
	for f := range protoenc.Fields(value) {
		if f.Num == fieldText && bytes.Equal(f.Content, t.value) {
			return true
		}
	}
	return false
}

func appendBytes(dst []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), content)
}
