package delivery

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// collectorMetrics holds the tracing_collector_ metrics: spans that a process receives and stores,
// by service. The names and labels of the first four are fixed by the public interface, except the
// label transport. Receivers whose spans are only forwarded to next hops are not counted: the sum
// over all processes would count their spans once for each hop.
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

func newCollectorMetrics() *collectorMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_collector_" + name, Help: help}, labels)
	}
	in := []string{"debug", "format", "svc", "transport"}
	out := []string{"debug", "result", "svc"}
	return &collectorMetrics{
		spansReceived:  counter("spans_received", "Spans offered to receivers.", in...),
		tracesReceived: counter("traces_received", "Spans without a parent offered to receivers.", in...),
		spansSaved:     counter("spans_saved_by_svc", "Spans passed to a store, by result.", out...),
		tracesSaved:    counter("traces_saved_by_svc", "Spans without a parent passed to a store, by result.", out...),
		spansRejected:  counter("spans_rejected", "Spans of requests that were refused as a whole.", in...),
		tracesRejected: counter("traces_rejected", "Spans without a parent of requests that were refused as a whole.", in...),
		spansDropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_collector_spans_dropped",
			Help: "Acknowledged spans that were dropped from a sending queue."}),
		batchSize: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_collector_batch_size", Help: "Spans in the latest request."}),
		saveLatency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tracing_collector_save_latency",
			Help: "Seconds that a store took for a batch, saved or refused.", Buckets: prometheus.DefBuckets}),
	}
}

func (m *collectorMetrics) register(reg prometheus.Registerer) {
	reg.MustRegister(m.spansReceived, m.tracesReceived, m.spansSaved, m.tracesSaved, m.spansRejected, m.tracesRejected, m.spansDropped,
		m.batchSize, m.saveLatency)
}

// countReceived counts a batch that was offered to a receiver.
func (m *collectorMetrics) countReceived(b *otlpdata.Batch) {
	m.batchSize.Set(float64(b.Len()))
	m.countByService(b, m.spansReceived, m.tracesReceived)
}

// countRejected counts a batch that was refused with err. A partial success does not say which
// spans were rejected, so it is not counted by service; tracing_pipeline_spans_total counts it.
func (m *collectorMetrics) countRejected(b *otlpdata.Batch, err error) {
	if p := (*pipeline.Partial)(nil); errors.As(err, &p) && p.Rejected < b.Len() {
		return
	}
	m.countByService(b, m.spansRejected, m.tracesRejected)
}

func (m *collectorMetrics) countByService(b *otlpdata.Batch, spans, roots *prometheus.CounterVec) {
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

// countSaved counts a batch that was passed to a store, with the result (ok or err) and the
// duration.
func (m *collectorMetrics) countSaved(b *otlpdata.Batch, result string, took time.Duration) {
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

// share is the number of spans of a service with one value of the label debug.
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
