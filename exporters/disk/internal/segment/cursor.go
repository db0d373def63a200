package segment

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// cursor goes over the cells of a row, as package rows writes them. After the end it returns zeros, and is not at the end any more.
type cursor struct {
	b  []byte
	at int
}

// beyond is where a cursor is that was to read more than there is.
const beyond = math.MaxInt / 2

// done reports whether all was read, and nothing beyond.
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

// skip passes over n bytes.
func (c *cursor) skip(n uint64) {
	if c.at > len(c.b) || n > uint64(len(c.b)-c.at) {
		c.at = beyond
		return
	}
	c.at += int(n)
}

// text reads a text, which aliases the row.
func (c *cursor) text() string {
	n := c.uvarint()
	from := c.at
	c.skip(n)
	if c.at > len(c.b) || n == 0 {
		return ""
	}
	return unsafe.String(&c.b[from], n)
}

// cellForm is how a cell is written in a row.
type cellForm uint8

const (
	cellNothing cellForm = iota
	cellString           // number of a word, or 0 and a text
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

// pass passes over a cell. It returns the number of the word if the cell is one, else 0.
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

// number reads a cell of one of the forms of numbers.
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
