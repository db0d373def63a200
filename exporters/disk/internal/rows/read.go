package rows

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ReadTables reads a whole vocabulary: definitions, those of one kind in the order of their ids, without gaps. It keeps nothing of b. What
// many shapes have in common, names and lists of columns, is in memory once. An error matches [ErrCorrupt].
func ReadTables(b []byte) (*Tables, error) {
	t := &Tables{shared: &shared{texts: map[string]string{}, lists: map[string][]uint32{}}}
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
			return nil, corrupt(fmt.Sprintf("an item of kind %d", tag))
		}
		if t.lost != nil { // asked at once, since a gap of ids is filled
			return nil, corrupt("it does not hold all that it refers to")
		}
		b = rest
	}
	t.texts, t.shared = t.shared.owned, nil
	return t, nil
}

// countShapes returns how many items of a vocabulary may be shapes. Each has at least leastShape bytes.
func countShapes(b []byte) (n int) {
	const leastShape = 7
	for len(b) > 0 {
		tag, payload, rest, err := NextItem(b)
		if err != nil {
			return n
		}
		if tag == TagShape && len(payload) >= leastShape {
			n++
		}
		b = rest
	}
	return n
}

// Memory estimates the bytes of tables that [ReadTables] returned.
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

// shared finds what was read before while a vocabulary is read, so that it is in memory once, and does not keep what it is read from. A nil
// shared does neither.
type shared struct {
	texts map[string]string
	lists map[string][]uint32 // columns of shapes, by their encoding
	chunk []byte              // for texts
	owned int                 // bytes of texts and lists
}

// chunkBytes is how much memory is taken at once for texts. Longer ones than a quarter have their own.
const chunkBytes = 16 << 10

// text returns a copy of s, the same one for the same text.
func (c *shared) text(s string) string {
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
func (c *shared) copy(s string) string {
	if c == nil {
		return s
	}
	if s == "" {
		return "" // s may point into what is not to be kept
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

// bytes is copy for bytes.
func (c *shared) bytes(b []byte) []byte {
	if c == nil {
		return b
	}
	s := c.copy(text(b))
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

func (c *shared) list(encoded []byte) []uint32 {
	if c == nil {
		return nil
	}
	return c.lists[text(encoded)]
}

// keep adds a list. The encoding is not changed while the vocabulary is read.
func (c *shared) keep(encoded []byte, list []uint32) {
	if c != nil {
		c.lists[text(encoded)] = list
		c.owned += cap(list) * int(unsafe.Sizeof(list[0]))
	}
}
