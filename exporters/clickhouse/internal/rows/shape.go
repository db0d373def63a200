package rows

import (
	"encoding/binary"
	"math/bits"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// A shape is an encoded message without the values that differ between similar spans, and without
// the lengths of messages. Shapes repeat, so they are stored in a dictionary. For each field, a
// shape has the tag and the content that its part prescribes.

// part says where the content of a field is stored.
type part uint8

const (
	partKept    part = iota // the content is in the shape
	partText                // the shape has the form of a text; see form
	partRest                // the content is in the rest, with its length if it has one
	partMoment              // the rest has the time since the start of the span
	partMessage             // the shape has the size of the shape of the message, and that shape
)

// rule says how to store a field with a given tag.
type rule struct {
	part   part
	fields *rules
}

// rules are the rules of a message by tag. Other fields are kept, or stored in the rest if their
// size is not fixed or is eight bytes.
type rules map[uint64]rule

// tag returns the tag of a field.
func tag(num, wire int) uint64 { return uint64(num)<<3 | uint64(wire) }

// spanRules are the rules of the message Span of OTLP.
var spanRules = func() *rules {
	bytes, fixed := protoenc.Length, protoenc.Fixed64
	value := &rules{tag(1, bytes): {part: partText}, tag(3, protoenc.Varint): {part: partRest}, tag(4, fixed): {part: partRest},
		tag(5, bytes): {part: partText}, tag(6, bytes): {part: partText}}
	attribute := &rules{tag(1, bytes): {part: partKept}, tag(2, bytes): {partMessage, value}}
	event := &rules{tag(1, fixed): {part: partMoment}, tag(2, bytes): {part: partText}, tag(3, bytes): {partMessage, attribute}}
	link := &rules{tag(3, bytes): {part: partText}, tag(4, bytes): {partMessage, attribute}}
	status := &rules{tag(2, bytes): {part: partText}}
	return &rules{tag(9, bytes): {partMessage, attribute}, tag(11, bytes): {partMessage, event}, tag(13, bytes): {partMessage, link},
		tag(15, bytes): {partMessage, status}}
}()

// of returns the rule of a tag.
func (r *rules) of(tag uint64) rule {
	one, ok := (*r)[tag]
	if !ok && (tag&7 == protoenc.Length || tag&7 == protoenc.Fixed64) {
		one.part = partRest
	}
	return one
}

// cut is a span in parts.
type cut struct {
	start       uint64
	shape, rest []byte
	template    []byte   // scratch of digits
	texts       [][]byte // parts of the span or of template
}

func (c *cut) reset(start uint64) {
	c.start, c.shape, c.rest, c.template = start, c.shape[:0], c.rest[:0], c.template[:0]
	clear(c.texts)
	c.texts = c.texts[:0]
}

// number reads a number, and reports whether it is encoded in its shortest form.
func number[T string | []byte](b T) (v uint64, size int, ok bool) {
	for shift := 0; size < len(b) && size < binary.MaxVarintLen64; shift += 7 {
		x := b[size]
		v |= uint64(x&0x7f) << shift
		if size++; x < 0x80 {
			return v, size, size == (bits.Len64(v|1)+6)/7
		}
	}
	return 0, 0, false
}

// message adds the fields of a message. It reports whether the message can be restored, which
// requires that its numbers have the shortest form.
func (c *cut) message(raw []byte, fields *rules) bool {
	for len(raw) > 0 {
		tag, size, ok := number(raw)
		if !ok {
			return false
		}
		c.shape = append(c.shape, raw[:size]...)
		raw = raw[size:]
		content, size, ok := contentOf(raw, int(tag&7))
		if !ok || !c.field(raw[:size], content, fields.of(tag)) {
			return false
		}
		raw = raw[size:]
	}
	return true
}

// contentOf returns the content of a field, which is the end of the first size bytes.
func contentOf[T string | []byte](raw T, wire int) (content T, size int, ok bool) {
	switch wire {
	case protoenc.Varint:
		_, size, ok = number(raw)
		return raw[:size], size, ok
	case protoenc.Fixed64:
		size = 8
	case protoenc.Fixed32:
		size = 4
	case protoenc.Length:
		n, head, ok := number(raw)
		if !ok || n > uint64(len(raw)-head) {
			return content, 0, false
		}
		return raw[head : head+int(n)], head + int(n), true
	default:
		return content, 0, false
	}
	if len(raw) < size {
		return content, 0, false
	}
	return raw[:size], size, true
}

// field adds the content of a field. whole is the content with its length, if it has one.
func (c *cut) field(whole, content []byte, r rule) bool {
	switch r.part {
	case partText:
		c.shape = append(c.shape, byte(c.text(content)))
	case partRest:
		c.rest = append(c.rest, whole...)
	case partMoment:
		c.rest = binary.AppendUvarint(c.rest, binary.LittleEndian.Uint64(content)-c.start)
	case partMessage:
		at := len(c.shape) + 1
		c.shape = append(c.shape, 0)
		ok := c.message(content, r.fields)
		c.shape = protoenc.EndMessage(c.shape, at, 1)
		return ok
	default:
		c.shape = append(c.shape, whole...)
	}
	return true
}

// joint restores a message from its parts.
type joint struct {
	start uint64
	texts []string
	rest  string
}

// next returns the next bytes of the rest.
func (j *joint) next(size int, ok bool) (string, error) {
	if !ok || size > len(j.rest) {
		return "", errBody
	}
	s := j.rest[:size]
	j.rest = j.rest[size:]
	return s, nil
}

// append appends the message with a shape.
func (j *joint) append(dst []byte, shape string, fields *rules) (_ []byte, err error) {
	for len(shape) > 0 {
		tag, size, ok := number(shape)
		if !ok {
			return dst, errBody
		}
		dst = append(dst, shape[:size]...)
		shape = shape[size:]
		r := fields.of(tag)
		switch r.part {
		case partKept, partMessage:
			content, size, ok := contentOf(shape, int(tag&7))
			if !ok {
				return dst, errBody
			}
			if r.part == partKept {
				dst = append(dst, shape[:size]...)
			} else if dst, err = j.message(dst, content, r.fields); err != nil {
				return dst, err
			}
			shape = shape[size:]
		case partText:
			if shape == "" {
				return dst, errBody
			}
			if dst, err = j.text(dst, form(shape[0])); err != nil {
				return dst, err
			}
			shape = shape[1:]
		default:
			if dst, err = j.value(dst, r.part, int(tag&7)); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

// message appends a message with its length.
func (j *joint) message(dst []byte, shape string, fields *rules) ([]byte, error) {
	at := len(dst) + 1
	dst, err := j.append(append(dst, 0), shape, fields)
	return protoenc.EndMessage(dst, at, 1), err
}

// value appends a value that is in the rest.
func (j *joint) value(dst []byte, p part, wire int) ([]byte, error) {
	if p == partMoment {
		since, size, ok := number(j.rest)
		if _, err := j.next(size, ok); err != nil {
			return dst, err
		}
		return binary.LittleEndian.AppendUint64(dst, j.start+since), nil
	}
	_, size, ok := contentOf(j.rest, wire)
	s, err := j.next(size, ok)
	return append(dst, s...), err
}
