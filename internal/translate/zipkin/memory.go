package zipkin

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// Memory of a translation, in bytes.
const (
	baseMemory = 64 << 10
	// perByte is for the encoded spans and the encoded request, in buffers that grow by doubling.
	perByte = 4
	// perSpan is for an empty span, which needs more memory than its length, and its list entries.
	// It also covers an annotation of v1.
	perSpan = 448
	// perItem is for a tag or annotation in a list that grows by doubling, and in the list of
	// resource tags.
	perItem = 256
)

// V2JSONMemory returns the maximum memory of [FromV2JSON] in bytes, without the body. maxItems is
// the maximum number of items in a list. It counts braces, because each span, annotation and
// endpoint starts with one, and commas, which separate members and elements. Only the lists of one
// span are in memory at a time.
func V2JSONMemory(body []byte, maxItems int) int64 {
	commas := bytes.Count(body, []byte{','})
	braces := bytes.Count(body, []byte{'{'})
	return baseMemory + perByte*int64(len(body)) + perSpan*int64(braces) + perItem*int64(min(commas, maxItems))
}

// V2ProtoMemory is V2JSONMemory for [FromV2Proto]. It counts the spans and, as an upper bound for
// the items of a list, the fields of the largest span. JSON in an annotation yields further items,
// separated by commas.
func V2ProtoMemory(body []byte, maxItems int) int64 {
	const small = 4 << 10 // fields of smaller spans are not counted but estimated
	spans, items := 0, 0
	for b := body; len(b) > 0; {
		span, n := firstField(b)
		if n < 0 {
			break
		}
		b = b[n:]
		spans++
		if len(span) <= small {
			items = max(items, len(span)/2)
			continue
		}
		items = max(items, countFields(span)+bytes.Count(span, []byte{','}))
	}
	return baseMemory + perByte*int64(len(body)) + perSpan*int64(spans) + perItem*int64(min(items, maxItems))
}

// countFields returns the number of fields of an encoded message, up to the first invalid one.
func countFields(b []byte) (count int) {
	for len(b) > 0 {
		_, n := firstField(b)
		if n < 0 {
			break
		}
		b = b[n:]
		count++
	}
	return count
}

// firstField returns the content of the first field of a message, if it is length-delimited, and
// the length of the whole field. The length is negative if the field is invalid.
func firstField(b []byte) (content []byte, length int) {
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

// V1JSONMemory is V2JSONMemory for [FromV1JSON]. It counts braces, because each span, annotation
// and endpoint starts with one. For many empty objects, the length of the body gives a lower bound.
func V1JSONMemory(body []byte, maxItems int) int64 {
	braces := bytes.Count(body, []byte{'{'})
	return min(baseMemory+perByte*int64(len(body))+perSpan*int64(braces), V1ThriftMemory(body, maxItems))
}

// V1ThriftMemory is V2JSONMemory for [FromV1Thrift]. It uses only the length of the body: lists
// cannot be counted without decoding.
func V1ThriftMemory(body []byte, _ int) int64 { return baseMemory + V1Growth*int64(len(body)) }
