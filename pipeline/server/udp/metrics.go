package udp

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// Stats holds counts of datagrams since the server was created. Components use them for metrics
// with other names.
type Stats struct {
	Processed   int64 // read from the socket and not dropped
	Dropped     int64 // read from the socket and dropped because the queue was full
	Failed      int64 // processed, but refused, or not accepted by the pipeline, or discarded when the server stopped
	Waiting     int64 // in the queue now
	LastSize    int64 // size of the last datagram, in bytes
	ReadErrors  int64 // failed reads
	KernelDrops int64 // dropped by the operating system before they were read; Linux only
}

// Stats returns the current counts.
func (s *Server) Stats() Stats {
	m := s.metrics
	return Stats{Processed: m.processed.Load(), Dropped: m.dropped.Load(), Failed: m.failed.Load(), Waiting: int64(s.queue.len()),
		LastSize: m.lastSize.Load(), ReadErrors: m.readErrors.Load(), KernelDrops: m.kernelDrops()}
}

// metrics are the metrics of one listener.
type metrics struct {
	received, handled, readErrors atomic.Int64
	processed, dropped, failed    atomic.Int64 // see Stats; not derived from other counters, so they never decrease
	lastSize                      atomic.Int64 // bytes

	refused *prometheus.CounterVec                // by reason
	record  func(transport, reason string, n int) // nil: not recorded
	panics  prometheus.Counter

	mu      sync.Mutex
	sockets []*socket
}

func newMetrics(s *Server) (*metrics, error) {
	m := &metrics{record: s.set.Refused, refused: listen.NewRefusedCounter(), panics: listen.NewPanicCounter()}
	counter := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	waiting := prometheus.GaugeOpts{Name: "tracing_server_waiting_datagrams", Help: "Datagrams waiting for a worker."}
	return m, listen.Register(s.set.Metrics, s.name, m.refused, m.panics,
		counter("tracing_server_received_datagrams_total", "Datagrams read from the socket: handled, refused or waiting.", m.received.Load),
		counter("tracing_server_handled_datagrams_total", "Datagrams whose data entered the pipeline.", m.handled.Load),
		counter("tracing_server_read_errors_total", "Failed reads from the socket.", m.readErrors.Load),
		counter("tracing_server_kernel_dropped_datagrams_total",
			"Datagrams dropped by the operating system because the receive buffer was full.", m.kernelDrops),
		prometheus.NewGaugeFunc(waiting, func() float64 { return float64(s.queue.len()) }))
}

// refuse counts n datagrams as refused.
func (m *metrics) refuse(reason string, n int) {
	if reason == ReasonQueueFull {
		m.dropped.Add(int64(n))
	} else {
		m.failed.Add(int64(n))
	}
	m.refused.WithLabelValues(reason).Add(float64(n))
	if m.record != nil {
		m.record(transport, reason, n)
	}
}

func (m *metrics) setSockets(s []*socket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sockets = s
}

func (m *metrics) kernelDrops() (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sockets {
		n += int64(s.kernelDrops())
	}
	return n
}
