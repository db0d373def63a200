package block

import (
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// values are the cells of a block that vary, by form and, within a form, by vector.
type values struct {
	words   []uint32
	texts   []string
	ints    []int64
	doubles []float64
	bools   []bool
}

// reserve makes room for as many values of each form. Those that are there stay.
func (v *values) reserve(size *[forms]int) {
	v.words, v.texts = extend(v.words, size[formWord]), extend(v.texts, size[formText])
	v.ints, v.doubles = extend(v.ints, size[formInt]), extend(v.doubles, size[formDouble])
	v.bools = extend(v.bools, size[formBool])
}

// extend returns v with n elements, the first ones as they were.
func extend[T any](v []T, n int) []T {
	if n <= cap(v) {
		return v[:n]
	}
	return slices.Grow(v, n-len(v))[:n]
}

// forget lets go of texts, which alias what is not the block's own.
func (v *values) forget() {
	clear(v.texts)
	v.texts = v.texts[:0]
}

// room tells for how many values there is memory.
func (v *values) room() int {
	return cap(v.words) + cap(v.texts) + cap(v.ints) + cap(v.doubles) + cap(v.bools)
}

// put sets value i of a form. A text that is a word elsewhere is looked up in words.
func (v *values) put(f form, i int, c *rows.Cell, words []string) {
	switch f {
	case formWord:
		v.words[i] = c.Word - 1
	case formInt:
		v.ints[i] = int64(c.Num)
	case formDouble:
		v.doubles[i] = math.Float64frombits(c.Num)
	case formBool:
		v.bools[i] = c.Num != 0
	default:
		if v.texts[i] = c.Data; c.Word > 0 {
			v.texts[i] = words[c.Word-1]
		}
	}
}

// get returns value i of a form.
func (v *values) get(f form, i int) rows.Cell {
	switch f {
	case formWord:
		return rows.Cell{Word: v.words[i] + 1}
	case formInt:
		return rows.Cell{Num: uint64(v.ints[i])}
	case formDouble:
		return rows.Cell{Num: math.Float64bits(v.doubles[i])}
	case formText:
		return rows.Cell{Data: v.texts[i]}
	}
	if v.bools[i] {
		return rows.Cell{Num: 1}
	}
	return rows.Cell{}
}
