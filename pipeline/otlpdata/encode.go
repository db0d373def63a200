package otlpdata

import "encoding/binary"

// AppendResourceSpans appends one ResourceSpans, as a field of an ExportTraceServiceRequest, that holds the given encoded spans under one
// resource and one scope. Of r and s only Raw and SchemaURL are used; spans are Span.Raw of each. It is how readers of a store give back
// what was sent without decoding it.
func AppendResourceSpans(dst []byte, r *Resource, s *Scope, spans ...[]byte) []byte {
	scopeSpans := fieldSize(len(s.Raw)) + textSize(s.SchemaURL)
	for _, sp := range spans {
		scopeSpans += fieldSize(len(sp))
	}
	dst = appendHead(dst, 1, fieldSize(len(r.Raw))+fieldSize(scopeSpans)+textSize(r.SchemaURL))
	dst = appendField(dst, 1, r.Raw)
	dst = appendHead(dst, 2, scopeSpans)
	dst = appendField(dst, 1, s.Raw)
	for _, sp := range spans {
		dst = appendField(dst, 2, sp)
	}
	dst = appendText(dst, 3, s.SchemaURL)
	return appendText(dst, 3, r.SchemaURL)
}

// All field numbers written here are below 16, so that a tag takes one byte.

func fieldSize(n int) int {
	size := 2 + n
	for l := n; l >= 0x80; l >>= 7 {
		size++
	}
	return size
}

func textSize(s string) int {
	if s == "" {
		return 0
	}
	return fieldSize(len(s))
}

func appendHead(dst []byte, num, length int) []byte {
	return binary.AppendUvarint(append(dst, byte(num<<3|wireLen)), uint64(length))
}

func appendField(dst []byte, num int, b []byte) []byte {
	return append(appendHead(dst, num, len(b)), b...)
}

func appendText(dst []byte, num int, s string) []byte {
	if s == "" {
		return dst
	}
	return append(appendHead(dst, num, len(s)), s...)
}
