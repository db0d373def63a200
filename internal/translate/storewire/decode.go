package storewire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Decoder decodes the values of a message, which may come from any process. It reserves memory
// before allocating it, in proportion to the message.
type Decoder struct {
	// TextBytes is the part of the reserved memory that is for texts. Equal texts of a message
	// share memory.
	TextBytes int64

	rest    []byte
	memory  *tracestore.Memory
	answer  bool
	texts   []string
	shapes  []shape
	omitted []string // names of unknown fields

	depth, parts, patterns, steps int // see the limits of a message
}

// shape lists the fields of a struct that are in the message.
type shape struct {
	names []string
	plan  *plan // that fields are for
	index []int // in plan.fields, -1: unknown
}

var errEnded = invalid("message ends early, or the length of an item exceeds it")

// NewQuestion returns the decoder for a request. Unknown fields are errors, because ignoring them
// would change the request.
func NewQuestion(message []byte, memory *tracestore.Memory) *Decoder {
	return &Decoder{rest: message, memory: memory}
}

// NewAnswer returns the decoder for a response. It ignores unknown fields.
func NewAnswer(message []byte, memory *tracestore.Memory) *Decoder {
	return &Decoder{rest: message, memory: memory, answer: true}
}

// Next decodes the next value of the message into v, which must be zero. Its byte slices alias the
// message.
func Next[T any](d *Decoder, v *T) error {
	return planOf(reflect.TypeFor[T]()).read(d, reflect.ValueOf(v).Elem())
}

// Done reports whether the message has no further values.
func (d *Decoder) Done() bool { return len(d.rest) == 0 }

// Only is like [Next] for a message that has one value.
func Only[T any](d *Decoder, v *T) error {
	if err := Next(d, v); err != nil {
		return err
	}
	if !d.Done() {
		return invalid("%d bytes after the value", len(d.rest))
	}
	return nil
}

// maxSmall is the size in bytes of the largest request that needs no reserved memory.
const maxSmall = 4 << 10

// Small decodes a short request of one value, such as [Hello].
func Small[T any](question []byte, v *T) error {
	if len(question) > maxSmall {
		return invalid("question with %d bytes; it may have %d", len(question), maxSmall)
	}
	return Only(NewQuestion(question, nil), v)
}

// Omitted says which parts of a response are unknown to this program.
func (d *Decoder) Omitted() tracestore.Reasons {
	if len(d.omitted) == 0 {
		return nil
	}
	return tracestore.Because(tracestore.ReasonOther, fmt.Sprintf(
		"the store is newer than this process, which does not know %s of its response", strings.Join(d.omitted, ", ")))
}

// maxOmitted is the number of unknown fields that are named.
const maxOmitted = 5

// unknown is called for an unknown field.
func (d *Decoder) unknown(p *plan, name string) error {
	name = p.typ.Name() + "." + strings.ToValidUTF8(name[:min(len(name), 64)], "")
	if !d.answer {
		return invalid("unknown field %s; the server may be older than the client", name)
	}
	if len(d.omitted) < maxOmitted && !slices.Contains(d.omitted, name) {
		d.omitted = append(d.omitted, name)
	}
	return d.skip(0)
}

// skip skips an item, and remembers its texts and shapes.
func (d *Decoder) skip(depth int) error {
	if depth > MaxDepth {
		return invalid("unknown value is nested more than %d deep", MaxDepth)
	}
	if len(d.rest) > 0 && d.rest[0]>>5 == majorTag {
		return d.newShape()
	}
	major, n, err := d.head()
	if err != nil {
		return err
	}
	switch major {
	case majorBytes:
		_, err = d.take(n)
	case majorText:
		_, err = d.newText(n)
	case majorArray:
		for ; n > 0 && err == nil; n-- {
			err = d.skip(depth + 1)
		}
	case majorMap:
		return invalid("map")
	}
	return err
}

// structure decodes the fields of a struct.
func (d *Decoder) structure(p *plan, v reflect.Value) error {
	n, err := d.count()
	if err != nil {
		return err
	}
	s, err := d.shape(p)
	if err != nil {
		return err
	}
	if n != 1+len(s.names) {
		return invalid("%s has %d fields, its shape has %d", p.typ.Name(), n-1, len(s.names))
	}
	// Values within this one may add shapes.
	for i, at := range s.index {
		if at < 0 {
			err = d.unknown(p, s.names[i])
		} else {
			f := &p.fields[at]
			err = f.plan.read(d, v.Field(f.index))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shape reads the shape of a struct.
func (d *Decoder) shape(p *plan) (shape, error) {
	if len(d.rest) > 0 && d.rest[0]>>5 == majorTag {
		if err := d.newShape(); err != nil {
			return shape{}, err
		}
		s := &d.shapes[len(d.shapes)-1]
		err := d.resolve(s, p)
		return *s, err
	}
	n, err := d.item(majorUint)
	if err != nil {
		return shape{}, err
	}
	if n >= uint64(len(d.shapes)) {
		return shape{}, invalid("shape %d; the message has only %d", n, len(d.shapes))
	}
	s := &d.shapes[n]
	err = d.resolve(s, p)
	return *s, err
}

// maxNames is the maximum number of fields of a shape, also in messages of newer programs.
const maxNames = 256

// shapeMemory is the memory of a shape without its fields, nameMemory the memory of a field.
const (
	shapeMemory = 64
	nameMemory  = 24
)

// newShape reads a shape that is new in the message.
func (d *Decoder) newShape() error {
	if tag, err := d.item(majorTag); err != nil || tag != tagShape {
		return invalid("tag %d, want %d", tag, tagShape)
	}
	n, err := d.count()
	if err != nil {
		return err
	}
	if n > maxNames {
		return invalid("shape with %d fields; it may have %d", n, maxNames)
	}
	if err := d.memory.Grow(shapeMemory + int64(n)*nameMemory); err != nil {
		return err
	}
	names := make([]string, n)
	for i := range names {
		if names[i], err = d.text(); err != nil {
			return err
		}
	}
	d.shapes = append(d.shapes, shape{names: names})
	return nil
}

// resolve looks up the fields of a shape in a type.
func (d *Decoder) resolve(s *shape, p *plan) error {
	if s.plan == p {
		return nil
	}
	index := make([]int, len(s.names))
	var seen uint64
	for i, name := range s.names {
		at, known := p.names[name]
		if !known {
			index[i] = -1
			continue
		}
		if seen>>at&1 != 0 {
			return invalid("duplicate field %s.%s", p.typ.Name(), name)
		}
		seen |= 1 << at
		index[i] = at
	}
	s.plan, s.index = p, index
	return nil
}

// list decodes a slice.
func (d *Decoder) list(elem *plan, v reflect.Value) error {
	n, err := d.count()
	if err != nil {
		return err
	}
	if err := d.memory.Grow(int64(n) * int64(elem.typ.Size())); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		if err := elem.read(d, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}
