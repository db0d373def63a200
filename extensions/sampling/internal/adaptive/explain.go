package adaptive

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Explain returns the buckets of an operation with their weights in the decision.
func Explain(o Options, h *History, d *sampling.Decision) []sampling.AdaptiveInterval {
	buckets := h.All[d.OperationKey]
	before := *d
	before.Probability = d.Before
	samples := o.samples(&before, buckets, h.Length)
	n := window(samples, min(o.MinBuckets, len(samples)))
	all, sum := weights(n, o.MinBuckets), 0.0
	for i, w := range all {
		sum += w * samples[i].exposure
	}
	out := make([]sampling.AdaptiveInterval, len(buckets))
	for i := range buckets {
		x := sampling.AdaptiveInterval{Until: h.Until.Add(-time.Duration(i) * h.Length), Counts: buckets[i].Counts,
			ByLowerBound: buckets[i].ByLowerBound}
		for _, s := range x.Counts {
			x.Sampled += float64(s.Count) / h.Length.Seconds()
		}
		if samples[i].exposure > 0 {
			x.Begun = samples[i].count / samples[i].exposure
		}
		if i < n && sum > 0 {
			x.Weight = all[i] * samples[i].exposure / sum
		}
		out[i] = x
	}
	return out
}
