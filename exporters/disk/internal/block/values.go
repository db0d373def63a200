package block

import (
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// values holds the varying cells of a block, by encoding and, within an encoding, by vector.
type values struct {
	words   []uint32
	texts   []string
	ints    []int64
	doubles []float64
	bools   []bool
}

// reserve sets the number of values of each encoding. Existing values are kept.
func (v *values) reserve(size *[numEncodings]int) {
	v.words, v.texts = extend(v.words, size[encodeWord]), extend(v.texts, size[encodeText])
	v.ints, v.doubles = extend(v.ints, size[encodeInt]), extend(v.doubles, size[encodeDouble])
	v.bools = extend(v.bools, size[encodeBool])
}

// extend returns v with n elements; the first ones keep their values.
func extend[T any](v []T, n int) []T {
	if n <= cap(v) {
		return v[:n]
	}
	return slices.Grow(v, n-len(v))[:n]
}

// reset removes all references to texts, which may alias memory of others.
func (v *values) reset() {
	clear(v.texts)
	v.texts = v.texts[:0]
}

// capacity returns the number of values for which memory is allocated.
func (v *values) capacity() int {
	return cap(v.words) + cap(v.texts) + cap(v.ints) + cap(v.doubles) + cap(v.bools)
}

// put sets value i of an encoding. For a text that is a word, it stores the word from words.
func (v *values) put(f encoding, i int, c *rows.Cell, words []string) {
	switch f {
	case encodeWord:
		v.words[i] = c.Word - 1
	case encodeInt:
		v.ints[i] = int64(c.Num)
	case encodeDouble:
		v.doubles[i] = math.Float64frombits(c.Num)
	case encodeBool:
		v.bools[i] = c.Num != 0
	default:
		if v.texts[i] = c.Data; c.Word > 0 {
			v.texts[i] = words[c.Word-1]
		}
	}
}

// get returns value i of an encoding.
func (v *values) get(f encoding, i int) rows.Cell {
	switch f {
	case encodeWord:
		return rows.Cell{Word: v.words[i] + 1}
	case encodeInt:
		return rows.Cell{Num: uint64(v.ints[i])}
	case encodeDouble:
		return rows.Cell{Num: math.Float64bits(v.doubles[i])}
	case encodeText:
		return rows.Cell{Data: v.texts[i]}
	}
	if v.bools[i] {
		return rows.Cell{Num: 1}
	}
	return rows.Cell{}
}
