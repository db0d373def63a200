package zipkin

import (
	"encoding/binary"
	"unsafe"
)

// parseHex sets dst to the big-endian number that s contains in hexadecimal digits of either case.
// It reports whether s has between 1 and 2*len(dst) digits and nothing else.
func parseHex(dst []byte, s string) bool {
	if len(s) == 0 || len(s) > 2*len(dst) {
		return false
	}
	clear(dst)
	b, end := unsafeBytes(s), len(dst)
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

// hex8 decodes eight digits in one step. x holds the digits and v the four decoded bytes, both with
// the first one in the lowest position.
func hex8(x uint64) (v uint32, ok bool) {
	const each = ones // n*each is the byte n in all eight positions
	digits := x&(0x0f*each) + x>>6&each*9
	letters := (digits + 6*each) >> 4 & each // 1 where the digit is above 9
	// Encoding the digits in lower case must give the input again. Letters beyond f and control
	// characters need the other two conditions.
	again := digits + '0'*each + letters*('a'-'9'-1)
	ok = x|0x20*each == again && digits&(0xf0*each) == 0 && (x|x>>1)&(0x20*each) == 0x20*each
	y := (digits<<4 | digits>>8) & 0x00ff00ff00ff00ff
	y = (y | y>>8) & 0x0000ffff0000ffff
	return uint32(y | y>>16), ok
}

// unsafeBytes returns the bytes of s without copying. They must not be modified.
func unsafeBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
