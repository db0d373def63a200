package delivery

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const metricLogRecords = "tracing_pipeline_log_records_total"

// Metrics holds the metrics of all edges of a process.
type Metrics struct {
	collector *collectorMetrics
	items     [2]*prometheus.CounterVec // spans and log records, by otlpdata.Signal
	branches  *prometheus.CounterVec    // spans behind connectors
	retries   *prometheus.CounterVec
	lost      *prometheus.CounterVec // batches of queues on disk
	queues    *queueMetrics
	holders   *holderMetrics
	now       func() time.Time

	receivedMu sync.Mutex
	received   map[Component]*Received
}

// NewMetrics returns metrics that are not registered yet. now is the clock for the age of queued
// batches and the times of refusals.
func NewMetrics(now func() time.Time) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		now: now, received: map[Component]*Received{},
		collector: newCollectorMetrics(),
		items: [2]*prometheus.CounterVec{
			counter("tracing_pipeline_spans_total",
				"Spans by outcome. Receivers: received = accepted + refused. Processors: in = sent + refused + dropped + held. "+
					"Connectors: in = sent + refused + dropped. Exporters: in = sent + refused + dropped + queued.",
				"component", "kind", "outcome", "reason"),
			counter(metricLogRecords, "Log records by outcome, like tracing_pipeline_spans_total.", "component", "kind", "outcome", "reason"),
		},
		branches: counter("tracing_connector_spans_total", "Spans that a connector passed to a pipeline: accepted or refused by it.",
			"component", "pipeline", "outcome"),
		retries: counter("tracing_exporter_retries_total", "Attempts to send a batch after the first one.", "component"),
		lost:    counter("tracing_queue_lost_batches_total", "Maximum number of batches lost in damaged or deleted queue files.", "component"),
		queues:  newQueueMetrics(now), holders: newHolderMetrics(),
	}
}

// Register registers all metrics. It panics if one cannot be registered.
func (m *Metrics) Register(reg prometheus.Registerer) {
	m.collector.register(reg)
	reg.MustRegister(m.items[otlpdata.SignalTraces], m.items[otlpdata.SignalLogs], m.branches, m.retries, m.lost, m.queues, m.holders)
}
