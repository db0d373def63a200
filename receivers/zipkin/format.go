package zipkin

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/internal/translate/zipkin"
)

// format is a version of spans in one of its encodings.
type format struct {
	translate func(body []byte, opt zipkin.Options) (otlp []byte, err error)
	// memory bounds what translate holds at once besides the body, in bytes. items is the greatest number of items in one list.
	memory func(body []byte, items int) int64
}

var (
	v1JSON   = format{zipkin.FromV1JSON, v1JSONMemory}
	v1Thrift = format{zipkin.FromV1Thrift, v1ThriftMemory}
	v2JSON   = format{zipkin.FromV2JSON, v2JSONMemory}
	v2Proto  = format{zipkin.FromV2Proto, v2ProtoMemory}
)

// What a translation holds, in bytes.
const (
	baseMemory = 64 << 10
	perByte    = 4   // the spans encoded, and the request: buffers that have grown
	perSpan    = 448 // a span that says nothing, which takes more than it is long, and its entries in lists; more than an annotation of v1
	perItem    = 256 // a tag or an annotation in a list that has grown, and in that of tags for resources
)

// v2JSONMemory: each span, annotation and endpoint begins with a brace, and a comma parts members and elements. The lists of one span at
// a time are held.
func v2JSONMemory(body []byte, items int) int64 {
	commas := bytes.Count(body, []byte{','})
	braces := bytes.Count(body, []byte{'{'})
	return baseMemory + perByte*int64(len(body)) + perSpan*int64(braces) + perItem*int64(min(commas, items))
}

// v2ProtoMemory counts the spans, and for what a list may hold, the fields of the largest one. JSON in an annotation makes further items,
// parted by commas.
func v2ProtoMemory(body []byte, items int) int64 {
	const small = 4 << 10 // not worth counting
	spans, most := 0, 0
	for b := body; len(b) > 0; {
		span, n := field(b)
		if n < 0 {
			break
		}
		b = b[n:]
		spans++
		if len(span) <= small {
			most = max(most, len(span)/2)
			continue
		}
		most = max(most, fields(span)+bytes.Count(span, []byte{','}))
	}
	return baseMemory + perByte*int64(len(body)) + perSpan*int64(spans) + perItem*int64(min(most, items))
}

// fields returns the number of fields of an encoded message, up to the first that is none.
func fields(b []byte) (count int) {
	for len(b) > 0 {
		_, n := field(b)
		if n < 0 {
			break
		}
		b = b[n:]
		count++
	}
	return count
}

// field returns the content of the first field of a message, if it has a length, and the length of the whole field, negative if it is none.
func field(b []byte) (content []byte, length int) {
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return nil, tag
	}
	n := protowire.ConsumeFieldValue(num, typ, b[tag:])
	if n < 0 {
		return nil, n
	}
	if typ == protowire.BytesType {
		content, _ = protowire.ConsumeBytes(b[tag:])
	}
	return content, tag + n
}

// v1JSONMemory: each span, annotation and endpoint begins with a brace. Where they are all but empty, the length bounds them closer.
func v1JSONMemory(body []byte, items int) int64 {
	braces := bytes.Count(body, []byte{'{'})
	return min(baseMemory+perByte*int64(len(body))+perSpan*int64(braces), v1ThriftMemory(body, items))
}

// v1ThriftMemory goes by the length alone: what lists hold cannot be told without reading them.
func v1ThriftMemory(body []byte, _ int) int64 { return baseMemory + zipkin.V1Growth*int64(len(body)) }
