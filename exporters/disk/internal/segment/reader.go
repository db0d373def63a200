package segment

import (
	"encoding/binary"
	"errors"
	"math"
)

var (
	errShort = errors.New("it is cut short")
	errLong  = errors.New("something follows its end")
)

// reader reads the parts of a section. After the first error it returns zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

// end returns the first error, and one if anything is left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		return errLong
	}
	return r.err
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// int reads a number that must be an int.
func (r *reader) int() int {
	v := r.uvarint()
	if v > math.MaxInt {
		r.fail(errors.New("a number is out of range"))
		return 0
	}
	return int(v)
}

// id reads a number that must be below limit.
func (r *reader) id(limit int) uint32 {
	v := r.uvarint()
	if v >= uint64(limit) {
		r.fail(errors.New("an id is out of range"))
		return 0
	}
	return uint32(v)
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail(errShort)
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
