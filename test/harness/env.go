package harness

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// EnvNumber returns the number in an environment variable, or otherwise if the variable is not set. The value "random" stands
// for a random number.
func EnvNumber(tb testing.TB, name string, otherwise uint64) uint64 {
	tb.Helper()
	v := os.Getenv(name)
	switch v {
	case "":
		return otherwise
	case "random":
		return rand.Uint64()
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return n
}

// Seed returns the seed of a test with random input: 1, so that every run is the same, or what TRACING_SEED says. `make soak`
// sets it to random. Seed logs it, so that a failure can be repeated.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := EnvNumber(tb, "TRACING_SEED", 1)
	tb.Logf("TRACING_SEED=%d", seed)
	return seed
}
