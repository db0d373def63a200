package native

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// BaseMemory is the fixed part of a translation's memory, in bytes.
	BaseMemory = 64 << 10
	// TypicalGrowth is the maximum size of the output of ordinary requests, as a multiple of the
	// request. Hostile requests reach [MaxGrowth].
	TypicalGrowth = 2
)

// PostSpansMemory returns the maximum number of bytes that [FromPostSpans] holds, besides the
// request, as long as its output does not exceed growth times the size of the request plus
// BaseMemory.
func PostSpansMemory(request []byte, growth int) int64 {
	lists := 0
	for _, batch := range fieldsOf(request) {
		lists = max(lists, listsOf(batch))
	}
	return workMemory(len(request), growth, lists)
}

// SpansMemory is PostSpansMemory for [FromSpans].
func SpansMemory(growth int, messages ...[]byte) int64 {
	size, lists := 0, 0
	for _, m := range messages {
		size, lists = size+len(m), max(lists, listsOf(m))
	}
	return workMemory(size, growth, lists)
}

// ModelSpansMemory is PostSpansMemory for [FromModelSpans].
func ModelSpansMemory(growth int, spans ...[]byte) int64 {
	const sorting = 128 // for each span
	size, lists := 0, 0
	for _, span := range spans {
		size, lists = size+len(span), max(lists, listMemory(span))
	}
	return workMemory(size, growth, lists) + sorting*int64(len(spans))
}

// workMemory adds up the memory of the result, of the buffer in which it was written, which grows
// by a quarter, and of the lists of the largest span, which are reused for all spans.
func workMemory(size, growth, lists int) int64 {
	output := int64(growth)*int64(size) + BaseMemory
	return output + output/4*5 + int64(lists)
}

// listsOf returns the maximum memory of the lists of any one field of a message, each a span or a
// process.
func listsOf(message []byte) (largest int) {
	for _, part := range fieldsOf(message) {
		largest = max(largest, listMemory(part))
	}
	return largest
}

// listMemory returns the maximum memory of the lists of one span or process. In large messages,
// which may consist mostly of text, it counts the items.
func listMemory(message []byte) int {
	const (
		small   = 16 << 10
		perByte = 40 // if all items are empty
		// For a link, in slices that have grown and in the output, which is checked after the span.
		perItem          = 320
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
	allowed := MaxItems(message) // FromPostSpans fails at the next one
	return perItem * (min(items, allowed) + min(ofProcess, allowed))
}

func count(message []byte) (n int) {
	for range fieldsOf(message) {
		n++
	}
	return n
}

// fieldsOf yields the fields of an encoded message, with the content of length-delimited ones, up
// to the first malformed field.
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
