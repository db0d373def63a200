package rows

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// column collects the values of one column of a block.
type column interface {
	// append appends the column in the Native format of a type, without a state prefix.
	append(dst []byte, typ string) ([]byte, error)
	// rows returns the number of values.
	rows() int
	reset()
}

// typeError is the error of a table column whose type differs from the type that the exporter
// writes.
func typeError(typ string, want ...string) error {
	return fmt.Errorf("column has type %s instead of %s", typ, strings.Join(want, " or "))
}

// fixed holds values of a fixed size in their Native form.
type fixed struct {
	typ  string
	size int // bytes of a value
	data []byte
}

func (f *fixed) append(dst []byte, typ string) ([]byte, error) {
	if typ != f.typ {
		return dst, typeError(typ, f.typ)
	}
	return append(dst, f.data...), nil
}

func (f *fixed) rows() int { return len(f.data) / f.size }
func (f *fixed) reset()    { f.data = f.data[:0] }

func (f *fixed) byte(v uint8) { f.data = append(f.data, v) }
func (f *fixed) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	f.byte(b)
}

func (f *fixed) uint16(v uint16)   { f.data = binary.LittleEndian.AppendUint16(f.data, v) }
func (f *fixed) uint64(v uint64)   { f.data = binary.LittleEndian.AppendUint64(f.data, v) }
func (f *fixed) float64(v float64) { f.uint64(math.Float64bits(v)) }
func (f *fixed) bytes(v []byte)    { f.data = append(f.data, v...) }

// repeated holds one text for all rows. It is set when a block is complete.
type repeated struct {
	value string
	n     int
}

func (r *repeated) append(dst []byte, typ string) ([]byte, error) {
	all := words{list: []string{r.value}, keys: make([]uint32, r.n)}
	return all.append(dst, typ)
}

func (r *repeated) rows() int { return r.n }
func (r *repeated) reset()    { r.n = 0 }

// Names of types.
const (
	typeString         = "String"
	typeLowCardinality = "LowCardinality(String)"
)

// texts holds strings that are mostly different.
type texts struct {
	data []byte
	n    int
}

func (t *texts) append(dst []byte, typ string) ([]byte, error) {
	if typ != typeString {
		return dst, typeError(typ, typeString)
	}
	return append(dst, t.data...), nil
}

func (t *texts) rows() int { return t.n }
func (t *texts) reset()    { t.data, t.n = t.data[:0], 0 }

func (t *texts) string(s string) {
	t.data = append(binary.AppendUvarint(t.data, uint64(len(s))), s...)
	t.n++
}

func (t *texts) bytes(b []byte) {
	t.data = append(binary.AppendUvarint(t.data, uint64(len(b))), b...)
	t.n++
}

// words holds the strings of a column as a dictionary and the number of a word for each row,
// because many strings repeat.
type words struct {
	index map[string]uint32
	list  []string // list[0] is ""
	keys  []uint32
}

func newWords() *words { return &words{index: map[string]uint32{"": 0}, list: []string{""}} }

// number returns the number of a word. The word must stay valid until reset.
func (w *words) number(s string) uint32 {
	n, ok := w.index[s]
	if !ok {
		n = uint32(len(w.list))
		w.index[s] = n
		w.list = append(w.list, s)
	}
	return n
}

// bytes adds a word that need not stay valid.
func (w *words) bytes(b []byte) {
	n, ok := w.index[string(b)]
	if !ok {
		n = w.number(string(b))
	}
	w.keys = append(w.keys, n)
}

func (w *words) string(s string) { w.keys = append(w.keys, w.number(s)) }
func (w *words) key(n uint32)    { w.keys = append(w.keys, n) }
func (w *words) rows() int       { return len(w.keys) }

func (w *words) reset() {
	clear(w.index)
	clear(w.list)
	w.index[""], w.list, w.keys = 0, append(w.list[:0], ""), w.keys[:0]
}

func (w *words) append(dst []byte, typ string) ([]byte, error) {
	switch typ {
	case typeString:
		for _, k := range w.keys {
			dst = appendText(dst, w.list[k])
		}
		return dst, nil
	case typeLowCardinality:
		return w.appendDictionary(dst), nil
	}
	return dst, typeError(typ, typeLowCardinality, typeString)
}

// appendDictionary appends the Native form of LowCardinality(String): flags with the size of
// numbers, the dictionary, and the numbers. A column without rows has no bytes.
func (w *words) appendDictionary(dst []byte) []byte {
	if len(w.keys) == 0 {
		return dst
	}
	const additionalKeys, updateDictionary = 1 << 9, 1 << 10
	size := 0 // 1 << size bytes for each number
	switch n := len(w.list); {
	case n > math.MaxUint16:
		size = 2
	case n > math.MaxUint8:
		size = 1
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(additionalKeys|updateDictionary|size))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(w.list)))
	for _, s := range w.list {
		dst = appendText(dst, s)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(w.keys)))
	for _, k := range w.keys {
		switch size {
		case 0:
			dst = append(dst, byte(k))
		case 1:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(k))
		default:
			dst = binary.LittleEndian.AppendUint32(dst, k)
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// array holds lists of values of another column. Columns of one Nested share the ends.
type array struct {
	ends   *fixed // number of values up to the end of each list
	values column
}

func (a *array) append(dst []byte, typ string) ([]byte, error) {
	inner, ok := strings.CutPrefix(typ, "Array(")
	if !ok {
		return dst, typeError(typ, "an array")
	}
	dst = append(dst, a.ends.data...)
	return a.values.append(dst, strings.TrimSuffix(inner, ")"))
}

func (a *array) rows() int { return a.ends.rows() }

func (a *array) reset() {
	a.ends.reset()
	a.values.reset()
}

// end ends the list of a row.
func (a *array) end() { a.ends.uint64(uint64(a.values.rows())) }
