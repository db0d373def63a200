package adaptive

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Explain returns the buckets of an operation, and what each counts for in the decision about it.
func Explain(o Options, h *History, d *sampling.Decision) []sampling.AdaptiveInterval {
	buckets := h.All[d.Target]
	before := *d
	before.Probability = d.Before
	samples := o.samples(&before, buckets, h.Length)
	n := window(samples, min(o.Buckets, len(samples)))
	all, sum := weights(n, o.Buckets), 0.0
	for i, w := range all {
		sum += w * samples[i].exposure
	}
	out := make([]sampling.AdaptiveInterval, len(buckets))
	for i := range buckets {
		x := sampling.AdaptiveInterval{Until: h.Until.Add(-time.Duration(i) * h.Length), Seen: buckets[i].Seen, Bounded: buckets[i].Bounded}
		for _, s := range x.Seen {
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
