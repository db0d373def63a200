package sampling_test

import (
	"encoding/binary"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

func idOf(low uint64) (id sampling.TraceID) {
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

func TestClientStage(t *testing.T) {
	probabilistic := func(p, lower float64) sampling.Sampler {
		return sampling.Sampler{Type: sampling.SamplerProbabilistic, Param: p, LowerBound: lower}
	}
	for name, c := range map[string]struct {
		sampler sampling.Sampler
		id      sampling.TraceID
		want    sampling.Verdict
		rules   int
	}{
		"all":                   {probabilistic(1, 0), idOf(1 << 63), sampling.Keeps, 2},
		"none":                  {probabilistic(0, 0), idOf(5), sampling.Drops, 2},
		"both keep":             {probabilistic(0.5, 0), idOf(1 << 60), sampling.Keeps, 2},
		"both drop":             {probabilistic(0.25, 0), idOf(7 << 60), sampling.Drops, 2},
		"clients disagree":      {probabilistic(0.25, 0), idOf(8 << 60), sampling.Depends, 2}, // 0.5 and 0
		"without a trace id":    {probabilistic(0.25, 0), sampling.TraceID{}, sampling.Depends, 0},
		"lower bound":           {probabilistic(0.25, 0.1), idOf(7 << 60), sampling.Drops, 3},
		"rate limit":            {sampling.Sampler{Type: sampling.SamplerRateLimiting, Param: 7}, idOf(5), sampling.Depends, 1},
		"all without a trace":   {probabilistic(1, 0), sampling.TraceID{}, sampling.Keeps, 0},
		"smallest number, tiny": {probabilistic(1e-6, 0), idOf(1), sampling.Keeps, 2},
	} {
		if s := sampling.ClientStage(c.sampler, c.id); s.Verdict != c.want || len(s.Rules) != c.rules {
			t.Errorf("%s: %+v, want %s and %d rules", name, s, c.want, c.rules)
		}
	}
	if n := sampling.NeedsConsistent(idOf(3 << 54)); n != 0.25 {
		t.Errorf("needs %v, want 0.25", n)
	}
}
