package column

import (
	"encoding/binary"
	"fmt"
)

// reader reads the parts of an encoded column. After the first failure it is empty and every read
// returns zero, so callers need not check each read, but must check before they use the values.
type reader struct {
	b      []byte
	reason string // why the column is corrupt; "" if it is not
}

func (r *reader) fail(reason string) {
	if r.reason == "" {
		r.reason, r.b = reason, nil
	}
}

func (r *reader) failed() bool { return r.reason != "" }

// end returns an error if a read failed or bytes remain.
func (r *reader) end(kind string) error {
	if len(r.b) > 0 {
		r.fail(fmt.Sprintf("%d trailing bytes", len(r.b)))
	}
	if r.failed() {
		return fmt.Errorf("%w of %s: %s", ErrCorrupt, kind, r.reason)
	}
	return nil
}

// take returns the next n bytes, or nil.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail("truncated")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("invalid number")
		return 0
	}
	r.b = r.b[n:]
	return x
}

// count reads a number between 1 and limit.
func (r *reader) count(limit int) int {
	n := r.uvarint()
	if n == 0 || n > uint64(limit) {
		r.fail(fmt.Sprintf("count %d is not between 1 and %d", n, limit))
		return 0
	}
	return int(n)
}

// signed reads a zigzag number as two's complement.
func (r *reader) signed() uint64 { return unzigzag(r.uvarint()) }

func appendSigned(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, zigzag(v)) }

// zigzag maps two's complement numbers of small magnitude to small numbers.
func zigzag(v uint64) uint64 { return v<<1 ^ uint64(int64(v)>>63) }

func unzigzag(u uint64) uint64 { return u>>1 ^ -(u & 1) }
