package column

import "github.com/klauspost/compress/zstd"

// Level is how hard the compressor tries.
type Level int

// The levels: a flush runs at the pace of the intake, a merge has time.
const (
	Flush Level = Level(zstd.SpeedFastest)
	Merge Level = Level(zstd.SpeedDefault)
)

// MaxBytes limits the bytes of all values of one column, and so what a decoder is ever made to allocate for one. Who forms blocks closes one
// well before: an Encoder panics when given more, because what it wrote could not be read back.
const MaxBytes = 128 << 20

// Encoder turns vectors into columns. Its methods append one self-contained column to dst and return the result; they keep nothing of v. They
// cannot fail, and the same vector always makes the same bytes. The memory that an Encoder works in is reused from call to call, so it must
// not be used by two goroutines at a time.
type Encoder struct{ s streams }

// NewEncoder returns an Encoder that compresses at the given level.
func NewEncoder(l Level) *Encoder { panic("todo") }

// Uint64s appends numbers: times, durations, sizes, counts.
func (e *Encoder) Uint64s(dst []byte, v []uint64) []byte { panic("todo") }

// Int64s appends signed numbers.
func (e *Encoder) Int64s(dst []byte, v []int64) []byte { panic("todo") }

// Float64s appends doubles, bit for bit: NaN payloads and negative zeros are kept.
func (e *Encoder) Float64s(dst []byte, v []float64) []byte { panic("todo") }

// Bools appends truth values.
func (e *Encoder) Bools(dst []byte, v []bool) []byte { panic("todo") }

// Codes appends ids into a table that the caller ranked by frequency: a frequent entry has a small id.
func (e *Encoder) Codes(dst []byte, v []uint32) []byte { panic("todo") }

// Strings appends strings of any bytes.
func (e *Encoder) Strings(dst []byte, v []string) []byte { panic("todo") }

// Bytes appends blobs. Empty and nil ones read back alike.
func (e *Encoder) Bytes(dst []byte, v [][]byte) []byte { panic("todo") }

// Fixed appends len(v)/width values of width bytes each (1 to 255), one after the other: ids.
func (e *Encoder) Fixed(dst []byte, v []byte, width int) []byte { panic("todo") }
