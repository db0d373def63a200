package spanmetrics

import (
	"math"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// window holds the calls that a point describes. It slides: each unit of time is added once and
// removed once, regardless of the length of the window.
type window struct {
	seconds       float64
	calls, errors uint64
	durations     [tracestore.Buckets]uint64
	sum           uint64 // of the durations
	scratch       tracestore.Histogram
}

func (w *window) addPoint(p *tracestore.MetricPoint) {
	w.calls += p.Calls
	w.errors += p.Errors
	w.sum += p.Durations.Sum
	first, counts := p.Durations.Counts()
	for i, n := range counts {
		w.durations[first+i] += n
	}
}

func (w *window) remove(p *tracestore.MetricPoint) {
	w.calls -= p.Calls
	w.errors -= p.Errors
	w.sum -= p.Durations.Sum
	first, counts := p.Durations.Counts()
	for i, n := range counts {
		w.durations[first+i] -= n
	}
}

// callRate returns calls per second.
func (w *window) callRate() float64 { return float64(w.calls) / w.seconds }

// errorRate returns the fraction of calls that failed, NaN if there were no calls.
func (w *window) errorRate() float64 {
	if w.calls == 0 {
		return math.NaN()
	}
	return float64(w.errors) / float64(w.calls)
}

// milliseconds returns a quantile of durations, NaN if there were no calls.
func (w *window) milliseconds(quantile float64) float64 {
	if w.calls == 0 {
		return math.NaN()
	}
	w.scratch.Reset()
	w.scratch.Sum = w.sum
	for bucket, n := range w.durations {
		if n > 0 {
			w.scratch.AddBucket(bucket, n)
		}
	}
	return w.scratch.Quantile(quantile) / float64(time.Millisecond)
}
