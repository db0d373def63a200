package canary

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	written, failures, forgotten prometheus.Counter
	reads                        *prometheus.CounterVec
	writeLatency                 prometheus.Histogram
	readLatency                  *prometheus.HistogramVec
}

// newMetrics registers the metrics. All series exist from the start, so that alerts on increases
// see the first increase.
func newMetrics(reg prometheus.Registerer, m *memory, now func() time.Time) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_canary_" + name, Help: help})
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tracing_canary_" + name, Help: help}, value)
	}
	latency := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: "tracing_canary_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}
	}
	out := &metrics{
		written:   counter("traces_written", "Acknowledged traces."),
		failures:  counter("write_failures", "Traces that were not or only partly acknowledged."),
		forgotten: counter("traces_forgotten", "Traces that were not read as often as planned, because more than --remember waited."),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tracing_canary_reads", Help: "Readings of acknowledged traces, by kind of request and result.",
		}, []string{"how", "result"}),
		writeLatency: prometheus.NewHistogram(latency("write_latency", "Time until a trace was acknowledged, in seconds.")),
		readLatency: prometheus.NewHistogramVec(
			latency("read_latency", "Time until a response was received, in seconds."), []string{"how"}),
	}
	for w := range ways {
		out.readLatency.WithLabelValues(w.String())
		for r := range results {
			out.reads.WithLabelValues(w.String(), r.String())
		}
	}
	reg.MustRegister(out.written, out.failures, out.forgotten, out.reads, out.writeLatency, out.readLatency,
		gauge("remembered_traces", "Traces that will be reread.", func() float64 { return float64(m.len()) }),
		gauge("reads_behind_seconds",
			"Time by which the next reading is overdue; more than a few seconds mean that the canary does not keep up.",
			func() float64 { return m.behind(now()).Seconds() }),
		gauge("oldest_missing_seconds", "Age of the oldest trace that was missing at its latest reading and will be reread; 0: none.",
			func() float64 { return m.oldestMissing(now()).Seconds() }))
	return out
}
