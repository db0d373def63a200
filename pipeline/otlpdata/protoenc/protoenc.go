// Package protoenc appends protobuf fields to byte slices and reads encoded fields, without message
// types and reflection.
//
// All appended field numbers must be below 16, so that a tag takes one byte. As in proto3, strings
// and numbers are omitted if they have the default value; AppendBytes and AppendHeader always
// write.
package protoenc

import (
	"encoding/binary"
	"math/bits"
)

// Wire types of the protobuf encoding (https://protobuf.dev/programming-guides/encoding/).
const (
	Varint     = 0
	Fixed64    = 1
	Length     = 2
	StartGroup = 3
	EndGroup   = 4
	Fixed32    = 5
)

// SizeVarint returns the number of bytes of a varint.
func SizeVarint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// SizeUint returns the number of bytes that AppendUint appends.
func SizeUint(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + SizeVarint(v)
}

// SizeBytes returns the number of bytes of a field with a content of n bytes.
func SizeBytes(n int) int { return 1 + SizeVarint(uint64(n)) + n }

// SizeString returns the number of bytes that AppendString appends.
func SizeString(s string) int {
	if s == "" {
		return 0
	}
	return SizeBytes(len(s))
}

// AppendHeader appends the tag and the length of a length-delimited field. The caller appends its
// content.
func AppendHeader(dst []byte, num, length int) []byte {
	if length < 0x80 {
		return append(dst, byte(num<<3|Length), byte(length))
	}
	return binary.AppendUvarint(append(dst, byte(num<<3|Length)), uint64(length))
}

// AppendBytes appends bytes or an encoded message, even if it is empty.
func AppendBytes(dst []byte, num int, b []byte) []byte {
	return append(AppendHeader(dst, num, len(b)), b...)
}

// AppendString appends a string, unless it is empty.
func AppendString(dst []byte, num int, s string) []byte {
	if s == "" {
		return dst
	}
	return append(AppendHeader(dst, num, len(s)), s...)
}

// AppendUint appends a varint, unless it is 0.
func AppendUint(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, byte(num<<3|Varint)), v)
}

// AppendFixed64 appends a number of fixed size, unless it is 0.
func AppendFixed64(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.LittleEndian.AppendUint64(append(dst, byte(num<<3|Fixed64)), v)
}

// BeginMessage appends the tag of a message whose length is not known yet, and reserves bytes for
// the length. at is the position of its content, for EndMessage.
func BeginMessage(dst []byte, num, reserved int) (out []byte, at int) {
	dst = append(dst, byte(num<<3|Length))
	for range reserved {
		dst = append(dst, 0)
	}
	return dst, len(dst)
}

// EndMessage writes the length of the message whose content begins at position at. The length is
// written in its shortest form: the content is moved if that form does not take the reserved number
// of bytes.
func EndMessage(dst []byte, at, reserved int) []byte {
	n := len(dst) - at
	need := SizeVarint(uint64(n))
	switch {
	case need < reserved:
		copy(dst[at-reserved+need:], dst[at:])
		dst = dst[:len(dst)-reserved+need]
	case need > reserved:
		for range need - reserved {
			dst = append(dst, 0)
		}
		copy(dst[at-reserved+need:], dst[at:at+n])
	}
	binary.PutUvarint(dst[at-reserved:], uint64(n))
	return dst
}
