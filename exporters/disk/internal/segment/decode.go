package segment

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var (
	errTruncated = errors.New("truncated")
	errTrailing  = errors.New("trailing data")
)

// reader decodes the parts of a section. After the first error it returns zero values.
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

// end returns the first error, or an error if data is left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		return errTrailing
	}
	return r.err
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// int decodes a number that must fit an int.
func (r *reader) int() int {
	v := r.uvarint()
	if v > math.MaxInt {
		r.fail(errors.New("number out of range"))
		return 0
	}
	return int(v)
}

// id decodes a number that must be less than limit.
func (r *reader) id(limit int) uint32 {
	v := r.uvarint()
	if v >= uint64(limit) {
		r.fail(errors.New("id out of range"))
		return 0
	}
	return uint32(v)
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail(errTruncated)
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// cursor iterates over the cells of a row in the encoding of package rows. After it has moved
// beyond the end, it returns zero values and done stays false.
type cursor struct {
	b  []byte
	at int
}

// beyond is the position of a cursor after an attempt to read beyond the end.
const beyond = math.MaxInt / 2

// done reports whether the cursor is exactly at the end.
func (c *cursor) done() bool { return c.at == len(c.b) }

func (c *cursor) uvarint() uint64 {
	if at := c.at; at < len(c.b) {
		if v := c.b[at]; v < 0x80 {
			c.at = at + 1
			return uint64(v)
		}
	}
	return c.longUvarint()
}

func (c *cursor) longUvarint() uint64 {
	if c.at < len(c.b)-1 && c.b[c.at+1] < 0x80 {
		c.at += 2
		return uint64(c.b[c.at-2]&0x7f) | uint64(c.b[c.at-1])<<7
	}
	if c.at < len(c.b) {
		if v, n := binary.Uvarint(c.b[c.at:]); n > 0 {
			c.at += n
			return v
		}
	}
	c.at = beyond
	return 0
}

// skip skips n bytes.
func (c *cursor) skip(n uint64) {
	if c.at > len(c.b) || n > uint64(len(c.b)-c.at) {
		c.at = beyond
		return
	}
	c.at += int(n)
}

// text decodes a text, which aliases the row.
func (c *cursor) text() string {
	n := c.uvarint()
	from := c.at
	c.skip(n)
	if c.at > len(c.b) || n == 0 {
		return ""
	}
	return unsafe.String(&c.b[from], n)
}

// cellForm is the encoding of a cell in a row.
type cellForm uint8

const (
	cellNothing cellForm = iota
	cellString           // 1 + word, or 0 and a text
	cellZigzag
	cellByte
	cellFixed // 8 bytes
	cellText
)

func cellFormOf(k otlpdata.ValueKind) cellForm {
	switch k {
	case otlpdata.ValueEmpty:
		return cellNothing
	case otlpdata.ValueString:
		return cellString
	case otlpdata.ValueBool:
		return cellByte
	case otlpdata.ValueInt:
		return cellZigzag
	case otlpdata.ValueDouble:
		return cellFixed
	}
	return cellText
}

// pass skips a cell. If the cell is a word it returns 1 + word, otherwise 0.
func (c *cursor) pass(f cellForm) (word uint64) {
	switch f {
	case cellString:
		if word = c.uvarint(); word == 0 {
			c.skip(c.uvarint())
		}
	case cellZigzag:
		c.uvarint()
	case cellByte:
		c.skip(1)
	case cellFixed:
		c.skip(8)
	case cellText:
		c.skip(c.uvarint())
	}
	return word
}

// number decodes a numeric cell.
func (c *cursor) number(f cellForm) uint64 {
	if f == cellZigzag {
		v := c.uvarint()
		return v>>1 ^ -(v & 1)
	}
	from := c.at
	if f == cellByte {
		if c.skip(1); c.at <= len(c.b) {
			return uint64(c.b[from])
		}
	} else if c.skip(8); c.at <= len(c.b) {
		return binary.LittleEndian.Uint64(c.b[from:])
	}
	return 0
}
