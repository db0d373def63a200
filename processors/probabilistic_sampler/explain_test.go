package probabilisticsampler

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// An explanation says what the processor does, in all modes.
func TestExplainTrace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, mode := range []string{modeEqualizing, modeProportional, modeHashSeed} {
		for _, percentage := range []float64{0, 0.5, 12.5, 50, 99, 100} {
			s, _ := build(t, percentage, mode)
			kept := 0
			for range 500 {
				var id sampling.TraceID
				binary.BigEndian.PutUint64(id[:8], r.Uint64())
				binary.BigEndian.PutUint64(id[8:], r.Uint64())
				_, _, sampled := s.method.decide(nil, otlpdata.TraceID(id), nil, priorityNone)
				want := sampling.Drops
				if sampled {
					want, kept = sampling.Keeps, kept+1
				}
				if x, ok := s.ExplainTrace(id); !ok || x.Verdict != want {
					t.Fatalf("%s at %v %%: %+v, want %s", mode, percentage, x, want)
				}
			}
			if share := float64(kept) / 5; share < percentage-8 || share > percentage+8 {
				t.Errorf("%s at %v %%: kept %v %%", mode, percentage, share)
			}
		}
	}
	s, _ := build(t, 50, "")
	if x, _ := s.ExplainTrace(sampling.TraceID{}); x.Verdict != sampling.Depends || x.Needs != nil || fmt.Sprint(*x.Probability) != "0.5" {
		t.Errorf("without a trace id: %+v", x)
	}
}
