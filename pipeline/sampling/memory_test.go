package sampling_test

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/sampling/samplingtest"
)

func TestMemory(t *testing.T) {
	samplingtest.Run(t, samplingtest.Options{
		New: func(_ *testing.T, now func() time.Time) sampling.Store { return sampling.NewMemory(now) },
		Reopen: func(t *testing.T, s sampling.Store) sampling.Store {
			next := sampling.NewMemory(time.Now)
			if err := next.Restore(s.(*sampling.Memory).State()); err != nil {
				t.Fatal(err)
			}
			return next
		},
	})
}

// Restored data is checked like stored data.
func TestBadState(t *testing.T) {
	at := time.Unix(1, 0)
	m := sampling.NewMemory(time.Now)
	for name, s := range map[string]sampling.State{
		"a probability": {Latest: &sampling.Calculation{Decisions: []sampling.Decision{{Probability: 2}}}},
		"a length":      {Throughputs: []sampling.Throughput{{Until: at}}},
		"a number":      {Throughputs: make([]sampling.Throughput, sampling.MaxThroughputs+1)},
	} {
		if m.Restore(s) == nil {
			t.Errorf("%s not checked", name)
		}
	}
	if s := m.State(); s.Latest != nil || s.Throughputs != nil {
		t.Errorf("%+v", s)
	}
}
