package column

import (
	"math"
	"strings"
	"testing"
)

func FuzzDecode(f *testing.F) {
	for _, b := range goldenFiles(f) {
		for kind := range byte(8) {
			f.Add(kind, uint16(300), b)
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, n uint16, src []byte) {
		checkOutcome(t, readAny(NewDecoder(), kind, src, int(n)))
	})
}

func FuzzStrings(f *testing.F) {
	for _, s := range stringSamples() {
		f.Add(strings.Join(s.v[:40], "\n"))
	}
	f.Add("a\x00b\n007\n7\n00000000\n0123456a\n" + strings.Repeat("9", 45))
	c := newCoders()
	f.Fuzz(func(t *testing.T, text string) {
		v := strings.Split(text, "\n")
		check(t, c, texts(), v)
	})
}

func FuzzNumbers(f *testing.F) {
	for _, s := range numberSamples() {
		var b []byte
		for _, x := range s.v[:20] {
			b = appendSigned(b, x)
		}
		f.Add(b, uint64(1000))
	}
	c := newCoders()
	f.Fuzz(func(t *testing.T, b []byte, factor uint64) {
		r := reader{b: b}
		var u []uint64
		for len(r.b) > 0 {
			u = append(u, r.signed()*factor)
		}
		i, d, k := make([]int64, len(u)), make([]float64, len(u)), make([]uint32, len(u))
		for j, x := range u {
			i[j], d[j], k[j] = int64(x), math.Float64frombits(x), uint32(x)
			if j%2 == 0 {
				d[j] = float64(int64(x)) / 1000
			}
		}
		check(t, c, uint64s(), u)
		check(t, c, int64s(), i)
		check(t, c, float64s(), d)
		check(t, c, codes(), k)
	})
}
