package column

import (
	"hash/maphash"
	"math"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

// Level is a compression level.
type Level int

// Compression levels. A flush must keep up with ingestion; a merge may take longer to compress
// better.
const (
	Flush = Level(zstd.SpeedFastest)
	Merge = Level(zstd.SpeedDefault)
)

// MaxBytes is the maximum size of all values of a column in bytes. It bounds the memory that a
// decoder allocates. An Encoder panics if the values exceed it, because the column could not be
// decoded; callers must close a block well before this.
const MaxBytes = 128 << 20

// Encoder encodes vectors as columns. Its methods append one self-contained column to dst and
// return the result; they do not retain v. They cannot fail. The same vector with the same hint
// always yields the same bytes; an empty vector yields no bytes. An Encoder reuses its memory and
// is not safe for concurrent use.
type Encoder struct {
	z        compressor
	powers   powers
	table    valueTable
	distinct interner
	splitter splitEncoder

	// Scratch buffers. Each is used by one function, and is no longer needed when that function is
	// called again.
	fields   []byte   // packed symbols
	classes  []byte   // classes of numbers, planes of codes
	offsets  []uint64 // (number - minimum) / factor
	shift    uint64   // added to offsets for the transform magnitude
	number   []uint64 // values of other kinds as numbers
	code     []uint64
	strCodes []uint32
	second   []byte // a second encoding of a column, to compare sizes
	text     []byte
	varying  []int
}

// NewEncoder returns an Encoder that compresses at the given level.
func NewEncoder(l Level) *Encoder {
	e := &Encoder{z: newCompressor(l), powers: newPowers()}
	e.distinct.seed = maphash.MakeSeed()
	e.splitter.templates.seed = e.distinct.seed
	e.splitter.classifier.kinds = newByteKinds()
	return e
}

// Uint64s appends numbers: times, durations, sizes, counts.
func (e *Encoder) Uint64s(dst []byte, v []uint64) []byte { return e.numbers(dst, v, false) }

// Int64s appends signed numbers.
func (e *Encoder) Int64s(dst []byte, v []int64) []byte {
	return e.numbers(dst, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v)), true)
}

// Float64s appends doubles. It preserves all bits, including NaN payloads and negative zeros.
func (e *Encoder) Float64s(dst []byte, v []float64) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.floats(dst, v)
}

// Bools appends booleans.
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

// Codes appends indexes into a table of the caller. Frequent entries should have small indexes.
func (e *Encoder) Codes(dst []byte, v []uint32) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.codes(dst, v, &Hint{})
}

// HintedCodes is like Codes. It uses and updates h, which must belong to similar vectors.
func (e *Encoder) HintedCodes(dst []byte, v []uint32, h *Hint) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.codes(dst, v, h)
}

// Strings appends strings, which may hold any bytes.
func (e *Encoder) Strings(dst []byte, v []string) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.strings(dst, v, &Hint{})
}

// HintedStrings is like Strings. It uses and updates h, which must belong to similar vectors.
func (e *Encoder) HintedStrings(dst []byte, v []string, h *Hint) []byte {
	if len(v) == 0 {
		return dst
	}
	return e.strings(dst, v, h)
}

// Fixed appends len(v)/width concatenated values of width bytes each (1 to 255), such as ids. They
// are usually random and therefore not compressed.
func (e *Encoder) Fixed(dst []byte, v []byte, width int) []byte {
	if width < 1 || width > math.MaxUint8 || len(v)%width != 0 {
		panic("column: Fixed: length of v is not a multiple of a valid width")
	}
	if len(v) == 0 {
		return dst
	}
	return e.fixed(dst, v, width)
}
