package probabilisticsampler

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// method decides about spans. Apart from the priority, a decision depends only on the trace id and
// the tracestate of a span.
type method interface {
	// decide reports whether a span is sampled. If its tracestate changes, changed is true and
	// state is the new one, appended to dst.
	decide(dst []byte, id otlpdata.TraceID, tracestate []byte, p priority) (state []byte, changed, sampled bool)
	// samplesAll reports whether spans without a priority are sampled and not changed.
	samplesAll() bool
}

// newMethod returns the method for a valid configuration. As in the OpenTelemetry Collector, the
// percentage has a precision of 32 bits.
func newMethod(c Config) method {
	percentage := float32(min(c.Percentage, 100))
	if c.mode() == modeHashSeed {
		return newHashing(percentage, c.HashSeed, c.FailClosed)
	}
	share := float64(percentage) / 100
	return &consistent{proportional: c.mode() == modeProportional, share: share, precision: c.Precision,
		threshold: thresholdOf(share, c.Precision)}
}

// consistent compares the randomness of a trace with a threshold, in the modes equalizing and
// proportional.
type consistent struct {
	proportional bool
	share        float64 // 0 to 1
	precision    int
	threshold    otlpdata.Threshold // for share
}

func (c *consistent) samplesAll() bool { return c.threshold == 0 }

func (c *consistent) decide(dst []byte, id otlpdata.TraceID, tracestate []byte, p priority) ([]byte, bool, bool) {
	state := otlpdata.ParseSamplingBytes(tracestate)
	before := state.ForTrace(id)
	target := c.target(before)
	switch {
	case p == priorityDrop, p == priorityNone && (target == otlpdata.RejectAll || before.Randomness < uint64(target)):
		return dst, false, false
	case p == priorityKeep:
		target = before.Threshold // a threshold cannot be lowered
	case c.samplesAll() && !state.HasThreshold:
		return dst, false, true
	}
	if state.HasThreshold && state.Threshold == target {
		return dst, false, true
	}
	return otlpdata.AppendThreshold(dst, tracestate, target), true, true
}

// target returns the threshold for a span with the given sampling state.
func (c *consistent) target(before otlpdata.Sampling) otlpdata.Threshold {
	switch {
	case !before.HasThreshold:
		return c.threshold
	case c.proportional:
		return max(before.Threshold, thresholdOf(before.Threshold.Probability()*c.share, c.precision))
	default:
		return max(before.Threshold, c.threshold)
	}
}
