package kafka

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
)

type metrics struct {
	records, bytes, uncompressed prometheus.Counter
	failures                     *prometheus.CounterVec
	buffered, partitions         prometheus.Gauge
}

func newMetrics(set pipeline.Settings) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_kafka_producer_" + name, Help: help})
	}
	m := &metrics{
		records:      counter("records_total", "Records that all in-sync replicas have acknowledged."),
		bytes:        counter("bytes_total", "Bytes of acknowledged records after compression."),
		uncompressed: counter("uncompressed_bytes_total", "Bytes of acknowledged records before compression."),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_kafka_producer_failures_total",
			Help: "Records that were not acknowledged, and spans that cannot be a record, by reason."}, []string{"reason"}),
		buffered: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_kafka_producer_buffered_bytes",
			Help: "Bytes of records that wait for acknowledgement."}),
		partitions: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_kafka_producer_partitions",
			Help: "Partitions of the topic. 0 if the topic is unknown."}),
	}
	for _, reason := range kafka.Reasons() {
		m.failures.WithLabelValues(reason)
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.records, m.bytes, m.uncompressed, m.failures, m.buffered, m.partitions} {
		errs = append(errs, set.Metrics.Register(c))
	}
	return m, errors.Join(errs...)
}

// count counts the result of one record.
func (m *metrics) count(err error) {
	if err == nil {
		m.records.Inc()
		return
	}
	m.failures.WithLabelValues(kafka.Reason(err)).Inc()
}

// writeHook counts acknowledged bytes.
type writeHook struct{ metrics *metrics }

var _ kgo.HookProduceBatchWritten = (*writeHook)(nil)

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (h *writeHook) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, batch kgo.ProduceBatchMetrics) {
	h.metrics.bytes.Add(float64(batch.CompressedBytes))
	h.metrics.uncompressed.Add(float64(batch.UncompressedBytes))
}
