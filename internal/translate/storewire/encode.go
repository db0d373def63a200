package storewire

import (
	"bytes"
	"reflect"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Encoder encodes values into messages. The zero value is ready to use.
type Encoder struct {
	pieces [][]byte            // the beginning of the message
	before int                 // bytes of pieces
	buf    []byte              // the rest
	texts  map[string]uint64   // numbers of the texts in the message
	shapes map[shapeKey]uint64 // numbers of the shapes in the message
	limit  int                 // bytes per part; 0: no limit
	send   func([]byte) error  // nil: do not send
	memory *tracestore.Memory  // for texts
	err    error               // the first error
}

// shapeKey identifies a set of fields of a type.
type shapeKey struct {
	plan    *plan
	present uint64 // bits of the fields
}

// Append encodes the value to which v points, after others in the message.
func Append[T any](e *Encoder, v *T) error {
	if e.texts == nil {
		e.texts, e.shapes = make(map[string]uint64), make(map[shapeKey]uint64)
	}
	planOf(reflect.TypeFor[T]()).encode(e, reflect.ValueOf(v).Elem())
	return e.err
}

// Len returns the size of the message.
func (e *Encoder) Len() int { return e.before + len(e.buf) }

// Take returns the message in pieces, and starts a new one. Large byte slices of the values are
// pieces of the message.
func (e *Encoder) Take() [][]byte {
	pieces := append(e.pieces, e.buf)
	*e = Encoder{}
	return pieces
}

// Encode returns a message with one value.
func Encode[T any](v *T) ([]byte, error) {
	var e Encoder
	err := Append(&e, v)
	return bytes.Join(e.Take(), nil), err
}

// Send encodes one value and passes the message to send in parts of limit bytes; the last part may
// be shorter. Their concatenation is the message. send may keep a part. Memory for distinct texts
// is reserved.
func Send[T any](v *T, limit int, memory *tracestore.Memory, send func(part []byte) error) error {
	e := Encoder{limit: limit, send: send, memory: memory}
	if err := Append(&e, v); err != nil {
		return err
	}
	e.sendFull()
	if len(e.buf) > 0 && e.err == nil {
		e.err = send(e.buf)
	}
	return e.err
}

// sendFull sends full parts.
func (e *Encoder) sendFull() {
	for e.send != nil && len(e.buf) >= e.limit && e.err == nil {
		part := e.buf[:e.limit:e.limit]
		e.buf = append(make([]byte, 0, e.limit), e.buf[e.limit:]...)
		e.err = e.send(part)
	}
}

func (e *Encoder) head(major byte, n uint64) { e.buf = appendHead(e.buf, major, n) }

func (e *Encoder) null() { e.head(majorSimple, simpleNull) }

// pieceSize is the size from which a byte slice is a piece of the message instead of being copied.
const pieceSize = 4 << 10

func (e *Encoder) bytes(b []byte) {
	e.head(majorBytes, uint64(len(b)))
	if len(b) < pieceSize || e.send != nil {
		e.buf = append(e.buf, b...)
		return
	}
	e.pieces = append(e.pieces, e.buf, b)
	e.before += len(e.buf) + len(b)
	e.buf = nil
}

// numberMemory is the memory of a text in the map of texts, which is at least half full.
const numberMemory = 48

func (e *Encoder) text(s string) {
	if n, known := e.texts[s]; known {
		e.head(majorUint, n)
		return
	}
	if err := e.memory.Grow(numberMemory); err != nil && e.err == nil {
		e.err = err
	}
	e.texts[s] = uint64(len(e.texts))
	e.head(majorText, uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// structure encodes the fields of a struct that are not zero.
func (e *Encoder) structure(p *plan, v reflect.Value) {
	var present uint64
	n := 0
	for i := range p.fields {
		if f := &p.fields[i]; !f.plan.zero(v.Field(f.index)) {
			present |= 1 << i
			n++
		}
	}
	e.head(majorArray, uint64(1+n))
	e.shape(shapeKey{p, present}, n)
	for i := range p.fields {
		if present>>i&1 != 0 {
			p.fields[i].plan.encode(e, v.Field(p.fields[i].index))
		}
	}
}

func (e *Encoder) shape(k shapeKey, n int) {
	if number, known := e.shapes[k]; known {
		e.head(majorUint, number)
		return
	}
	e.shapes[k] = uint64(len(e.shapes))
	e.head(majorTag, tagShape)
	e.head(majorArray, uint64(n))
	for i := range k.plan.fields {
		if k.present>>i&1 != 0 {
			e.text(k.plan.fields[i].name)
		}
	}
}

// list encodes n values of a slice or an array.
func (e *Encoder) list(elem *plan, v reflect.Value, n int) {
	e.head(majorArray, uint64(n))
	for i := 0; i < n && e.err == nil; i++ {
		elem.encode(e, v.Index(i))
		e.sendFull()
	}
}
