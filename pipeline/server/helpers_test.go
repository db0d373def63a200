package server_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what a server under test sees of the process.
type world struct {
	t   *testing.T
	set pipeline.Settings
	reg *prometheus.Registry
	mem *bufconn.Listener // nil: real TCP
}

func newWorld(t *testing.T, budget int64) *world {
	reg := prometheus.NewRegistry()
	return &world{t: t, reg: reg, set: pipeline.Settings{
		Logger:  zap.NewNop(),
		Metrics: reg,
		Env:     pipeline.SystemEnv(),
		Budget:  pipeline.NewBudget(budget),
		Report:  func(err error) { t.Errorf("reported: %v", err) },
	}}
}

// inMemory replaces the network by one without system calls, so that synctest owns the time.
func (w *world) inMemory() *world {
	w.mem = bufconn.Listen(64 << 10)
	w.set.Env.Listen = func(context.Context, string, string) (net.Listener, error) { return w.mem, nil }
	return w
}

func (w *world) dial(ctx context.Context, addr string) (net.Conn, error) {
	if w.mem != nil {
		return w.mem.DialContext(ctx)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// metric sums the samples of a metric, those with the reason if one is given.
func (w *world) metric(name, reason string) float64 {
	w.t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
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

func (w *world) refused(reason string) float64 {
	w.t.Helper()
	return w.metric("tracing_server_refused_requests_total", reason)
}

type stopper interface {
	pipeline.Starter
	pipeline.Stopper
}

// run starts s, and stops it at the end of the test unless the test has.
func (w *world) run(s stopper) (stop func(context.Context) error) {
	w.t.Helper()
	if err := s.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	var stopped atomic.Bool
	stop = func(ctx context.Context) error {
		stopped.Store(true)
		return s.Stop(ctx)
	}
	w.t.Cleanup(func() {
		if stopped.Load() {
			return
		}
		if err := s.Stop(context.Background()); err != nil {
			w.t.Errorf("Stop: %v", err)
		}
	})
	return stop
}

func (w *world) http(cfg server.HTTPConfig, h http.HandlerFunc) (*server.HTTP, *http.Client, func(context.Context) error) {
	w.t.Helper()
	s, err := server.NewHTTP(w.set, "protocols.http", cfg, h)
	if err != nil {
		w.t.Fatal(err)
	}
	stop := w.run(s)
	tr := &http.Transport{DisableCompression: true}
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx, s.Addr()) }
	w.t.Cleanup(tr.CloseIdleConnections)
	return s, &http.Client{Transport: tr}, stop
}

func httpConfig() server.HTTPConfig {
	c := server.DefaultHTTPConfig("127.0.0.1:0")
	c.MaxRequestBodySize = 1 << 20
	return c
}
