package column

import "errors"

// ErrCorrupt is matched by every error of a Decoder: the bytes are no column of that kind with that many values.
var ErrCorrupt = errors.New("corrupt column")

// Decoder reads columns back. The caller knows how many values a column has and of which kind they are, and src is exactly one column. Every
// method fills dst or returns an error that matches [ErrCorrupt]; dst is then undefined. Any bytes may be given: what is allocated stays in
// proportion to len(src)+len(dst) and below [MaxBytes] plus a little. The memory that a Decoder works in is reused, so it must not be used by
// two goroutines at a time; nothing that it returns refers to it.
type Decoder struct{ s streams }

// NewDecoder returns a Decoder.
func NewDecoder() *Decoder { panic("todo") }

// Uint64s reads what [Encoder.Uint64s] wrote.
func (d *Decoder) Uint64s(src []byte, dst []uint64) error { panic("todo") }

// Int64s reads what [Encoder.Int64s] wrote.
func (d *Decoder) Int64s(src []byte, dst []int64) error { panic("todo") }

// Float64s reads what [Encoder.Float64s] wrote.
func (d *Decoder) Float64s(src []byte, dst []float64) error { panic("todo") }

// Bools reads what [Encoder.Bools] wrote.
func (d *Decoder) Bools(src []byte, dst []bool) error { panic("todo") }

// Codes reads what [Encoder.Codes] wrote. Whether a code is in the caller's table is for the caller to check.
func (d *Decoder) Codes(src []byte, dst []uint32) error { panic("todo") }

// Strings reads what [Encoder.Strings] wrote. The strings share memory that was allocated for them, so that keeping one keeps all.
func (d *Decoder) Strings(src []byte, dst []string) error { panic("todo") }

// StringCodes reads what [Encoder.Strings] wrote as a table and a code into it per value, for columns that are stored so: a predicate is then
// evaluated once per table entry instead of once per value. Every code is below len(table). For other columns ok is false, with no
// error and little work done; use [Decoder.Strings].
func (d *Decoder) StringCodes(src []byte, codes []uint32) (table []string, ok bool, err error) {
	panic("todo")
}

// Bytes reads what [Encoder.Bytes] wrote. The blobs share memory that was allocated for them.
func (d *Decoder) Bytes(src []byte, dst [][]byte) error { panic("todo") }

// Fixed reads len(dst)/width values that [Encoder.Fixed] wrote with the same width.
func (d *Decoder) Fixed(src []byte, dst []byte, width int) error { panic("todo") }

type streams struct{}
