package kafka

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// Reasons of dead letters: values of the label reason.
const (
	reasonUndecodable = server.ReasonUndecodable
	reasonTooLarge    = server.ReasonTooLarge
	reasonTenant      = server.ReasonTenant
	reasonRefused     = "refused" // by the pipeline
)

const prefix = "tracing_kafka_consumer_"

// counts are the metrics of a receiver that are not read from its state.
type counts struct {
	rebalances, records, bytes, repeated, resets, expired, commits, commitFailures prometheus.Counter
	deadLetters                                                                    *prometheus.CounterVec
	paused                                                                         prometheus.Gauge
}

func newCounts() counts {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	}
	c := counts{
		rebalances:     counter("rebalances_total", "Assignments of partitions by the group, including the first one."),
		records:        counter("records_total", "Records polled, including repeated ones."),
		bytes:          counter("bytes_total", "Bytes of the keys, values and headers of these records, uncompressed."),
		repeated:       counter("repeated_records_total", "Records polled again after this receiver had processed them."),
		resets:         counter("offset_resets_total", "Times that the next offset of a partition no longer existed."),
		expired:        counter("expired_records_total", "Records that the brokers deleted before they were consumed."),
		commits:        counter("commits_total", "Successful commits of offsets."),
		commitFailures: counter("commit_failures_total", "Commits that failed for at least one partition. They are repeated."),
		deadLetters: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "dead_letters_total",
			Help: "Records that could not be processed and were written as dead letters."}, []string{"reason"}),
		paused: prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "paused",
			Help: "Partitions that are not fetched because the pipeline refuses their records for now."}),
	}
	for _, reason := range []string{reasonUndecodable, reasonTooLarge, reasonTenant, reasonRefused} {
		c.deadLetters.WithLabelValues(reason)
	}
	return c
}

var (
	lagRecords = prometheus.NewDesc(prefix+"lag_records", "Records of the partition that are not accepted by the pipeline yet.",
		[]string{"topic", "partition"}, nil)
	lagSeconds = prometheus.NewDesc(prefix+"lag_seconds",
		"Age of the oldest record of the partition that is not accepted by the pipeline yet. 0 without lag.",
		[]string{"topic", "partition"}, nil)
	partitions = prometheus.NewDesc(prefix+"partitions", "Partitions that are assigned to this receiver.", nil, nil)
	waiting    = prometheus.NewDesc(prefix+"waiting_for_memory",
		"1 while no records are polled because max_queued_size or service.limits.inflight is reached.",
		nil, nil)
)

func (r *receiver) registerMetrics() error {
	c := &r.counts
	for _, m := range []prometheus.Collector{c.rebalances, c.records, c.bytes, c.repeated, c.resets, c.expired, c.commits, c.commitFailures,
		c.deadLetters, c.paused, state{r}} {
		if err := r.set.Metrics.Register(m); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// state collects the metrics that are read from the state of a receiver.
type state struct{ r *receiver }

// Describe implements [prometheus.Collector].
func (s state) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lagRecords, lagSeconds, partitions, waiting} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (s state) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	assigned := s.r.assigned()
	now := s.r.set.Env.Now()
	for _, p := range assigned {
		if records, age, ok := p.lag(now); ok {
			number := strconv.Itoa(int(p.number))
			gauge(lagRecords, float64(records), s.r.config.Topic, number)
			gauge(lagSeconds, age.Seconds(), s.r.config.Topic, number)
		}
	}
	gauge(partitions, float64(len(assigned)))
	full := 0.0
	if s.r.memory.isFull() {
		full = 1
	}
	gauge(waiting, full)
}
