package query

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// filledMemory returns a memory exporter with these spans.
func filledMemory(t testing.TB, td ptrace.Traces) writableStore {
	t.Helper()
	store := memoryStore(t)
	if err := store.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{})); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestChooseStep(t *testing.T) {
	f := func(length time.Duration, columns int, want time.Duration) {
		t.Helper()
		if got := chooseStep(length, columns); got != want {
			t.Errorf("%s in %d columns: step %s, want %s", length, columns, got, want)
		}
		if n := int64(length/chooseStep(length, columns)) + 2; n > int64(columns)+1 && columns > 1 {
			t.Errorf("%s in %d columns: up to %d", length, columns, n)
		}
	}
	const day = 24 * time.Hour
	f(time.Hour, 120, time.Minute)
	f(time.Hour, 2000, time.Minute)
	f(14*time.Minute, 120, 10*time.Second)
	f(15*time.Minute, 2, 15*time.Minute)
	f(time.Second, 120, 10*time.Millisecond)
	f(0, 120, 1)
	f(1, 1, 1)
	f(6*time.Hour, 120, 5*time.Minute)
	f(30*day, 120, 12*time.Hour)
	f(365*day, 100, 4*day)
	f(290*365*day, 2000, 53*day)
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		counted uint64
		share   float64
		want    uint64
	}{{10, 1, 10}, {10, 0.5, 20}, {1, 0.3, 3}, {0, 0.1, 0}, {7, 0, 7}, {1 << 60, 1e-9, 1 << 63}} {
		if got := estimate(c.counted, c.share); got != c.want {
			t.Errorf("%d of a share of %v: %d, want %d", c.counted, c.share, got, c.want)
		}
	}
}
