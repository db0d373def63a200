package udp_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture holds the environment of a server under test.
type fixture struct {
	t   *testing.T
	set pipeline.Settings
	reg *prometheus.Registry
}

func newFixture(t *testing.T) *fixture {
	reg := prometheus.NewRegistry()
	return &fixture{t: t, reg: reg, set: pipeline.Settings{
		Logger:  zap.NewNop(),
		Metrics: reg,
		Env:     pipeline.SystemEnv(),
		Budget:  pipeline.NewBudget(0),
		Report:  func(err error) { t.Errorf("reported: %v", err) },
	}}
}

// start starts a server. It stops the server at the end of the test unless the test has called
// stop.
func (f *fixture) start(cfg udp.Config, handler func(context.Context, *udp.Datagrams)) (*udp.Server, func(context.Context) error) {
	f.t.Helper()
	s, err := udp.NewServer(f.set, "compact", cfg, handler)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := s.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	var stopped atomic.Bool
	f.t.Cleanup(func() {
		if stopped.Load() {
			return
		}
		if err := s.Stop(context.Background()); err != nil {
			f.t.Errorf("Stop: %v", err)
		}
	})
	return s, func(ctx context.Context) error {
		stopped.Store(true)
		return s.Stop(ctx)
	}
}

// inMemory replaces UDP by an in-memory connection, which works in a synctest bubble.
func (f *fixture) inMemory() *memoryConn {
	c := newMemoryConn()
	f.set.Env.ListenPacket = func(context.Context, string, string) (net.PacketConn, error) { return c, nil }
	return c
}

// observeLogs records log lines of at least this level.
func (f *fixture) observeLogs(level zapcore.Level) *observer.ObservedLogs {
	core, logs := observer.New(level)
	f.set.Logger = zap.New(core)
	return logs
}

// metric returns the sum of all series of a metric, or of those with the reason if it is not empty.
func (f *fixture) metric(name, reason string) float64 {
	f.t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			match := reason == ""
			for _, l := range m.GetLabel() {
				match = match || l.GetName() == "reason" && l.GetValue() == reason
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func (f *fixture) refused(reason string) float64 {
	f.t.Helper()
	return f.metric("tracing_server_refused_requests_total", reason)
}

// checkCounts checks that every received datagram was handled or refused.
func (f *fixture) checkCounts(received, handled float64) {
	f.t.Helper()
	r, h := f.metric("tracing_server_received_datagrams_total", ""), f.metric("tracing_server_handled_datagrams_total", "")
	waiting, refused := f.metric("tracing_server_waiting_datagrams", ""), f.refused("")
	if r != received || h != handled || r != h+refused || waiting != 0 {
		f.t.Errorf("received %v (want %v), handled %v (want %v), refused %v, waiting %v", r, received, h, handled, refused, waiting)
	}
}
