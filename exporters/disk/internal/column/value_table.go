package column

import (
	"cmp"
	"math/bits"
	"slices"
)

// valueTable collects the distinct values of a vector if they are few.
type valueTable struct {
	slots  [4 * maxTable]uint16 // 1 + index into values; 0 is free
	values []uint64             // distinct ones, in order of appearance
	counts [maxTable]uint32
	code   [maxTable]byte // index into values -> rank
	order  []byte         // rank -> index into values
	rank   []uint64
	codes  []byte // one per value of the vector: index into values
	n      int
}

// collect reports whether v has at most maxTable distinct values.
func (t *valueTable) collect(v []uint64) bool {
	clear(t.slots[:])
	clear(t.counts[:])
	t.values, t.codes, t.n = t.values[:0], t.codes[:0], len(v)
	for _, x := range v {
		i := t.find(x)
		if i < 0 {
			return false
		}
		t.counts[i]++
		t.codes = append(t.codes, byte(i))
	}
	return true
}

// find returns the index of x, which it adds if it is new. It returns -1 if the table is full.
func (t *valueTable) find(x uint64) int {
	const mask = uint64(len(t.slots) - 1)
	for h := x * 0x9e3779b97f4a7c15 >> 32; ; h++ {
		s := &t.slots[h&mask]
		switch {
		case *s == 0 && len(t.values) == maxTable:
			return -1
		case *s == 0:
			t.values = append(t.values, x)
			*s = uint16(len(t.values))
			return len(t.values) - 1
		case t.values[*s-1] == x:
			return int(*s - 1)
		}
	}
}

// size estimates the size in bits of the codes and of the table, whose values lie between lo and
// hi.
func (t *valueTable) size(lo, hi uint64) float64 {
	const header = 4 * 8
	return header + float64(len(t.values)*bits.Len64(hi-lo)) + symbolBits(t.counts[:len(t.values)], t.n)
}

// ranked returns the values by descending frequency.
func (t *valueTable) ranked() []uint64 {
	t.order, t.rank = t.order[:0], t.rank[:0]
	for i := range t.values {
		t.order = append(t.order, byte(i))
	}
	slices.SortStableFunc(t.order, func(a, b byte) int { return cmp.Compare(t.counts[b], t.counts[a]) })
	for r, i := range t.order {
		t.code[i] = byte(r)
		t.rank = append(t.rank, t.values[i])
	}
	return t.rank
}

// rankedCodes returns the codes of the vector as indexes into the result of ranked.
func (t *valueTable) rankedCodes() []byte {
	for i, c := range t.codes {
		t.codes[i] = t.code[c]
	}
	return t.codes
}
