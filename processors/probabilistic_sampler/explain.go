package probabilisticsampler

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

var _ sampling.TraceExplainer = (*sampler)(nil)

// ExplainTrace implements sampling.TraceExplainer for spans without a tracestate and a priority.
func (s *sampler) ExplainTrace(id sampling.TraceID) (sampling.Stage, bool) {
	stage := sampling.Stage{Kind: "processor", Key: "sampling_percentage"}
	var randomness uint64
	var threshold otlpdata.Threshold
	switch m := s.method.(type) {
	case *hashing:
		stage.Method, threshold, randomness = sampling.MethodHash, m.threshold, m.randomness(otlpdata.TraceID(id))
	case *consistent:
		stage.Method, threshold = sampling.MethodConsistent, m.threshold
		randomness = otlpdata.Sampling{}.ForTrace(otlpdata.TraceID(id)).Randomness
	}
	stage.Decide(threshold.Probability(), (otlpdata.Threshold(randomness)).Probability(), id)
	return stage, true
}
