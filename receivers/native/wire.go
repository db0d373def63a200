package native

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/internal/translate/native"
)

// wireFormat is a form of a batch on the wire.
type wireFormat struct {
	transport string
	// translate fails with [native.ErrOutput] where it makes more than most bytes, 0 being any number.
	translate func(body []byte, most int) (otlp []byte, err error)
	// memory bounds what translate holds at once, besides the body, while it makes at most growth times the body and base bytes.
	memory func(body []byte, growth int) int64
}

var (
	postSpans   = wireFormat{"grpc", native.FromPostSpans, postSpansMemory}
	thriftBatch = wireFormat{"http", fromThrift, thriftMemory}
)

// fromThrift needs no bound: the binary protocol is more verbose than what becomes of it.
func fromThrift(body []byte, _ int) ([]byte, error) {
	b, err := native.FromThrift(body, native.Binary)
	return b.OTLP, err
}

const (
	// base is what a translation takes whatever it is of, in bytes.
	base = 64 << 10
	// usualGrowth bounds what becomes of a body as applications send it, as a multiple of the body. Of others it can be [native.Growth].
	usualGrowth = 2
)

// thriftMemory: no tag, log or reference takes less than 15 bytes in the binary protocol, which holds lists and output down.
func thriftMemory(body []byte, _ int) int64 {
	const perByte = 10
	return perByte*int64(len(body)) + base
}

// postSpansMemory is that of the output, as it is kept and in its buffer, which grows by a quarter, and that of the lists of the largest span:
// one span after the other uses them.
func postSpansMemory(body []byte, growth int) int64 {
	lists := 0
	for _, batch := range fields(body) {
		for _, part := range fields(batch) { // a span or the process
			lists = max(lists, listMemory(part))
		}
	}
	output := int64(growth)*int64(len(body)) + base
	return output + output/4*5 + int64(lists)
}

// listMemory bounds the memory of the lists of a span or a process. What is large may be text, so its items are counted.
func listMemory(message []byte) int {
	const (
		small            = 16 << 10
		perByte          = 40  // of empty items
		perItem          = 320 // bytes, of a link: of slices that have grown, and of the output, which is found too large after the span
		logs, ownProcess = 9, 10
	)
	if len(message) <= small {
		return perByte * len(message)
	}
	items, ofProcess := 0, 0
	for num, item := range fields(message) {
		items++
		switch num {
		case logs:
			items += count(item)
		case ownProcess:
			ofProcess += count(item)
		}
	}
	most := native.ItemsAllowed(message) // a translation ends at the next one
	return perItem * (min(items, most) + min(ofProcess, most))
}

func count(message []byte) (n int) {
	for range fields(message) {
		n++
	}
	return n
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
