package password

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// String returns the value of the label result.
func (o outcome) String() string { return [...]string{"canceled", "match", "mismatch"}[o] }

// register creates and registers the metrics.
func (c *Checker) register(reg prometheus.Registerer) error {
	c.results = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tracing_server_password_checks_total",
		Help: "Passwords compared with a hash, by result: match, mismatch, or canceled before the comparison began.",
	}, []string{"result"})
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tracing_server_password_checks_waiting",
		Help: "Comparisons of passwords that run or wait.",
	}, func() float64 { return c.locked(func() int { return len(c.checks) }) })
	counted := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tracing_server_password_clients",
		Help: "Client addresses whose wrong passwords are counted.",
	}, func() float64 { return c.locked(func() int { return len(c.clients.byKey) }) })
	return errors.Join(reg.Register(c.results), reg.Register(waiting), reg.Register(counted))
}

func (c *Checker) locked(count func() int) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return float64(count())
}
