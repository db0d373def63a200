package native

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// Base is what a translation takes whatever it is of, in bytes.
	Base = 64 << 10
	// UsualGrowth bounds what becomes of a request as applications send it, as a multiple of the request. Of others it can be [Growth].
	UsualGrowth = 2
)

// PostSpansMemory bounds what [FromPostSpans] holds at once, besides the request, while it makes at most growth times the request and Base
// bytes.
func PostSpansMemory(request []byte, growth int) int64 {
	lists := 0
	for _, batch := range fieldsOf(request) {
		lists = max(lists, listsOf(batch))
	}
	return workMemory(len(request), growth, lists)
}

// SpansMemory is that of [FromSpans] in the same way.
func SpansMemory(growth int, messages ...[]byte) int64 {
	size, lists := 0, 0
	for _, m := range messages {
		size, lists = size+len(m), max(lists, listsOf(m))
	}
	return workMemory(size, growth, lists)
}

// workMemory is that of the output, as it is kept and in its buffer, which grows by a quarter, and that of the lists of the largest span: one
// span after the other uses them.
func workMemory(size, growth, lists int) int64 {
	output := int64(growth)*int64(size) + Base
	return output + output/4*5 + int64(lists)
}

// listsOf bounds the memory of the lists of the parts of a message, each a span or a process.
func listsOf(message []byte) (most int) {
	for _, part := range fieldsOf(message) {
		most = max(most, listMemory(part))
	}
	return most
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
	for num, item := range fieldsOf(message) {
		items++
		switch num {
		case logs:
			items += count(item)
		case ownProcess:
			ofProcess += count(item)
		}
	}
	most := ItemsAllowed(message) // a translation ends at the next one
	return perItem * (min(items, most) + min(ofProcess, most))
}

func count(message []byte) (n int) {
	for range fieldsOf(message) {
		n++
	}
	return n
}

// fieldsOf yields the fields of an encoded message, with their contents where they have a length, up to the first that is none.
func fieldsOf(message []byte) iter.Seq2[protowire.Number, []byte] {
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
