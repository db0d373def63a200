package host

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// metrics holds the metrics of the framework, as opposed to metrics of components.
type metrics struct {
	collectors *collectorSet
	delivery   *delivery.Metrics
	reloads    reloadMetrics
}

func newMetrics(b status.Build, budget, queries, held *pipeline.Budget, now func() time.Time) *metrics {
	m := &metrics{collectors: &collectorSet{}, delivery: delivery.NewMetrics(now), reloads: newReloadMetrics(now())}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tracing_build_info", Help: "Always 1. The labels identify the program.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Commit, "build_date": b.Date},
	})
	info.Set(1)
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	m.delivery.Register(m.collectors)
	m.collectors.MustRegister(m.reloads.total, m.reloads.last, m.reloads.when, info,
		gauge("tracing_inflight_bytes", "Bytes of requests in memory.", budget.Used),
		gauge("tracing_inflight_peak_bytes", "Maximum of tracing_inflight_bytes since the start.", budget.Peak),
		gauge("tracing_inflight_limit_bytes", "Limit service.limits.inflight.", budget.Limit),
		gauge("tracing_queries_bytes", "Bytes that running queries have reserved.", queries.Used),
		gauge("tracing_queries_peak_bytes", "Maximum of tracing_queries_bytes since the start.", queries.Peak),
		gauge("tracing_queries_limit_bytes", "Limit service.limits.query_memory.", queries.Limit),
		gauge("tracing_held_bytes", "Estimated memory of the spans that processors hold.", held.Used),
		gauge("tracing_held_peak_bytes", "Maximum of tracing_held_bytes since the start.", held.Peak),
		gauge("tracing_held_limit_bytes", "Limit service.limits.held.", held.Limit),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Results of tracing_config_reloads_total.
const (
	reloadApplied   = "applied"
	reloadUnchanged = "unchanged"
	reloadRefused   = "refused"
)

type reloadMetrics struct {
	total      *prometheus.CounterVec
	last, when prometheus.Gauge
}

func newReloadMetrics(now time.Time) reloadMetrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := reloadMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_config_reloads_total",
			Help: "Reloads of the configuration by result: applied, unchanged, or refused because of a mistake."}, []string{"result"}),
		last: gauge("tracing_config_last_reload_successful", "1 if the latest reload succeeded, 0 if it was refused."),
		when: gauge("tracing_config_last_reload_success_timestamp_seconds",
			"Time of the latest successful load, in seconds since the Unix epoch."),
	}
	for _, result := range []string{reloadApplied, reloadUnchanged, reloadRefused} {
		m.total.WithLabelValues(result)
	}
	m.last.Set(1)
	m.when.Set(seconds(now))
	return m
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// count counts a reload.
func (m *reloadMetrics) count(result string, now time.Time) {
	m.total.WithLabelValues(result).Inc()
	if result == reloadRefused {
		m.last.Set(0)
		return
	}
	m.last.Set(1)
	m.when.Set(seconds(now))
}
