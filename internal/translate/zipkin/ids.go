package zipkin

import (
	"encoding/binary"
	"unsafe"
)

// parseHex sets dst to the number that s writes in hexadecimal digits of either case, big-endian, with zeros in front. It reports whether
// s is such a number that fits: at least one digit, at most two for each byte of dst.
func parseHex(dst []byte, s string) bool {
	if len(s) == 0 || len(s) > 2*len(dst) {
		return false
	}
	clear(dst)
	b, end := bytesOf(s), len(dst)
	for ; len(b) >= 8; end -= 4 {
		v, ok := hex8(binary.LittleEndian.Uint64(b[len(b)-8:]))
		if !ok {
			return false
		}
		binary.LittleEndian.PutUint32(dst[end-4:], v)
		b = b[:len(b)-8]
	}
	for i := range b {
		d := hexDigit(b[len(b)-1-i])
		if d > 15 {
			return false
		}
		dst[end-1-i/2] |= d << (i % 2 * 4)
	}
	return true
}

// hex8 decodes eight digits at once. x holds them and v the four bytes they stand for, both with the first one lowest.
func hex8(x uint64) (v uint32, ok bool) {
	const each = ones // times a byte: that byte eight times
	digits := x&(0x0f*each) + x>>6&each*9
	letters := (digits + 6*each) >> 4 & each // 1 where the digit is above 9
	// Written again in lower case they must be what was read, letters beyond f and control characters aside.
	again := digits + '0'*each + letters*('a'-'9'-1)
	ok = x|0x20*each == again && digits&(0xf0*each) == 0 && (x|x>>1)&(0x20*each) == 0x20*each
	y := (digits<<4 | digits>>8) & 0x00ff00ff00ff00ff
	y = (y | y>>8) & 0x0000ffff0000ffff
	return uint32(y | y>>16), ok
}

// bytesOf returns the bytes of s without a copy. Nobody may write to them.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
