package adaptivesampling

import (
	"math"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Attributes that describe the sampler of a root span. Jaeger's client libraries set them without
// the prefix, OpenTelemetry's sampler jaegerremote with it.
const (
	typeKey  = "sampler.type"
	paramKey = "sampler.param"
	prefix   = "jaeger."
)

// samplerOf returns the sampler of a root span and its parameter. Without the attributes, it uses
// the threshold in the tracestate as a probability.
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
				param, hasParam = parseNumber(a.Value)
			}
		}
	}
	switch sampler {
	case sampling.SamplerProbabilistic, sampling.SamplerLowerBound, sampling.SamplerRateLimiting, sampling.SamplerConst:
		return sampler, param, hasParam
	case "":
		state := otlpdata.ParseSampling(s.TraceState).ForTrace(s.TraceID)
		return sampling.SamplerProbabilistic, state.Threshold.Probability(), state.HasThreshold
	}
	return "", 0, false
}

// parseNumber returns the value of a number, or of a string that contains a number.
func parseNumber(v otlpdata.Value) (n float64, ok bool) {
	switch v.Kind() {
	case otlpdata.ValueDouble:
		n = v.Double()
	case otlpdata.ValueInt:
		n = float64(v.Int())
	case otlpdata.ValueString:
		var err error
		if len(v.Str()) > maxNumberLength {
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

// maxNumberLength is the maximum length of a number in a string.
const maxNumberLength = 32
