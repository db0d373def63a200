package thriftudp

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// register shows the counts of a listener under the names that agents are known by. In datagrams, a listener has received processed + dropped.
func register(reg prometheus.Registerer, p port, stats func() server.UDPStats) error {
	const prefix = "tracing_agent_thrift_udp_"
	labels := prometheus.Labels{"model": p.model, "protocol": p.protocol}
	counter := func(name, help string, value func(server.UDPStats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value(stats())) })
	}
	gauge := func(name, help string, value func(server.UDPStats) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value(stats())) })
	}
	for _, c := range []prometheus.Collector{
		counter("server_packets_processed", "Datagrams that were received and not dropped, bad ones included.",
			func(s server.UDPStats) int64 { return s.Processed }),
		counter("server_packets_dropped", "Datagrams that were received while the queue was full.",
			func(s server.UDPStats) int64 { return s.Dropped }),
		counter("server_read_errors", "Reads from the socket that failed.",
			func(s server.UDPStats) int64 { return s.ReadErrors }),
		counter("server_kernel_drops", "Datagrams that the system dropped because the socket's buffer was full.",
			func(s server.UDPStats) int64 { return s.KernelDrops }),
		counter("t_processor_handler_errors", "Datagrams that are not what they should be, whose spans were not taken, or that the end of the process left over.",
			func(s server.UDPStats) int64 { return s.Failed }),
		gauge("server_packet_size", "Bytes of the datagram received last.",
			func(s server.UDPStats) int64 { return s.LastSize }),
		gauge("server_queue_size", "Datagrams that wait for a worker.",
			func(s server.UDPStats) int64 { return s.Waiting }),
	} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("%s: registering metrics: %w", p.name, err)
		}
	}
	return nil
}
