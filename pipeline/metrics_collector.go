package pipeline

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// collectorMetrics are those of the tracing_collector_ family: what a process takes in and stores, by service. Names and labels of the
// first four are the interface specification's (section 2.4), plus transport; the others follow them. A receiver whose spans are only
// passed on to next hops is not counted here: the sum over all processes would count its spans once for each hop.
type collectorMetrics struct {
	spansReceived  *prometheus.CounterVec
	tracesReceived *prometheus.CounterVec
	spansSaved     *prometheus.CounterVec
	tracesSaved    *prometheus.CounterVec
	spansRejected  *prometheus.CounterVec
	tracesRejected *prometheus.CounterVec
	spansDropped   prometheus.Counter
	batchSize      prometheus.Gauge
	saveLatency    prometheus.Histogram
	services       serviceLabels
}

func newCollectorMetrics(reg prometheus.Registerer) *collectorMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_collector_" + name, Help: help}, labels)
	}
	in := []string{"debug", "format", "svc", "transport"}
	out := []string{"debug", "result", "svc"}
	m := &collectorMetrics{
		spansReceived:  counter("spans_received", "Spans offered to receivers.", in...),
		tracesReceived: counter("traces_received", "Spans without a parent offered to receivers.", in...),
		spansSaved:     counter("spans_saved_by_svc", "Spans given to a store, by result.", out...),
		tracesSaved:    counter("traces_saved_by_svc", "Spans without a parent given to a store, by result.", out...),
		spansRejected:  counter("spans_rejected", "Spans of requests that were received and refused as a whole.", in...),
		tracesRejected: counter("traces_rejected", "Spans without a parent of requests that were received and refused as a whole.", in...),
		spansDropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_collector_spans_dropped",
			Help: "Spans that were acknowledged and then given up by a sending queue."}),
		batchSize: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_collector_batch_size", Help: "Spans in the request that was received last."}),
		saveLatency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tracing_collector_save_latency",
			Help: "Seconds that a store took for what it was given at once, be it saved or refused.", Buckets: prometheus.DefBuckets}),
	}
	reg.MustRegister(m.spansReceived, m.tracesReceived, m.spansSaved, m.tracesSaved, m.spansRejected, m.tracesRejected, m.spansDropped,
		m.batchSize, m.saveLatency)
	return m
}

// received counts a batch as offered.
func (m *collectorMetrics) received(b *otlpdata.Batch) {
	m.batchSize.Set(float64(b.Len()))
	m.offered(b, m.spansReceived, m.tracesReceived)
}

// rejected counts a batch that was received and for which the client was told err. Of a partial success it is not known which services'
// spans were rejected: that is in the accounting of the receiver only.
func (m *collectorMetrics) rejected(b *otlpdata.Batch, err error) {
	if p := (*Partial)(nil); errors.As(err, &p) && p.Rejected < b.Len() {
		return
	}
	m.offered(b, m.spansRejected, m.tracesRejected)
}

func (m *collectorMetrics) offered(b *otlpdata.Batch, spans, roots *prometheus.CounterVec) {
	meta := b.Meta()
	for _, s := range b.Services() {
		svc := m.services.label(s.Service)
		for _, n := range byDebug(s) {
			if n.spans > 0 {
				spans.WithLabelValues(n.debug, meta.Format, svc, meta.Transport).Add(float64(n.spans))
				roots.WithLabelValues(n.debug, meta.Format, svc, meta.Transport).Add(float64(n.roots))
			}
		}
	}
}

// saved counts a batch that a store was given, the result (ok or err), and how long it took.
func (m *collectorMetrics) saved(b *otlpdata.Batch, result string, took time.Duration) {
	m.saveLatency.Observe(took.Seconds())
	for _, s := range b.Services() {
		svc := m.services.label(s.Service)
		for _, n := range byDebug(s) {
			if n.spans > 0 {
				m.spansSaved.WithLabelValues(n.debug, result, svc).Add(float64(n.spans))
				m.tracesSaved.WithLabelValues(n.debug, result, svc).Add(float64(n.roots))
			}
		}
	}
}

// share is the part of a service's spans that has a value of the label debug.
type share struct {
	debug        string
	spans, roots int
}

func byDebug(s otlpdata.ServiceCount) [2]share {
	return [2]share{
		{"false", s.Spans - s.Debug.Spans, s.Roots - s.Debug.Roots},
		{"true", s.Debug.Spans, s.Debug.Roots},
	}
}
