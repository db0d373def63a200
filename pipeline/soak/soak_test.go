package soak_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSeed(t *testing.T) {
	t.Setenv(soak.SeedVariable, "")
	if got := soak.Seed(t); got != 1 {
		t.Errorf("Seed() = %d without a variable, want 1", got)
	}
	t.Setenv(soak.SeedVariable, "42")
	if got := soak.Seed(t); got != 42 {
		t.Errorf("Seed() = %d, want 42", got)
	}
	t.Setenv(soak.SeedVariable, "random")
	if a, b := soak.Seed(t), soak.Seed(t); a == b {
		t.Errorf("random seeds are both %d", a)
	}
}

func TestRounds(t *testing.T) {
	want := 20
	if testing.Short() {
		want = 2
	}
	t.Setenv(soak.RoundsVariable, "")
	if got := soak.Rounds(t, 20, 2); got != want {
		t.Errorf("Rounds(20, 2) = %d, want %d", got, want)
	}
	t.Setenv(soak.RoundsVariable, "50")
	if got := soak.Rounds(t, 20, 2); got != 50*want {
		t.Errorf("Rounds(20, 2) = %d with a factor of 50, want %d", got, 50*want)
	}
}
