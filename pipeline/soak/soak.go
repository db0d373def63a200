// Package soak determines the seed and the duration of tests with random input: a short run in
// `make test`, more rounds with the same seed in `make test-long`, and long runs with random seeds
// in `make soak`.
package soak

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Environment variables.
const (
	// SeedVariable holds the seed, a number or "random". Without it the seed is 1.
	SeedVariable = "TRACING_SEED"
	// RoundsVariable holds the number by which Rounds multiplies.
	RoundsVariable = "TRACING_SOAK"
)

// Seed returns the seed of a test and logs it, so that a failure can be repeated.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(1)
	if Soaking() {
		seed = rand.Uint64()
	} else {
		seed = number(tb, SeedVariable, seed)
	}
	tb.Logf("%s=%d", SeedVariable, seed)
	return seed
}

// Repeating reports whether the seed is given as a number, to reproduce a failure with logs.
func Repeating() bool {
	_, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64)
	return err == nil
}

// Rounds returns the number of rounds of a test: normal, or short with -short, multiplied by
// TRACING_SOAK.
func Rounds(tb testing.TB, normal, short int) int {
	tb.Helper()
	n := normal
	if testing.Short() {
		n = short
	}
	return n * int(number(tb, RoundsVariable, 1))
}

// Soaking reports whether tests run with random seeds, as in `make soak`.
func Soaking() bool { return os.Getenv(SeedVariable) == "random" }

// Raced reports whether tests run with -short and the race detector, as in `make race`.
func Raced() bool { return raceDetector && testing.Short() }

// SkipIfRaced skips a test if tests are Raced. It is for long tests in which the race detector has
// nothing to find, because nothing runs concurrently, because the program runs as a process of its
// own, or because other tests race the same code. `make test-long` runs them.
func SkipIfRaced(tb testing.TB) {
	tb.Helper()
	if Raced() {
		tb.Skip("the race detector finds nothing here that it does not find elsewhere; the test runs without it")
	}
}

func number(tb testing.TB, variable string, otherwise uint64) uint64 {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	return n
}
