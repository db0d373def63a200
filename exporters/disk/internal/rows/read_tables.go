package rows

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ReadTables decodes a whole vocabulary. The definitions of each type must be in the order of their
// ids, without gaps. ReadTables does not retain b. Names and column lists that several shapes use
// are stored once. Errors match [ErrCorrupt].
func ReadTables(b []byte) (*Tables, error) {
	t := &Tables{interner: &interner{texts: map[string]string{}, lists: map[string][]uint32{}}}
	if n := countShapes(b); n > 0 {
		t.Shapes = make([]Shape, 0, n)
	}
	for len(b) > 0 {
		tag, payload, rest, err := NextItem(b)
		if err != nil {
			return nil, err
		}
		known, err := t.Define(tag, payload)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, corrupt(fmt.Sprintf("unknown item type %d", tag))
		}
		if t.lost != nil { // checked for each item, because Define fills gaps of ids
			return nil, corrupt("missing definition in a vocabulary")
		}
		b = rest
	}
	t.texts, t.interner = t.interner.owned, nil
	return t, nil
}

// countShapes returns the number of shapes of an encoded vocabulary. It ignores items that are too
// short for a shape.
func countShapes(b []byte) (n int) {
	const minShapeSize = 7
	for len(b) > 0 {
		tag, payload, rest, err := NextItem(b)
		if err != nil {
			return n
		}
		if tag == TagShape && len(payload) >= minShapeSize {
			n++
		}
		b = rest
	}
	return n
}

// Memory returns the approximate size in bytes of tables that [ReadTables] returned.
func (t *Tables) Memory() int64 {
	const header = int64(unsafe.Sizeof([]uint32{}))
	n := int64(t.texts) + int64(cap(t.Shapes))*int64(unsafe.Sizeof(Shape{})) + int64(cap(t.Columns))*int64(unsafe.Sizeof(Column{}))
	for _, words := range t.Words {
		n += header + int64(cap(words))*int64(unsafe.Sizeof(""))
	}
	for i := range t.Resources {
		n += int64(unsafe.Sizeof(Resource{})) + int64(cap(t.Resources[i].Attributes))*int64(unsafe.Sizeof(otlpdata.KeyValue{}))
	}
	for i := range t.Scopes {
		n += int64(unsafe.Sizeof(otlpdata.Scope{})) + int64(cap(t.Scopes[i].Attributes))*int64(unsafe.Sizeof(otlpdata.KeyValue{}))
	}
	return n
}

// interner copies texts and lists while a vocabulary is read, so that equal ones share memory and
// the encoded form is not retained. A nil interner returns its arguments unchanged.
type interner struct {
	texts map[string]string
	lists map[string][]uint32 // columns of shapes, by their encoding
	chunk []byte              // for texts
	owned int                 // size of copied texts and lists in bytes
}

// chunkBytes is the size of the chunks in which memory for texts is allocated. A text longer than a
// quarter of it is allocated separately.
const chunkBytes = 16 << 10

// text returns a copy of s, the same one for equal texts.
func (c *interner) text(s string) string {
	if c == nil {
		return s
	}
	if known, ok := c.texts[s]; ok {
		return known
	}
	own := c.copy(s)
	c.texts[own] = own
	return own
}

// copy returns a copy of s.
func (c *interner) copy(s string) string {
	if c == nil {
		return s
	}
	if s == "" {
		return "" // s may point into memory that must not be retained
	}
	c.owned += len(s)
	if len(s) > chunkBytes/4 {
		return strings.Clone(s)
	}
	if len(s) > cap(c.chunk)-len(c.chunk) {
		c.chunk = make([]byte, 0, chunkBytes)
	}
	from := len(c.chunk)
	c.chunk = append(c.chunk, s...)
	return text(c.chunk[from:])
}

// bytes is like copy for bytes.
func (c *interner) bytes(b []byte) []byte {
	if c == nil {
		return b
	}
	s := c.copy(text(b))
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

func (c *interner) list(encoded []byte) []uint32 {
	if c == nil {
		return nil
	}
	return c.lists[text(encoded)]
}

// keep adds a list. encoded must not change while the vocabulary is read.
func (c *interner) keep(encoded []byte, list []uint32) {
	if c != nil {
		c.lists[text(encoded)] = list
		c.owned += cap(list) * int(unsafe.Sizeof(list[0]))
	}
}
