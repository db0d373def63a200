package server_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture holds the environment of a server under test.
type fixture struct {
	t   *testing.T
	set pipeline.Settings
	reg *prometheus.Registry
	mem *bufconn.Listener // nil for real TCP
}

func newFixture(t *testing.T, budget int64) *fixture {
	reg := prometheus.NewRegistry()
	return &fixture{t: t, reg: reg, set: pipeline.Settings{
		Logger:  zap.NewNop(),
		Metrics: reg,
		Env:     pipeline.SystemEnv(),
		Budget:  pipeline.NewBudget(budget),
		Report:  func(err error) { t.Errorf("reported: %v", err) },
	}}
}

// inMemory replaces TCP by an in-memory network, which works in a synctest bubble.
func (f *fixture) inMemory() *fixture {
	f.mem = bufconn.Listen(64 << 10)
	f.set.Env.Listen = func(context.Context, string, string) (net.Listener, error) { return f.mem, nil }
	return f
}

func (f *fixture) dial(ctx context.Context, addr string) (net.Conn, error) {
	if f.mem != nil {
		return f.mem.DialContext(ctx)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
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

type starterStopper interface {
	pipeline.Starter
	pipeline.Stopper
}

// run starts s. It stops s at the end of the test unless the test has called stop.
func (f *fixture) run(s starterStopper) (stop func(context.Context) error) {
	f.t.Helper()
	if err := s.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	var stopped atomic.Bool
	stop = func(ctx context.Context) error {
		stopped.Store(true)
		return s.Stop(ctx)
	}
	f.t.Cleanup(func() {
		if stopped.Load() {
			return
		}
		if err := s.Stop(context.Background()); err != nil {
			f.t.Errorf("Stop: %v", err)
		}
	})
	return stop
}

func (f *fixture) http(cfg server.HTTPConfig, h http.HandlerFunc) (*server.HTTP, *http.Client, func(context.Context) error) {
	f.t.Helper()
	s, err := server.NewHTTP(f.set, "protocols.http", cfg, h)
	if err != nil {
		f.t.Fatal(err)
	}
	stop := f.run(s)
	tr := &http.Transport{DisableCompression: true}
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return f.dial(ctx, s.Addr()) }
	f.t.Cleanup(tr.CloseIdleConnections)
	return s, &http.Client{Transport: tr}, stop
}

func httpConfig() server.HTTPConfig {
	c := server.DefaultHTTPConfig("127.0.0.1:0")
	c.MaxRequestBodySize = 1 << 20
	c.AllowedHosts = []string{"*"} // tests name any host
	return c
}

// clientsOfPanics returns a function that counts the log lines about panics that name a client on
// this machine.
func (f *fixture) clientsOfPanics() func() int {
	core, logs := observer.New(zap.ErrorLevel)
	f.set.Logger = zap.New(core)
	return func() int {
		return logs.FilterMessage("BUG: handler panicked").Filter(func(e observer.LoggedEntry) bool {
			client, _ := e.ContextMap()["client"].(string)
			return strings.HasPrefix(client, "127.0.0.1:")
		}).Len()
	}
}
