package column

import (
	"errors"
	"math"
	"unsafe"
)

// ErrCorrupt matches every error of a Decoder: the bytes are not a column of the expected kind and
// number of values.
var ErrCorrupt = errors.New("corrupt column")

// Decoder decodes columns. The caller must know the kind and number of the values; src must be
// exactly one column. Every method either fills dst or returns an error that matches [ErrCorrupt]
// and leaves dst undefined. Input may be untrusted: allocations are proportional to
// len(src)+len(dst) and bounded by slightly more than [MaxBytes]. A Decoder reuses its memory, but
// results do not refer to it. It is not safe for concurrent use.
type Decoder struct {
	z        decompressor
	powers   powers
	classes  *classTable
	splits   splitDecoder
	selector stringSelector

	// Scratch buffers.
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
	return &Decoder{z: newDecompressor(), powers: newPowers(), classes: newClassTable()}
}

// Uint64s decodes the output of [Encoder.Uint64s].
func (d *Decoder) Uint64s(src []byte, dst []uint64) error {
	r := reader{b: src}
	d.numbers(&r, dst)
	return r.end("numbers")
}

// Int64s decodes the output of [Encoder.Int64s].
func (d *Decoder) Int64s(src []byte, dst []int64) error {
	return d.Uint64s(src, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)))
}

// Float64s decodes the output of [Encoder.Float64s].
func (d *Decoder) Float64s(src []byte, dst []float64) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.floats(&r, dst)
	}
	return r.end("doubles")
}

// Bools decodes the output of [Encoder.Bools].
func (d *Decoder) Bools(src []byte, dst []bool) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.bools(&r, dst)
	}
	return r.end("booleans")
}

func (d *Decoder) bools(r *reader, dst []bool) {
	s := grow(&d.symbol, len(dst))
	d.symbols(r, s)
	for i, x := range s {
		if x > 1 {
			r.fail("invalid boolean")
		}
		dst[i] = x == 1
	}
}

// Codes decodes the output of [Encoder.Codes]. The caller must check that codes are within its
// table.
func (d *Decoder) Codes(src []byte, dst []uint32) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.codes(&r, dst)
	}
	return r.end("codes")
}

// Strings decodes the output of [Encoder.Strings]. The strings share newly allocated memory:
// retaining one string retains all.
func (d *Decoder) Strings(src []byte, dst []string) error {
	r := reader{b: src}
	if len(dst) > 0 {
		d.strings(&r, dst)
	}
	return r.end("strings")
}

// StringCodes decodes the output of [Encoder.Strings] as a table of distinct strings and an index
// into it for each value, so that callers can evaluate a predicate once per table entry. It works
// only for columns that are encoded as a table; for others it returns early with ok == false and no
// error, and the caller should use [Decoder.Strings]. All codes are less than len(table).
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

// Fixed decodes len(dst)/width values that [Encoder.Fixed] encoded with the same width.
func (d *Decoder) Fixed(src []byte, dst []byte, width int) error {
	if width < 1 || width > math.MaxUint8 || len(dst)%width != 0 {
		panic("column: Fixed: length of dst is not a multiple of a valid width")
	}
	r := reader{b: src}
	if len(dst) > 0 {
		d.fixed(&r, dst, width)
	}
	return r.end("fixed-width values")
}
