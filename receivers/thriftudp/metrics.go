package thriftudp

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

// registerMetrics registers the counts of a listener under the metric names of existing agents.
// Received datagrams are processed + dropped.
func registerMetrics(reg prometheus.Registerer, p port, stats func() udp.Stats) error {
	const prefix = "tracing_agent_thrift_udp_"
	labels := prometheus.Labels{"model": p.model, "protocol": p.protocol}
	counter := func(name, help string, value func(udp.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value(stats())) })
	}
	gauge := func(name, help string, value func(udp.Stats) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value(stats())) })
	}
	for _, c := range []prometheus.Collector{
		counter("server_packets_processed", "Datagrams received and not dropped, including invalid ones.",
			func(s udp.Stats) int64 { return s.Processed }),
		counter("server_packets_dropped", "Datagrams dropped because the queue was full.",
			func(s udp.Stats) int64 { return s.Dropped }),
		counter("server_read_errors", "Failed reads from the socket.",
			func(s udp.Stats) int64 { return s.ReadErrors }),
		counter("server_kernel_drops", "Datagrams dropped by the operating system because the receive buffer was full.",
			func(s udp.Stats) int64 { return s.KernelDrops }),
		counter("t_processor_handler_errors", "Datagrams that were invalid, not accepted by the pipeline, or unprocessed at shutdown.",
			func(s udp.Stats) int64 { return s.Failed }),
		gauge("server_packet_size", "Size of the last received datagram in bytes.",
			func(s udp.Stats) int64 { return s.LastSize }),
		gauge("server_queue_size", "Datagrams waiting for a worker.",
			func(s udp.Stats) int64 { return s.Waiting }),
	} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("%s: registering metrics: %w", p.name, err)
		}
	}
	return nil
}
