// Package inprocess starts the program inside the test process, where the race detector sees it.
package inprocess

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
	"github.com/tracing-backend/tracing/test/harness"
)

// Options describe a configuration of the program. The zero value is the preset all-in-one with its
// own ports and data directory.
type Options struct {
	Preset    string             // name of a preset, if YAML is empty
	YAML      string             // a configuration file
	Settings  []string           // settings as in --set, path=value
	Env       map[string]string  // the environment; nil is the environment of the process
	Factories []pipeline.Factory // components in addition to the built-in ones
	Strict    bool               // warnings are errors
}

// Load loads the configuration.
func (o Options) Load() (*app.Config, error) {
	load := app.LoadOptions{Factories: append(tracing.Components(), o.Factories...), Presets: tracing.Presets(), Preset: o.Preset,
		Strict: o.Strict}
	if o.YAML != "" {
		load.Presets, load.Files = nil, []string{"test.yaml"}
		load.ReadFile = func(string) ([]byte, error) { return []byte(o.YAML), nil }
	}
	if o.Env != nil {
		load.LookupEnv = func(name string) (string, bool) { v, ok := o.Env[name]; return v, ok }
	}
	for _, s := range o.Settings {
		v, err := app.ParseSet(s)
		if err != nil {
			return nil, err
		}
		load.Overrides = append(load.Overrides, v)
	}
	return app.Load(load)
}

// Program is the program running inside the test process.
type Program struct {
	T   testing.TB // the test that started the program
	App *app.App
	Log *harness.Buffer

	options Options
	stop    func() error
}

// Start starts the preset all-in-one on free ports with additional settings, and stops it when the
// test ends.
func Start(tb testing.TB, settings ...string) *Program {
	tb.Helper()
	return StartPreset(tb, "all-in-one", settings...)
}

// StartPreset starts a preset on free ports with additional settings, and stops it when the test
// ends.
func StartPreset(tb testing.TB, preset string, settings ...string) *Program {
	tb.Helper()
	return StartOptions(tb, Options{Preset: preset, Settings: append(harness.PresetSettings(preset, tb.TempDir()), settings...)})
}

// StartYAML starts a configuration file and stops it when the test ends. The configuration may use
// more components than the built-in ones.
func StartYAML(tb testing.TB, yaml string, more ...pipeline.Factory) *Program {
	tb.Helper()
	return StartOptions(tb, Options{YAML: yaml, Factories: more})
}

// StartOptions starts a configuration and stops it when the test ends.
func StartOptions(tb testing.TB, o Options) *Program {
	tb.Helper()
	cfg, err := o.Load()
	if err != nil {
		tb.Fatal(err)
	}
	p := &Program{T: tb, Log: &harness.Buffer{}, options: o}
	if p.App, err = app.New(cfg, app.Options{Log: p.Log}); err != nil {
		tb.Fatal(err)
	}
	if err := p.App.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	p.stop = sync.OnceValue(func() error {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return p.App.Stop(ctx)
	})
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Errorf("stop: %v", err)
		}
		if tb.Failed() {
			tb.Logf("log:\n%s", p.Log)
		}
	})
	return p
}

// Stop stops the program. Later calls return the result of the first one.
func (p *Program) Stop() error { return p.stop() }

// Reload replaces the configuration by the first one with additional settings.
func (p *Program) Reload(settings ...string) error {
	o := p.options
	o.Settings = slices.Concat(o.Settings, settings)
	return p.App.Reload(p.T.Context(), o.Load)
}

// Addr returns the address of a listener of the component with the given type.
func (p *Program) Addr(typ, listener string) string {
	return p.App.Addr(pipeline.ID{Type: typ}, listener)
}

// OTLPGRPC returns the address of the OTLP receiver for gRPC.
func (p *Program) OTLPGRPC() string { return p.Addr("otlp", "grpc") }

// OTLPHTTP returns the address of the OTLP receiver for HTTP.
func (p *Program) OTLPHTTP() string { return p.Addr("otlp", "http") }

// QueryURL returns the URL of the query API.
func (p *Program) QueryURL() string { return "http://" + p.Addr("query", "http") }

// AdminURL returns the URL of the admin extension.
func (p *Program) AdminURL() string { return "http://" + p.Addr("admin", "http") }

// Sum returns the sum of the samples of a metric that have all the given labels, written
// name=value.
func (p *Program) Sum(name string, labels ...string) (sum float64) {
	p.T.Helper()
	families, err := p.App.Gatherer().Gather()
	if err != nil {
		p.T.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			have := " "
			for _, l := range m.GetLabel() {
				have += l.GetName() + "=" + l.GetValue() + " "
			}
			match := true
			for _, l := range labels {
				match = match && strings.Contains(have, " "+l+" ")
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// RunCommand runs a command of the program inside the test process, for example "validate", and
// returns its exit code and output.
func RunCommand(tb testing.TB, args ...string) (code int, stdout, stderr string) {
	tb.Helper()
	var out, log bytes.Buffer
	code = app.Run(tb.Context(), args, &out, &log, tracing.Components(), tracing.Presets()...)
	return code, out.String(), log.String()
}
