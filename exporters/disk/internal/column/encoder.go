package column

import (
	"hash/maphash"
	"math"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

// Level is how hard the compressor tries.
type Level int

// The levels: a flush runs at the pace of the intake, a merge has time.
const (
	Flush = Level(zstd.SpeedFastest)
	Merge = Level(zstd.SpeedDefault)
)

// MaxBytes limits the bytes of all values of one column, and so what a decoder is ever made to allocate for one. Who forms blocks closes
// one well before: an Encoder panics when given more, because what it wrote could not be read back.
const MaxBytes = 128 << 20

// Encoder turns vectors into columns. Its methods append one self-contained column to dst and return the result; they keep nothing of v.
// They cannot fail, and the same vector, with the same hint, always makes the same bytes; no values make no bytes. The memory that an Encoder works in is
// reused from call to call, so it must not be used by two goroutines at a time.
type Encoder struct {
	z        compressor
	powers   powers
	table    numberTable
	distinct interner
	splitter splitter

	// Scratch, named by what it holds. Each is written by one function that is done with it before that function can be called again.
	fields   []byte   // packed symbols
	classes  []byte   // classes of numbers, planes of codes
	offsets  []uint64 // numbers, less the least of them, by their factor
	shift    uint64   // what turns offsets back into numbers around zero
	number   []uint64 // values of other kinds as numbers
	code     []uint64
	strCodes []uint32
	second   []byte // a second form of a column, to compare
	text     []byte
	varying  []int
}

// NewEncoder returns an Encoder that compresses at the given level, which is one of the constants.
func NewEncoder(l Level) *Encoder {
	e := &Encoder{z: newCompressor(l), powers: newPowers()}
	e.distinct.seed = maphash.MakeSeed()
	e.splitter.templates.seed = e.distinct.seed
	e.splitter.grammar.kinds = newByteKinds()
	return e
}

// Uint64s appends numbers: times, durations, sizes, counts.
func (e *Encoder) Uint64s(dst []byte, v []uint64) []byte { return e.numbers(dst, v, false) }

// Int64s appends signed numbers.
func (e *Encoder) Int64s(dst []byte, v []int64) []byte {
	return e.numbers(dst, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v)), true)
}

// Float64s appends doubles, bit for bit: NaN payloads and negative zeros are kept.
func (e *Encoder) Float64s(dst []byte, v []float64) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.floats(dst, v)
}

// Bools appends truth values.
func (e *Encoder) Bools(dst []byte, v []bool) []byte {
	if len(v) == 0 {
		return dst
	}
	s := grow(&e.classes, len(v))
	for i, x := range v {
		s[i] = 0
		if x {
			s[i] = 1
		}
	}
	return e.symbols(dst, s)
}

// Codes appends ids into a table that the caller ranked by frequency: a frequent entry has a small id.
func (e *Encoder) Codes(dst []byte, v []uint32) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.codes(dst, v, &Hint{})
}

// HintedCodes is Codes for a vector that is like those for which h was used before.
func (e *Encoder) HintedCodes(dst []byte, v []uint32, h *Hint) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.codes(dst, v, h)
}

// Strings appends strings of any bytes.
func (e *Encoder) Strings(dst []byte, v []string) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.strings(dst, v, &Hint{})
}

// HintedStrings is Strings for a vector that is like those for which h was used before.
func (e *Encoder) HintedStrings(dst []byte, v []string, h *Hint) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.strings(dst, v, h)
}

// Fixed appends len(v)/width values of width bytes each (1 to 255), one after the other: ids. They are random as a rule and not compressed.
func (e *Encoder) Fixed(dst []byte, v []byte, width int) []byte {
	if width < 1 || width > math.MaxUint8 || len(v)%width != 0 {
		panic("column: values of a fixed width that have another one")
	}
	if len(v) == 0 {
		return dst
	}
	return e.fixed(dst, v, width)
}
