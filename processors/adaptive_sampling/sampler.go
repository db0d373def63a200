package adaptivesampling

import (
	"math"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// The tags in which clients say what decided about a trace: those of the native libraries, and, with this prefix, of OpenTelemetry's sampler
// jaegerremote.
const (
	typeKey  = "sampler.type"
	paramKey = "sampler.param"
	prefix   = "jaeger."
)

// samplerOf returns what a root span says of its sampler. Without the tags, a threshold in its tracestate says as much as a probability.
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
		param, ok = shareOf(s.TraceState)
		return sampling.SamplerProbabilistic, param, ok
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

// shareOf returns the share of traces that were sampled, from the member `ot=th:` of a tracestate: of its 14 hexadecimal digits those at the
// end may be missing if they are 0, and it is the share that was not sampled (OpenTelemetry, "TraceState: Probability Sampling").
func shareOf(tracestate string) (share float64, ok bool) {
	for member := range strings.SplitSeq(tracestate, ",") {
		value, isOurs := strings.CutPrefix(strings.Trim(member, " \t"), "ot=")
		if !isOurs {
			continue
		}
		for pair := range strings.SplitSeq(value, ";") {
			if digits, is := strings.CutPrefix(pair, "th:"); is {
				return shareAbove(digits)
			}
		}
		return 0, false
	}
	return 0, false
}

func shareAbove(digits string) (share float64, ok bool) {
	const most = 14
	if len(digits) == 0 || len(digits) > most || strings.Trim(digits, "0123456789abcdef") != "" {
		return 0, false
	}
	bits := 4 * len(digits)
	n, err := strconv.ParseUint(digits, 16, bits)
	return math.Ldexp(float64(1<<bits-n), -bits), err == nil
}
