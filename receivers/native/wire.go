package native

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/internal/translate/native"
)

// wireFormat is a form of a batch on the wire.
type wireFormat struct {
	transport string
	translate func(body []byte) (otlp []byte, err error)
	memory    func(body []byte) int64 // bound of what translate holds at once, besides the body
}

var (
	postSpans   = wireFormat{"grpc", native.FromPostSpans, postSpansMemory}
	thriftBatch = wireFormat{"http", fromThrift, thriftMemory}
)

func fromThrift(body []byte) ([]byte, error) {
	b, err := native.FromThrift(body, native.Binary)
	return b.OTLP, err
}

// base is what a translation takes whatever it is of, in bytes.
const base = 64 << 10

// thriftMemory: no tag, log or reference takes less than 15 bytes in the binary protocol, which holds lists and output down.
func thriftMemory(body []byte) int64 {
	const perByte = 10
	return perByte*int64(len(body)) + base
}

// postSpansMemory is that of an output as applications make it, in its buffer and as it is kept, and that of the lists of the largest span:
// one span after the other uses them. A hostile output can be native.Growth times as large as the body until its translation ends, when
// it is charged for what it is; there is no more than one for each processor.
func postSpansMemory(body []byte) int64 {
	const perByte = 3
	lists := 0
	for _, batch := range fields(body) {
		for _, part := range fields(batch) { // a span or the process
			lists = max(lists, listMemory(part))
		}
	}
	return perByte*int64(len(body)) + int64(lists) + base
}

// listMemory bounds the memory of the lists of a span or a process. What is large may be text, so its items are counted.
func listMemory(message []byte) int {
	const (
		small            = 16 << 10
		perByte          = 40  // of empty items
		perItem          = 128 // bytes, of a slice that has grown
		logs, ownProcess = 9, 10
	)
	if len(message) <= small {
		return perByte * len(message)
	}
	items := 0
	for num, item := range fields(message) {
		items++
		if num == logs || num == ownProcess {
			for range fields(item) {
				items++
			}
		}
	}
	return perItem * items
}

// fields yields the fields of an encoded message, with their contents where they have a length, up to the first that is none.
func fields(message []byte) iter.Seq2[protowire.Number, []byte] {
	return func(yield func(protowire.Number, []byte) bool) {
		for len(message) > 0 {
			num, typ, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				return
			}
			n := protowire.ConsumeFieldValue(num, typ, message[tag:])
			if n < 0 {
				return
			}
			var content []byte
			if typ == protowire.BytesType {
				content, _ = protowire.ConsumeBytes(message[tag:])
			}
			if message = message[tag+n:]; !yield(num, content) {
				return
			}
		}
	}
}
