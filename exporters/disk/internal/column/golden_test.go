package column

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
)

// checkGolden checks that the encoder uses the given method for v, and that the golden file of the
// method decodes to v. Golden files must stay readable; the encoder may produce different bytes.
func checkGolden[T any](t *testing.T, k codec[T], name string, head byte, v []T) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c := newCoders()
		b := k.encode(c.flush, nil, v)
		if b[0] != head {
			t.Errorf("encoded with method %#x, want %#x", b[0], head)
		}
		file := filepath.Join("testdata", "golden", name)
		if golden.Updating() {
			golden.Write(t, file, b)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]T, len(v))
		if err := k.decode(c.d, b, out); err != nil {
			t.Fatal(err)
		}
		for i := range v {
			if !k.equal(v[i], out[i]) {
				t.Fatalf("value %d: %#v decoded as %#v", i, v[i], out[i])
			}
		}
	})
}

// mixed returns pseudo-random numbers below limit. It uses its own generator, so that the golden
// files do not depend on another one.
func mixed(n int, limit uint64) []uint64 {
	v, x := make([]uint64, n), uint64(1)
	for i := range v {
		x = x*6364136223846793005 + 1442695040888963407
		v[i] = (x >> 20) % limit
	}
	return v
}

// spread returns numbers of very different magnitudes.
func spread(n int, factor uint64) []uint64 {
	v := mixed(n, 1<<40)
	for i := range v {
		v[i] = v[i] >> (v[i] % 8) >> (v[i] % 31) * factor
	}
	return v
}

func goldenStrings(n int, f func(i, x uint64) string) []string {
	v := make([]string, n)
	for i, x := range mixed(n, 1<<44) {
		v[i] = f(uint64(i), x)
	}
	return v
}

func hexOf(x uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[x>>(i%11*4)&15]
	}
	return string(b)
}

func decimalOf(x uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[n-1-i] = byte('0' + x%10)
		x /= 10
	}
	return string(b)
}

func TestGoldenNumbers(t *testing.T) {
	signed := func(v []uint64, less int64) []int64 {
		out := make([]int64, len(v))
		for i, x := range v {
			out[i] = int64(x) - less
		}
		return out
	}
	classed := spread(500, 1)
	summed := make([]uint64, 500)
	fluctuating := make([]uint64, 500)
	for i := range summed {
		summed[i] = uint64(i)*1_000_000 + mixed(500, 1_000_000)[i]
		fluctuating[i] = 1<<50 + uint64(1000*math.Round(1e6*math.Sin(float64(i)/50)))
	}
	checkGolden(t, uint64s(), "numbers-constant", numConstant, cycle([]uint64{math.MaxUint64}, 10))
	checkGolden(t, uint64s(), "numbers-packed", numPacked, mixed(50, 1<<20))
	checkGolden(t, uint64s(), "numbers-packed-factor", numPacked, []uint64{7_000_500, 1_000_500, 8_000_500, 3_000_500})
	checkGolden(t, uint64s(), "numbers-classes", numClasses, classed)
	checkGolden(t, uint64s(), "numbers-table", numTable, cycle([]uint64{200, 200, 200, 1 << 60, 500, 404}, 500))
	checkGolden(t, uint64s(), "numbers-ascending", numPacked|ascending<<4, summed)
	checkGolden(t, uint64s(), "numbers-delta", numClasses|delta<<4, fluctuating)
	crossesZero := signed(spread(500, 1), 0)
	for i := range crossesZero {
		if i%2 == 0 {
			crossesZero[i] = -crossesZero[i] - 1
		}
	}
	checkGolden(t, int64s(), "numbers-magnitude", numClasses|magnitude<<4, crossesZero)
	checkGolden(t, int64s(), "numbers-negative", numPacked, signed(mixed(50, 1<<20), 1<<40))
}

func TestGoldenOthers(t *testing.T) {
	prices, raw := make([]float64, 300), make([]float64, 300)
	for i, x := range mixed(300, 100_000) {
		prices[i], raw[i] = float64(x)/100, math.Float64frombits(x<<30|math.Float64bits(1))
	}
	raw[7], raw[8] = math.Copysign(0, -1), math.Float64frombits(0x7ff8_0000_dead_beef)
	checkGolden(t, float64s(), "doubles-decimal", floatDecimal, prices)
	checkGolden(t, float64s(), "doubles-bits", floatBits, raw)
	truth := make([]bool, 1000)
	for i, x := range mixed(1000, 10) {
		truth[i] = x == 0
	}
	checkGolden(t, bools(), "bools", 1, truth)

	code := func(v []uint64) []uint32 {
		out := make([]uint32, len(v))
		for i, x := range v {
			out[i] = uint32(x)
		}
		return out
	}
	checkGolden(t, codes(), "codes-byte", codesPlanes, code(mixed(300, 200)))
	checkGolden(t, codes(), "codes-planes", codesPlanes, code(cycle(mixed(300, 1<<14), 3000)))
	checkGolden(t, codes(), "codes-numbers", codesNumbers, code(mixed(300, 1<<20)))

	ids := make([][8]byte, 50)
	for i, x := range mixed(50, 1<<40) {
		ids[i] = [8]byte{0, 1, byte(x), byte(x >> 8), 4, byte(x >> 16), byte(x >> 24), byte(x >> 30)}
	}
	checkGolden(t, fixed8(), "fixed", 1<<0|1<<1|1<<4, ids)
}

func TestGoldenStrings(t *testing.T) {
	checkGolden(t, texts(), "strings-constant", stringsConstant, cycle([]string{sql}, 10))
	checkGolden(t, texts(), "strings-plain", stringsPlain, goldenStrings(100, func(_, x uint64) string {
		return string([]byte{byte('g' + x%19), 0xff, byte('g' + x>>8%19), 0, byte('g' + x>>16%19), byte('g' + x>>24%19)})
	}))
	checkGolden(t, texts(), "strings-table", stringsTable, cycle([]string{"GET", "POST", "GET", "", "GET"}, 500))
	checkGolden(t, texts(), "strings-table-ordered", stringsTable, append(goldenStrings(300, user), goldenStrings(300, user)...))
	checkGolden(t, texts(), "strings-split-numbers", stringsSplit, goldenStrings(300, func(i, x uint64) string {
		return []string{"/orders/", "/carts/"}[i%2] + decimalOf(x+1e6, 7) + "/items/1" + decimalOf(x>>20, 2) + ":" + decimalOf(x>>30%60, 2)
	}))
	checkGolden(t, texts(), "strings-split-hex", stringsSplit, goldenStrings(300, func(_, x uint64) string {
		return "session:" + hexOf(x, 12)
	}))
	checkGolden(t, texts(), "strings-split-uneven", stringsSplit, goldenStrings(300, func(i, x uint64) string {
		return hexOf(x, int(9+i%3)) + "-" + hexOf(x>>1, 11)
	}))
	checkGolden(t, texts(), "strings-split-uuid", stringsSplit, goldenStrings(100, func(_, x uint64) string {
		return hexOf(x, 8) + "-" + hexOf(x>>3, 4) + "-" + hexOf(x>>5, 4) + "-" + hexOf(x>>7, 4) + "-" + hexOf(x>>11, 12)
	}))
	checkGolden(t, texts(), "blobs", stringsPlain, []string{"", "\x00\x01", "user-1", "\xff"})
}

func user(i, x uint64) string { return "user-" + decimalOf(x+1e6, 6) }
