package server

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// UDPStats are counts of datagrams since the start, for components that show them under names of their own.
type UDPStats struct {
	Processed   int64 // read from the system, and not dropped
	Dropped     int64 // read, and dropped because the queue was full
	Failed      int64 // of the processed ones, refused for what they are, handed on and not taken, or given up when the server stopped
	Waiting     int64 // now
	LastSize    int64 // bytes of the one read last
	ReadErrors  int64 // reads that failed
	KernelDrops int64 // dropped by the system, and never received; 0 where it does not tell
}

// Stats returns the counts of this moment.
func (s *UDP) Stats() UDPStats {
	m := s.metrics
	return UDPStats{Processed: m.processed.Load(), Dropped: m.dropped.Load(), Failed: m.failed.Load(), Waiting: int64(s.queue.len()),
		LastSize: m.lastSize.Load(), ReadErrors: m.readErrors.Load(), KernelDrops: m.kernelDrops()}
}

// udpMetrics are those of one listener.
type udpMetrics struct {
	received, handled, readErrors atomic.Int64
	processed, dropped, failed    atomic.Int64 // see UDPStats; a difference of counters would go down at times
	lastSize                      atomic.Int64 // bytes

	refused *prometheus.CounterVec // by reason
	panics  prometheus.Counter

	mu      sync.Mutex
	sockets []*udpSocket
}

func newUDPMetrics(s *UDP) (*udpMetrics, error) {
	m := &udpMetrics{refused: newRefused(), panics: newPanics()}
	counter := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	reg := prometheus.WrapRegistererWith(prometheus.Labels{"listener": s.name}, s.set.Metrics)
	for _, c := range []prometheus.Collector{
		m.refused, m.panics,
		counter("tracing_server_received_datagrams_total", "Datagrams read from the system: handled, refused, or waiting.", m.received.Load),
		counter("tracing_server_handled_datagrams_total", "Datagrams whose data was handed on.", m.handled.Load),
		counter("tracing_server_read_errors_total", "Reads of datagrams that failed.", m.readErrors.Load),
		counter("tracing_server_kernel_dropped_datagrams_total", "Datagrams that the system dropped because nobody read them in time.", m.kernelDrops),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tracing_server_waiting_datagrams", Help: "Datagrams that wait for a worker."},
			func() float64 { return float64(s.queue.len()) }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("%s: registering metrics: %w", s.name, err)
		}
	}
	return m, nil
}

// refuse counts n datagrams as refused.
func (m *udpMetrics) refuse(reason string, n int) {
	if reason == ReasonQueueFull {
		m.dropped.Add(int64(n))
	} else {
		m.failed.Add(int64(n))
	}
	m.refused.WithLabelValues(reason).Add(float64(n))
}

func (m *udpMetrics) setSockets(s []*udpSocket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sockets = s
}

func (m *udpMetrics) kernelDrops() (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sockets {
		n += int64(s.kernelDrops())
	}
	return n
}
