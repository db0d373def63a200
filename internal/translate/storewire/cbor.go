package storewire

import (
	"encoding/binary"
	"math"
)

// Major types of CBOR items.
const (
	majorUint byte = iota
	majorNegative
	majorBytes
	majorText
	majorArray
	majorMap
	majorTag
	majorSimple
)

// Additional information of the first byte of an item.
const (
	oneByte    = 24 // an argument of one byte follows, then of 2, 4 and 8 bytes
	eightBytes = 27
)

const (
	simpleFalse = 20
	simpleTrue  = 21
	simpleNull  = 22
	tagShape    = 6
)

// appendHead appends the first bytes of an item.
func appendHead(b []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < oneByte:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|oneByte, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|oneByte+1), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|oneByte+2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|eightBytes), n)
}

// head reads the first bytes of an item. For floats, n has the bits.
func (d *Decoder) head() (major byte, n uint64, err error) {
	if len(d.rest) == 0 {
		return 0, 0, errEnded
	}
	major, info := d.rest[0]>>5, d.rest[0]&31
	if info < oneByte {
		d.rest = d.rest[1:]
		return major, uint64(info), nil
	}
	if info > eightBytes {
		return 0, 0, invalid("item with reserved or indefinite length")
	}
	size := 1 << (info - oneByte)
	if len(d.rest) < 1+size {
		return 0, 0, errEnded
	}
	for _, b := range d.rest[1 : 1+size] {
		n = n<<8 | uint64(b)
	}
	d.rest = d.rest[1+size:]
	if major == majorSimple && info != eightBytes {
		return 0, 0, invalid("value is neither a boolean nor null nor a 64-bit float")
	}
	return major, n, nil
}

// item reads the first bytes of an item of a major type.
func (d *Decoder) item(want byte) (uint64, error) {
	major, n, err := d.head()
	if err == nil && major != want {
		return 0, invalid("item of type %d, want %d", major, want)
	}
	return n, err
}

// count reads the number of items of an array. It fails if less than one byte per item is left.
func (d *Decoder) count() (int, error) {
	n, err := d.item(majorArray)
	if err == nil && n > uint64(len(d.rest)) {
		return 0, errEnded
	}
	return int(n), err
}

// isNull reads null if it is the next item.
func (d *Decoder) isNull() bool {
	if len(d.rest) == 0 || d.rest[0] != majorSimple<<5|simpleNull {
		return false
	}
	d.rest = d.rest[1:]
	return true
}

// bytes reads a byte string. The result aliases the message.
func (d *Decoder) bytes() ([]byte, error) {
	n, err := d.item(majorBytes)
	if err != nil {
		return nil, err
	}
	return d.take(n)
}

func (d *Decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.rest)) {
		return nil, errEnded
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b, nil
}

// text reads a text, or the number of an earlier text in the message.
func (d *Decoder) text() (string, error) {
	major, n, err := d.head()
	switch {
	case err != nil:
		return "", err
	case major == majorUint && n < uint64(len(d.texts)):
		return d.texts[n], nil
	case major == majorUint:
		return "", invalid("text %d; the message has only %d", n, len(d.texts))
	case major != majorText:
		return "", invalid("item of type %d, want a text", major)
	}
	return d.newText(n)
}

// textMemory is the memory of a text besides its bytes.
const textMemory = 32

func (d *Decoder) newText(n uint64) (string, error) {
	b, err := d.take(n)
	if err != nil {
		return "", err
	}
	d.TextBytes += textMemory + int64(n)
	if err := d.memory.Grow(textMemory + int64(n)); err != nil {
		return "", err
	}
	text := string(b)
	d.texts = append(d.texts, text)
	return text, nil
}
