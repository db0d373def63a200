package column

import (
	"errors"
	"math"
	"unsafe"
)

// ErrCorrupt is matched by every error of a Decoder: the bytes are no column of that kind with that many values.
var ErrCorrupt = errors.New("corrupt column")

// Decoder reads columns back. The caller knows how many values a column has and of which kind they are, and src is exactly one column.
// Every method fills dst or returns an error that matches [ErrCorrupt]; dst is then undefined. Any bytes may be given: what is allocated
// stays in proportion to len(src)+len(dst) and below [MaxBytes] plus a little. The memory that a Decoder works in is reused, so it must
// not be used by two goroutines at a time; nothing that it returns refers to it.
type Decoder struct {
	z       expander
	powers  powers
	classes *classTable
	joiner  joiner
	picker  picker

	// Scratch, named by what it holds.
	raw      []byte // a stream of packed symbols
	symbol   []byte
	fields   []byte
	number   []uint64
	table    []string
	strCodes []uint32
	varying  []int
}

// NewDecoder returns a Decoder.
func NewDecoder() *Decoder {
	return &Decoder{z: newExpander(), powers: newPowers(), classes: newClassTable()}
}

// Uint64s reads what [Encoder.Uint64s] wrote.
func (d *Decoder) Uint64s(src []byte, dst []uint64) error {
	r := reader{b: src}
	d.numbers(&r, dst)
	return r.end("numbers")
}

// Int64s reads what [Encoder.Int64s] wrote.
func (d *Decoder) Int64s(src []byte, dst []int64) error {
	return d.Uint64s(src, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)))
}

// Float64s reads what [Encoder.Float64s] wrote.
func (d *Decoder) Float64s(src []byte, dst []float64) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.floats(&r, dst)
	}
	return r.end("doubles")
}

// Bools reads what [Encoder.Bools] wrote.
func (d *Decoder) Bools(src []byte, dst []bool) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.bools(&r, dst)
	}
	return r.end("truth values")
}

func (d *Decoder) bools(r *reader, dst []bool) {
	s := grow(&d.symbol, len(dst))
	d.symbols(r, s)
	for i, x := range s {
		if x > 1 {
			r.fail("neither true nor false")
		}
		dst[i] = x == 1
	}
}

// Codes reads what [Encoder.Codes] wrote. Whether a code is in the caller's table is for the caller to check.
func (d *Decoder) Codes(src []byte, dst []uint32) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.codes(&r, dst)
	}
	return r.end("codes")
}

// Strings reads what [Encoder.Strings] wrote. The strings share memory that was allocated for them, so that keeping one keeps all.
func (d *Decoder) Strings(src []byte, dst []string) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.strings(&r, dst)
	}
	return r.end("strings")
}

// StringCodes reads what [Encoder.Strings] wrote as a table and a code into it per value, for columns that are stored so: a predicate is
// then evaluated once per table entry instead of once per value. Every code is below len(table). For other columns ok is false, with no
// error and little work done; use [Decoder.Strings].
func (d *Decoder) StringCodes(src []byte, codes []uint32) (table []string, ok bool, err error) {
	r := reader{b: src}
	if len(codes) == 0 {
		return nil, true, r.end("strings")
	}
	switch method := r.byte(); method {
	case stringsConstant:
		table = make([]string, 1)
		d.direct(&r, method, table)
		clear(codes)
	case stringsTable:
		table = make([]string, r.count(len(codes)))
		d.stringTable(&r, table, codes)
	default:
		return nil, false, nil
	}
	if err := r.end("strings"); err != nil {
		return nil, false, err
	}
	return table, true, nil
}

// Fixed reads len(dst)/width values that [Encoder.Fixed] wrote with the same width.
func (d *Decoder) Fixed(src []byte, dst []byte, width int) error {
	if width < 1 || width > math.MaxUint8 || len(dst)%width != 0 {
		panic("column: values of a fixed width that have another one")
	}
	r := reader{b: src}
	if len(dst) > 0 {
		d.fixed(&r, dst, width)
	}
	return r.end("values of a fixed width")
}
