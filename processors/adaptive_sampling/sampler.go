package adaptivesampling

import (
	"math"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// The tags in which clients say what decided about a trace: those of the native libraries, and,
// with this prefix, of OpenTelemetry's sampler jaegerremote.
const (
	typeKey  = "sampler.type"
	paramKey = "sampler.param"
	prefix   = "jaeger."
)

// samplerOf returns what a root span says of its sampler. Without the tags, a threshold in its
// tracestate says as much as a probability.
func samplerOf(s *otlpdata.Span) (sampler string, param float64, ok bool) {
	var hasParam bool
	for i := range s.Attributes {
		a := &s.Attributes[i]
		switch strings.TrimPrefix(a.Key, prefix) {
		case typeKey:
			if sampler == "" {
				sampler = a.Value.Str()
			}
		case paramKey:
			if !hasParam {
				param, hasParam = number(a.Value)
			}
		}
	}
	switch sampler {
	case sampling.SamplerProbabilistic, sampling.SamplerLowerBound, sampling.SamplerRateLimiting, sampling.SamplerConst:
		return sampler, param, hasParam
	case "":
		said := otlpdata.ParseSampling(s.TraceState).ForTrace(s.TraceID)
		return sampling.SamplerProbabilistic, said.Threshold.Probability(), said.HasThreshold
	}
	return "", 0, false
}

// number returns the number that a value is, or is the text of.
func number(v otlpdata.Value) (n float64, ok bool) {
	switch v.Kind() {
	case otlpdata.ValueDouble:
		n = v.Double()
	case otlpdata.ValueInt:
		n = float64(v.Int())
	case otlpdata.ValueString:
		var err error
		if len(v.Str()) > maxNumber {
			return 0, false
		}
		if n, err = strconv.ParseFloat(v.Str(), 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return n, !math.IsNaN(n) && !math.IsInf(n, 0)
}

// maxNumber is how long the text of a number may be.
const maxNumber = 32
