package column

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// sample is a vector that resembles vectors of real spans.
type sample[T any] struct {
	name string
	v    []T
}

// block is the usual number of values.
const block = 4096

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func generate[T any](name string, n int, value func(r *rand.Rand, i int) T) sample[T] {
	r := random(uint64(len(name)))
	v := make([]T, n)
	for i := range v {
		v[i] = value(r, i)
	}
	return sample[T]{name, v}
}

func hexID(r *rand.Rand, n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[r.IntN(16)]
	}
	return string(b)
}

func uuid(r *rand.Rand) string {
	s := hexID(r, 32)
	return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-" + s[16:20] + "-" + s[20:]
}

const sql = "SELECT id, name, price FROM products WHERE category = $1 AND price < $2 ORDER BY price LIMIT 50"

func stringSamples() []sample[string] {
	trace := make([]string, 0, block) // an id that several spans of a trace have, in three shapes
	for range 3 {
		r := random(3)
		for range 200 {
			id := fmt.Sprint("user-", 100000+r.IntN(200000))
			for range 1 + r.IntN(4) {
				trace = append(trace, id)
			}
		}
	}
	routes := []string{"https://shop:443/api/orders/", "https://cart:443/api/carts/", "https://users:443/v1/users/"}
	return []sample[string]{
		generate("hex32", block, func(r *rand.Rand, _ int) string { return hexID(r, 32) }),
		generate("hex12", block, func(r *rand.Rand, _ int) string { return hexID(r, 12) }),
		generate("hex7", block, func(r *rand.Rand, _ int) string { return hexID(r, 7) }),
		generate("uuid", block, func(r *rand.Rand, _ int) string { return uuid(r) }),
		generate("path", block, func(r *rand.Rand, _ int) string { return fmt.Sprintf("/api/orders/%d/items", r.IntN(10000)) }),
		generate("url", block, func(r *rand.Rand, _ int) string {
			return routes[r.IntN(3)] + hexID(r, 12) + "?trace=" + hexID(r, 8)
		}),
		generate("redis", block, func(r *rand.Rand, _ int) string {
			return []string{"GET session:", "SET cart:"}[r.IntN(2)] + hexID(r, 12)
		}),
		generate("sql", block, func(*rand.Rand, int) string { return sql }),
		generate("user", block, func(r *rand.Rand, _ int) string { return fmt.Sprint("user-", 100000+r.IntN(200000)) }),
		{"user-of-trace", trace},
		generate("ip", block, func(r *rand.Rand, _ int) string { return fmt.Sprintf("10.1.%d.%d", r.IntN(256), r.IntN(256)) }),
		generate("agent", block, func(r *rand.Rand, _ int) string {
			return "Mozilla/5.0 (X11; " + strings.Repeat("like Gecko ", r.IntN(6)) + ")"
		}),
		generate("time", block, func(r *rand.Rand, _ int) string {
			return fmt.Sprintf("2026-11-21T%02d:%02d:%02d.%03dZ", r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
		}),
		generate("words", block, func(r *rand.Rand, _ int) string { return fmt.Sprintf("%s %s", nonsense(r), nonsense(r)) }),
	}
}

func nonsense(r *rand.Rand) string {
	b := make([]byte, 3+r.IntN(5))
	for i := range b {
		b[i] = "etaoinshrdlu"[r.IntN(12)]
	}
	return string(b)
}

func numberSamples() []sample[uint64] {
	lognormal := func(r *rand.Rand, _ int) uint64 { return uint64(math.Exp(16 + 1.2*r.NormFloat64())) }
	now := uint64(0)
	return []sample[uint64]{
		generate("duration", block, lognormal),
		generate("duration-us", block, func(r *rand.Rand, i int) uint64 { return lognormal(r, i) / 1000 * 1000 }),
		generate("port", block, func(r *rand.Rand, _ int) uint64 { return []uint64{443, 5432, 6379, 50051}[r.IntN(4)] }),
		generate("status", block, func(r *rand.Rand, _ int) uint64 {
			return []uint64{200, 200, 200, 200, 200, 200, 201, 201, 404, 500}[r.IntN(10)]
		}),
		generate("thread", block, func(r *rand.Rand, _ int) uint64 { return 1 + uint64(r.IntN(64)) }),
		generate("kafka-offset", block, func(r *rand.Rand, i int) uint64 { return uint64(3*i/19 + 90_000_000 + r.IntN(100000)) }),
		generate("size", block, func(r *rand.Rand, _ int) uint64 { return uint64(math.Exp(6.7 + r.NormFloat64())) }),
		generate("clock", block, func(r *rand.Rand, _ int) uint64 {
			now += uint64(r.ExpFloat64() * 1e6)
			return 1_800_000_000_000_000_000 + now
		}),
		generate("port-few", 20, func(r *rand.Rand, _ int) uint64 { return []uint64{443, 5432, 6379, 50051}[r.IntN(4)] }),
		generate("duration-few", 20, lognormal),
	}
}

func intSamples() []sample[int64] {
	return []sample[int64]{
		generate("start", block, func(r *rand.Rand, _ int) int64 { return int64(math.Exp(15+1.5*r.NormFloat64())) - 20000 }),
		generate("skewed", block, func(r *rand.Rand, _ int) int64 { return int64(r.NormFloat64()*1e6) * 1000 }),
		generate("small", block, func(r *rand.Rand, _ int) int64 { return int64(r.IntN(3)) - 1 }),
	}
}

func floatSamples() []sample[float64] {
	return []sample[float64]{
		generate("price", block, func(r *rand.Rand, _ int) float64 { return float64(r.IntN(100000)) / 100 }),
		generate("single", block, func(r *rand.Rand, _ int) float64 { return float64(r.Float32()) }),
		generate("any", block, func(r *rand.Rand, _ int) float64 { return r.Float64() }),
	}
}
