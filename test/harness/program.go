package harness

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// Program is the preset all-in-one in this process, on free ports.
type Program struct {
	T    *testing.T
	App  *app.App
	Log  *Buffer
	Stop func() error
}

// Buffer is a buffer that is safe for concurrent use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends to the buffer.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the content.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Start starts the preset all-in-one on free ports with the given settings, and stops it when the test ends.
func Start(t *testing.T, set ...string) *Program {
	t.Helper()
	o := app.LoadOptions{Factories: tracing.Components(), Presets: tracing.Presets()}
	for _, s := range slices.Concat(FreePorts, []string{"service::data_dir=" + t.TempDir()}, set) {
		v, err := app.ParseSet(s)
		if err != nil {
			t.Fatal(err)
		}
		o.Overrides = append(o.Overrides, v)
	}
	cfg, err := app.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return StartConfig(t, cfg)
}

// StartConfig starts a configuration and stops it when the test ends.
func StartConfig(t *testing.T, cfg *app.Config) *Program {
	t.Helper()
	p := &Program{T: t, Log: &Buffer{}}
	var err error
	if p.App, err = app.New(cfg, app.Options{Log: p.Log}); err != nil {
		t.Fatal(err)
	}
	if err := p.App.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Stop = sync.OnceValue(func() error {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return p.App.Stop(ctx)
	})
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", p.Log)
		}
	})
	return p
}

// OTLPGRPC returns the address of the OTLP receiver for gRPC.
func (p *Program) OTLPGRPC() string { return p.App.Addr(pipeline.ID{Type: "otlp"}, "grpc") }

// OTLPHTTP returns the address of the OTLP receiver for HTTP.
func (p *Program) OTLPHTTP() string { return p.App.Addr(pipeline.ID{Type: "otlp"}, "http") }

// QueryURL returns the URL of the query API.
func (p *Program) QueryURL() string {
	return "http://" + p.App.Addr(pipeline.ID{Type: "query"}, "http")
}

// AdminURL returns the URL of the admin extension.
func (p *Program) AdminURL() string {
	return "http://" + p.App.Addr(pipeline.ID{Type: "admin"}, "http")
}

// RunConfig runs a configuration until the test ends.
func RunConfig(tb testing.TB, yaml string, more ...pipeline.Factory) *app.App {
	tb.Helper()
	cfg, err := app.Load(app.LoadOptions{Factories: append(tracing.Components(), more...), Files: []string{"test.yaml"},
		ReadFile: func(string) ([]byte, error) { return []byte(yaml), nil }})
	if err != nil {
		tb.Fatal(err)
	}
	a, err := app.New(cfg, app.Options{Log: &Buffer{}})
	if err != nil {
		tb.Fatal(err)
	}
	if err := a.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			tb.Errorf("stopping: %v", err)
		}
	})
	return a
}

// Sum adds up the samples of a metric that have all these labels, written name=value.
func (p *Program) Sum(t *testing.T, name string, with ...string) (sum float64) {
	t.Helper()
	families, err := p.App.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := " "
			for _, l := range m.GetLabel() {
				labels += l.GetName() + "=" + l.GetValue() + " "
			}
			match := true
			for _, w := range with {
				match = match && strings.Contains(labels, " "+w+" ")
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// Addr returns the address of a listener of the component with the given type.
func (p *Program) Addr(typ, listener string) string {
	return p.App.Addr(pipeline.ID{Type: typ}, listener)
}
