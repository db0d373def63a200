package namelist

import (
	"bytes"
	"slices"
)

const (
	escaped    = 0xFF // follows a byte 0 of a text
	terminator = 0x01 // follows a byte 0 that ends a part
	endLength  = 2    // bytes that end a part
)

// operationsMissing is the flag of a service with operations that are not in the list.
const operationsMissing = 1

// appendText appends a text as the beginning of a part.
func appendText[T string | []byte](dst []byte, text T) []byte {
	for i := range len(text) {
		if dst = append(dst, text[i]); text[i] == 0 {
			dst = append(dst, escaped)
		}
	}
	return dst
}

// appendPart appends a text as a part.
func appendPart(dst []byte, text string) []byte { return append(appendText(dst, text), 0, terminator) }

// textOf returns the text of a part without its end. The result may share memory with part.
func textOf(part []byte) []byte {
	if bytes.IndexByte(part, 0) < 0 {
		return part
	}
	return bytes.ReplaceAll(part, []byte{0, escaped}, []byte{0})
}

// kinds returns the kinds of spans in the order of their texts.
func kinds() [6]string {
	return [...]string{"", "client", "consumer", "internal", "producer", "server"}
}

var kindTexts = kinds()

// kindByte returns the byte for a kind.
func kindByte(kind string) (byte, bool) {
	i, ok := slices.BinarySearch(kindTexts[:], kind)
	return byte(i), ok
}

// lastPart splits a key into its last part, without the end, and its last byte. ok is false if the
// key does not have the form of a key that begins with prefix.
func lastPart(key []byte, prefix int) (part []byte, last byte, ok bool) {
	end := len(key) - 1 - endLength
	if end < prefix || key[end] != 0 || key[end+1] != terminator {
		return nil, 0, false
	}
	return key[prefix:end], key[len(key)-1], true
}
