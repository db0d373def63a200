package native

import (
	"encoding/binary"
	"math/bits"
)

// Fields of the messages that are written (reference 3.2 and 3.3). All numbers are below 16, so that a tag takes one byte.
const (
	requestBatch = 1

	batchSpans   = 1
	batchProcess = 2

	processServiceName = 1
	processTags        = 2

	spanTraceID       = 1
	spanID            = 2
	spanOperationName = 3
	spanReferences    = 4
	spanFlags         = 5
	spanStartTime     = 6
	spanDuration      = 7
	spanTags          = 8
	spanLogs          = 9
	spanProcess       = 10
	spanWarnings      = 12

	refTraceID = 1
	refSpanID  = 2
	refRefType = 3

	logTimestamp = 1
	logFields    = 2

	tagKey     = 1
	tagType    = 2
	tagString  = 3
	tagBool    = 4
	tagInt64   = 5
	tagFloat64 = 6
	tagBinary  = 7

	timeSeconds = 1
	timeNanos   = 2
)

// Values of SpanRefType.
const (
	childOf     byte = 0
	followsFrom byte = 1
)

// Values of ValueType; STRING is 0, the default.
const (
	typeBool    byte = 1
	typeInt64   byte = 2
	typeFloat64 byte = 3
	typeBinary  byte = 4
)

// Wire types of the protobuf encoding (https://protobuf.dev/programming-guides/encoding/).
const (
	wireVarint = 0
	wireI64    = 1
	wireLen    = 2
)

func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// fieldSize is the size of a varint field, which is left out where it is 0.
func fieldSize(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + varintSize(v)
}

// nameSize is the size of a string field, which is left out where it is empty.
func nameSize(s string) int {
	if s == "" {
		return 0
	}
	return 1 + varintSize(uint64(len(s))) + len(s)
}

func appendHead(dst []byte, num, length int) []byte {
	if length < 0x80 {
		return append(dst, byte(num<<3|wireLen), byte(length))
	}
	return binary.AppendUvarint(append(dst, byte(num<<3|wireLen)), uint64(length))
}

// appendName appends a string field, unless it is empty.
func appendName(dst []byte, num int, s string) []byte {
	if s == "" {
		return dst
	}
	return append(appendHead(dst, num, len(s)), s...)
}

// appendLen appends an element of a repeated string field, which is there also when it is empty.
func appendLen(dst []byte, num int, s string) []byte {
	return append(appendHead(dst, num, len(s)), s...)
}

// appendBytes appends an encoded message as a field.
func appendBytes(dst []byte, num int, b []byte) []byte {
	return append(appendHead(dst, num, len(b)), b...)
}
