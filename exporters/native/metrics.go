package native

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"

	"github.com/tracing-backend/tracing/pipeline"
)

// metrics are the metrics of an agent's reporter and its connection. A batch is one message; each
// attempt to send it counts.
type metrics struct {
	batches, batchFailures *prometheus.CounterVec
	spans, spanFailures    *prometheus.CounterVec
	batchSize              *prometheus.GaugeVec
	connected              prometheus.Gauge
	reconnects             prometheus.Counter
}

func newMetrics(set pipeline.Settings) (*metrics, error) {
	protocol := prometheus.Labels{"protocol": "grpc"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_agent_reporter_" + name, Help: help, ConstLabels: protocol},
			[]string{"format"})
	}
	m := &metrics{
		batches:       counter("batches_submitted", "Batches sent to collectors."),
		batchFailures: counter("batches_failures", "Failed attempts to send a batch."),
		spans:         counter("spans_submitted", "Spans sent to collectors."),
		spanFailures:  counter("spans_failures", "Spans of failed attempts to send a batch."),
		batchSize: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tracing_agent_reporter_batch_size",
			Help: "Number of spans in the last batch sent.", ConstLabels: protocol}, []string{"format"}),
		connected: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_agent_connection_status_collector_connected",
			Help: "1 if a collector is connected, otherwise 0.", ConstLabels: protocol}),
		reconnects: prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_agent_connection_status_collector_reconnects",
			Help: "Connections to collectors, including the first.", ConstLabels: protocol}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.batches, m.batchFailures, m.spans, m.spanFailures, m.batchSize, m.connected, m.reconnects} {
		errs = append(errs, set.Metrics.Register(c))
	}
	for _, format := range []string{"tracing", "zipkin"} { // the formats that agents receive; exported from the start
		for _, v := range []*prometheus.CounterVec{m.batches, m.batchFailures, m.spans, m.spanFailures} {
			v.WithLabelValues(format)
		}
		m.batchSize.WithLabelValues(format)
	}
	return m, errors.Join(errs...)
}

// count counts the result of one message.
func (m *metrics) count(format string, spans int, err error) {
	format = cmp.Or(format, "unknown")
	if err != nil {
		m.batchFailures.WithLabelValues(format).Inc()
		m.spanFailures.WithLabelValues(format).Add(float64(spans))
		return
	}
	m.batches.WithLabelValues(format).Inc()
	m.spans.WithLabelValues(format).Add(float64(spans))
	m.batchSize.WithLabelValues(format).Set(float64(spans))
}

// connections counts the connections of a gRPC client.
type connections struct {
	metrics *metrics
	mu      sync.Mutex
	open    int
}

var _ stats.Handler = (*connections)(nil)

// HandleConn counts a connection that begins or ends.
func (c *connections) HandleConn(_ context.Context, s stats.ConnStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		c.open++
		c.metrics.reconnects.Inc()
	case *stats.ConnEnd:
		c.open--
	}
	c.metrics.connected.Set(float64(min(c.open, 1)))
}

// TagConn returns ctx.
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC returns ctx.
func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing, because calls are counted by the exporter.
func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}
