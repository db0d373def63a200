package column

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// codec is the pair of methods for one kind of values.
type codec[T any] struct {
	encode func(*Encoder, []byte, []T) []byte
	decode func(*Decoder, []byte, []T) error
	equal  func(a, b T) bool
}

func identical[T comparable](a, b T) bool { return a == b }

func uint64s() codec[uint64] {
	return codec[uint64]{(*Encoder).Uint64s, (*Decoder).Uint64s, identical[uint64]}
}
func int64s() codec[int64] {
	return codec[int64]{(*Encoder).Int64s, (*Decoder).Int64s, identical[int64]}
}
func float64s() codec[float64] {
	return codec[float64]{(*Encoder).Float64s, (*Decoder).Float64s, func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b)
	}}
}
func bools() codec[bool] { return codec[bool]{(*Encoder).Bools, (*Decoder).Bools, identical[bool]} }
func codes() codec[uint32] {
	return codec[uint32]{(*Encoder).Codes, (*Decoder).Codes, identical[uint32]}
}
func texts() codec[string] {
	return codec[string]{(*Encoder).Strings, readTexts, identical[string]}
}
func fixed8() codec[[8]byte] { return codec[[8]byte]{encodeFixed, decodeFixed, identical[[8]byte]} }

func encodeFixed(e *Encoder, dst []byte, v [][8]byte) []byte {
	return e.Fixed(dst, bytes.Join(slicesOf(v), nil), 8)
}

func decodeFixed(d *Decoder, src []byte, dst [][8]byte) error {
	b := make([]byte, 8*len(dst))
	err := d.Fixed(src, b, 8)
	for i := range dst {
		copy(dst[i][:], b[8*i:])
	}
	return err
}

func slicesOf(v [][8]byte) [][]byte {
	s := make([][]byte, len(v))
	for i := range v {
		s[i] = v[i][:]
	}
	return s
}

// coders are reused within a test, as in a flush, so that state left by one column would affect the
// next.
type coders struct {
	flush, merge *Encoder
	d            *Decoder
}

func newCoders() coders { return coders{NewEncoder(Flush), NewEncoder(Merge), NewDecoder()} }

// check encodes and decodes v at both levels, appending to existing bytes.
func check[T any](t *testing.T, c coders, k codec[T], v []T) {
	t.Helper()
	for _, e := range []*Encoder{c.flush, c.merge} {
		const before = "before"
		b := k.encode(e, []byte(before), v)
		if string(b[:len(before)]) != before {
			t.Fatal("existing bytes of dst changed")
		}
		if again := k.encode(e, []byte(before), v); !bytes.Equal(again, b) {
			t.Fatal("same values were encoded differently")
		}
		out := make([]T, len(v))
		if err := k.decode(c.d, b[len(before):], out); err != nil {
			t.Fatalf("%d values: %v", len(v), err)
		}
		for i := range v {
			if !k.equal(v[i], out[i]) {
				t.Fatalf("value %d of %d: %#v decoded as %#v", i, len(v), v[i], out[i])
			}
		}
	}
}

func lengths() []int { return []int{0, 1, 2, 3, 20, 129, 300, 4099} }

// cycle returns n values, repeating v.
func cycle[T any](v []T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v[i%len(v)]
	}
	return out
}

func checkAll[T any](t *testing.T, k codec[T], vectors map[string][]T) {
	t.Helper()
	c := newCoders()
	for name, v := range vectors {
		t.Run(name, func(t *testing.T) {
			for _, n := range lengths() {
				check(t, c, k, cycle(v, n))
			}
		})
	}
}

func TestNumbersOfEveryKind(t *testing.T) {
	const top = math.MaxUint64
	checkAll(t, uint64s(), map[string][]uint64{
		"zero":      {0},
		"constant":  {top},
		"extremes":  {0, top, 1, top - 1, 1 << 63, 1<<63 - 1},
		"factor":    {7, 1007, 5007, 1_000_007},
		"big steps": {1 << 62, 1 << 63, 3 << 62},
		"one odd":   append(cycle([]uint64{1000, 2000, 9000}, 200), 1),
		"asUint64s": powersOfTwo(),
		"rising":    rising(5000, 12345),
		"wrapping":  rising(5000, 1<<62),
		"128":       rising(128, 3), "129": rising(129, 3), "256": rising(256, 1),
	})
	checkAll(t, int64s(), map[string][]int64{
		"negative": {-5}, "extremes": {math.MinInt64, math.MaxInt64, 0, -1, 1},
		"crossesZero": {-3000, 2000, 0, -1000, 5000}, "crossesZero with rest": {-3001, 1999, -1, 4999},
		"least and a factor": {math.MinInt64, math.MinInt64 + 3000, 3000 + math.MinInt64%3000},
		"both ends":          {-1 << 61, 1 << 61, 7},
	})
}

func powersOfTwo() (v []uint64) {
	for i := range 64 {
		v = append(v, 1<<i, 1<<i-1, 1<<i+1)
	}
	return v
}

func rising(n int, step uint64) (v []uint64) {
	for i := range n {
		v = append(v, uint64(i)*step)
	}
	return v
}

func TestFloat64sAreExact(t *testing.T) {
	nan := math.Float64frombits(0x7ff8_0000_dead_beef)
	signaling := math.Float64frombits(0xfff0_0000_0000_0001)
	checkAll(t, float64s(), map[string][]float64{
		"zero": {0}, "negative zero": {0, math.Copysign(0, -1)}, "nan": {nan, signaling, 1.5},
		"infinite": {math.Inf(1), math.Inf(-1), 2}, "prices": {19.99, 0.1, 1e3, -5.25}, "sum": {0.1 + 0.2, 0.3},
		"large": {1 << 53, 1<<53 + 2, math.MaxFloat64}, "small": {math.SmallestNonzeroFloat64, 1e-18, 1e-19},
		"no space": {9007199254740991, 0.001}, "micro": {1.8e9 + 0.123456, 1.8e9 + 0.5},
	})
}

func TestBoolsCodesAndFixed(t *testing.T) {
	checkAll(t, bools(), map[string][]bool{"true": {true}, "false": {false}, "mixed": {true, false, false}})
	checkAll(t, codes(), map[string][]uint32{
		"zero": {0}, "same": {70000}, "byte": {0, 255, 3}, "two": {0, 256, 65535}, "three": {1, 1 << 20}, "four": {0, math.MaxUint32},
	})
	checkAll(t, fixed8(), map[string][][8]byte{
		"same": {{1, 2, 3}}, "tail": {{7: 1}, {7: 2}, {6: 3}}, "all": {{1, 1, 1, 1, 1, 1, 1, 1}, {2, 3, 4, 5, 6, 7, 8, 9}},
	})
	checkAll(t, texts(), map[string][]string{
		"empty": {""}, "nothing and zero": {"", "\x00"}, "any": {"\x00\x01\x02", "user-1", "user-2", strings.Repeat("\t", 999)},
	})
}

func TestStringsOfEveryKind(t *testing.T) {
	vectors := map[string][]string{
		"empty": {""}, "some empty": {"", "a", "", "b1"}, "invalid": {"\xff\xfe1", "\x80", "é12"},
		"zero bytes": {"a\x001", "\x00\x01", "\x00", "user-1"}, "leading zeros": {"007", "07", "7", "0", "00", "100"},
		"long numbers":     {"9999999999999999999", "18446744073709551616", "1" + strings.Repeat("0", 40), "12345678901234567890123"},
		"hex like numbers": {"id-12345678", "id-1234abcd", "id-deadbeef", "id-00000000"},
		"odd hex":          {"abcdef123", "123456789", "00000000f", "abcdefabc"},
		"short hex":        {"x 7a8b9c0", "x 1234567", "x abcdefa", "x face"},
		"upper case":       {"DEADBEEF1", "0A1B2C3D", "deadBEEF"},
		"near uuid":        {"01234567-89ab-4def-8123-0123456789a", "01234567-89ab-4def-8123--123456789ab"},
		"uuid and more":    {"/01234567-89ab-4def-8123-0123456789abcd/12", "/01234567-89ab-4def-8123-0123456789ab7"},
		"long hex":         {strings.Repeat("0123456789abcdef", 40) + "7", strings.Repeat("a1", 200)},
		"many numbers":     {strings.Repeat("1.", 40), strings.Repeat("22:", 17), strings.Repeat("a1b2c3d4 ", 20)},
		"mixed widths":     {"a1b2c3d4", "a1b2c3d4e5f6", "a1b2c3d4e", "user 17"},
		"megabyte":         {strings.Repeat("long ", 1<<18) + "1", "2"},
	}
	c := newCoders()
	for name, v := range vectors {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 3, 20} {
				check(t, c, texts(), cycle(v, n))
			}
			if name != "megabyte" {
				check(t, c, texts(), varied(v, 2000))
			}
		})
	}
}

// varied returns n mostly different strings made from v.
func varied(v []string, n int) []string {
	out := cycle(v, n)
	for i := range out {
		if i%7 != 0 {
			out[i] += fmt.Sprintf("/%d/%x", i*i, i*7919)
		}
	}
	return out
}

func TestSamplesRoundTrip(t *testing.T) {
	c := newCoders()
	for _, s := range stringSamples() {
		t.Run(s.name, func(t *testing.T) { check(t, c, texts(), s.v) })
	}
	for _, s := range numberSamples() {
		t.Run(s.name, func(t *testing.T) { check(t, c, uint64s(), s.v) })
	}
	for _, s := range intSamples() {
		t.Run(s.name, func(t *testing.T) { check(t, c, int64s(), s.v) })
	}
	for _, s := range floatSamples() {
		t.Run(s.name, func(t *testing.T) { check(t, c, float64s(), s.v) })
	}
}

// TestRandomVectorsRoundTrip uses numbers with random widths, factors and repetitions, and strings
// built from random parts.
func TestRandomVectorsRoundTrip(t *testing.T) {
	c := newCoders()
	for seed := range uint64(200) {
		r := random(seed)
		n := r.IntN(1 << r.IntN(11))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			check(t, c, texts(), randomStrings(r, n))
			u := randomNumbers(r, n)
			check(t, c, uint64s(), u)
			i, f, k := make([]int64, n), make([]float64, n), make([]uint32, n)
			for j, x := range u {
				i[j], f[j], k[j] = int64(x), math.Float64frombits(x), uint32(x)
			}
			check(t, c, int64s(), i)
			check(t, c, float64s(), f)
			check(t, c, codes(), k)
		})
	}
}

func randomNumbers(r *rand.Rand, n int) []uint64 {
	width, factor, base := r.IntN(64), uint64(1+r.IntN(3)*999), r.Uint64()>>r.IntN(64)
	v := make([]uint64, n)
	for i := range v {
		v[i] = base + factor*(r.Uint64()>>width)
		if r.IntN(3) == 0 && i > 0 {
			v[i] = v[r.IntN(i)]
		}
	}
	return v
}

func randomStrings(r *rand.Rand, n int) []string {
	parts := []func() string{
		func() string { return fmt.Sprint(r.IntN(1 << r.IntN(30))) }, func() string { return fmt.Sprintf("%04d", r.IntN(10000)) },
		func() string { return hexID(r, 8) }, func() string { return hexID(r, 1+r.IntN(40)) }, func() string { return uuid(r) },
		func() string { return "/" }, func() string { return nonsense(r) }, func() string { return "decade-" },
		func() string { return string([]byte{byte(r.IntN(256))}) }, func() string { return "" },
	}
	shape := make([]int, 1+r.IntN(5))
	for i := range shape {
		shape[i] = r.IntN(len(parts))
	}
	v := make([]string, n)
	for i := range v {
		var b strings.Builder
		for _, p := range shape {
			if r.IntN(50) == 0 {
				p = r.IntN(len(parts))
			}
			b.WriteString(parts[p]())
		}
		v[i] = b.String()
		if r.IntN(4) == 0 && i > 0 {
			v[i] = v[r.IntN(i)]
		}
	}
	return v
}

func TestDecodedStringsOutliveTheDecoder(t *testing.T) {
	c := newCoders()
	first, second := make([]string, block), make([]string, block)
	for _, s := range stringSamples() {
		if len(s.v) != block {
			continue
		}
		src := c.flush.Strings(nil, s.v)
		if err := c.d.Strings(src, first); err != nil {
			t.Fatal(err)
		}
		clear(src)
		if err := c.d.Strings(c.flush.Strings(nil, cycle([]string{"x1", "y22", uuid(random(1))}, block)), second); err != nil {
			t.Fatal(err)
		}
		for i := range s.v {
			if first[i] != s.v[i] {
				t.Fatalf("%s: string %d changed to %q", s.name, i, first[i])
			}
		}
	}
}

func TestStringCodes(t *testing.T) {
	c := newCoders()
	v := cycle([]string{"GET", "POST", "GET", "GET", "PUT"}, 1000)
	codes := make([]uint32, len(v))
	table, ok, err := c.d.StringCodes(c.flush.Strings(nil, v), codes)
	if err != nil || !ok || len(table) != 3 || table[0] != "GET" {
		t.Fatalf("got %q, %v, %v", table, ok, err)
	}
	for i, x := range v {
		if table[codes[i]] != x {
			t.Fatalf("value %d is %q, want %q", i, table[codes[i]], x)
		}
	}
	table, ok, err = c.d.StringCodes(c.flush.Strings(nil, cycle(v[:1], 5)), codes[:5])
	if err != nil || !ok || len(table) != 1 || codes[4] != 0 {
		t.Fatalf("constant: got %q, %v, %v", table, ok, err)
	}
	unique := stringSamples()[0].v
	if _, ok, err = c.d.StringCodes(c.flush.Strings(nil, unique), make([]uint32, len(unique))); ok || err != nil {
		t.Fatalf("column without a table: %v, %v", ok, err)
	}
	if _, _, err = c.d.StringCodes([]byte{stringsTable, 9}, codes[:5]); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("corrupt column: %v", err)
	}
}

func TestTooManyBytesPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic for a column that cannot be decoded")
		}
	}()
	big := strings.Repeat("x", MaxBytes/2+1)
	NewEncoder(Flush).Strings(nil, []string{big, big})
}
