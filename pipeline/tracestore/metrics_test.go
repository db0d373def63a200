package tracestore

import (
	"math"
	"testing"
	"time"
)

func TestStepLength(t *testing.T) {
	for step, minutes := range map[time.Duration]uint64{
		-time.Hour: 1, 0: 1, 1: 1, time.Minute: 1, time.Minute + 1: 2, 90 * time.Second: 2, time.Hour: 60, math.MaxInt64: 153722868,
	} {
		if got := (&MetricsQuery{Step: step}).StepLength(); got != minutes*uint64(time.Minute) {
			t.Errorf("%s: %d minutes, want %d", step, got/uint64(time.Minute), minutes)
		}
	}
}
