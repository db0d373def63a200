package clickhouse

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
)

// metrics are the metrics of inserts. All have the label table.
type metrics struct {
	rows, bytes      *prometheus.CounterVec
	failures         *prometheus.CounterVec // also by reason
	seconds, perSend *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_clickhouse_" + name, Help: help}, append(labels, "table"))
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		o := prometheus.HistogramOpts{Name: "tracing_clickhouse_" + name, Help: help, Buckets: buckets}
		return prometheus.NewHistogramVec(o, []string{"table"})
	}
	m := &metrics{
		rows:  counter("inserted_rows_total", "Rows in acknowledged inserts, including repeated ones, which the server ignores."),
		bytes: counter("inserted_bytes_total", "Size of the encoded spans in acknowledged inserts."),
		failures: counter("insert_failures_total",
			"Inserts that failed and are tried again, by reason: unreachable, overloaded, limited, misconfigured, bad_data or unknown.", "reason"),
		seconds: histogram("insert_seconds", "Duration of acknowledged inserts, including the wait for max_inserts.",
			[]float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}),
		perSend: histogram("insert_rows", "Rows of acknowledged inserts. Most should be above 10,000.",
			[]float64{10, 100, 1000, 5000, 10_000, 25_000, 50_000, 100_000}),
	}
	for _, c := range []prometheus.Collector{m.rows, m.bytes, m.failures, m.seconds, m.perSend} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

// inserted records one insert of spans that take a number of bytes.
func (m *metrics) inserted(t *rows.Table, bytes int, took time.Duration, err error) {
	if err != nil {
		m.failed(t.Name, db.ClassOf(err))
		return
	}
	n := t.Rows()
	m.rows.WithLabelValues(t.Name).Add(float64(n))
	m.bytes.WithLabelValues(t.Name).Add(float64(bytes))
	m.seconds.WithLabelValues(t.Name).Observe(took.Seconds())
	m.perSend.WithLabelValues(t.Name).Observe(float64(n))
}

// failed records an insert into a table that failed, or that was not tried because of an error.
func (m *metrics) failed(table string, reason db.Class) {
	m.failures.WithLabelValues(reason.String(), table).Inc()
}
