package pipelinetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// probeType is the type name of the components of the suite.
const probeType = "pipelinetest"

// program is a program with the component under test. Depending on the kind of the component, it
// has a source before it and the destination after it.
type program struct {
	suite    *suite
	app      *app.App
	source   *source // before processors and exporters
	exporter any     // the value that the factory of an exporter has built
	effects  effects
	stopped  bool
}

// build loads the configuration and builds the program without starting it. block and dir come from
// [suite.config].
func (s *suite) build(block, dir string) *program {
	s.Helper()
	p := &program{suite: s}
	cfg, err := s.load(p, block, dir)
	if err != nil {
		s.Fatalf("loading the configuration:\n%v", err)
	}
	env := p.effects.watch(pipeline.SystemEnv())
	if p.app, err = app.New(cfg, app.Options{Env: &env, Log: io.Discard}); err != nil {
		s.Fatalf("building: %v", err)
	}
	return p
}

// config returns the configuration of the component, and a folder for its files that does not exist
// yet.
func (s *suite) config() (block, dir string) {
	s.Helper()
	block = s.sub.config(s, s.destination)
	if strings.TrimSpace(block) == "" {
		block = "{}"
	}
	return block, filepath.Join(s.TempDir(), "data")
}

// start builds and starts a program, and stops it when the check ends.
func (s *suite) start() *program {
	s.Helper()
	p := s.build(s.config())
	p.start()
	return p
}

func (p *program) start() {
	s := p.suite
	s.Helper()
	p.effects.allowed.Store(true)
	if err := p.app.Start(s.Context()); err != nil {
		s.Fatalf("Start: %v", err)
	}
	s.Cleanup(func() {
		if !p.stopped {
			s.destination.release()
			p.stop()
		}
	})
}

// stop stops the program. An error or a timeout fails the check.
func (p *program) stop() {
	p.suite.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), p.suite.timeout)
	defer cancel()
	if err := p.stopWithin(ctx); err != nil {
		p.suite.Errorf("Stop: %v", err)
	}
}

// stopWithin stops the program and returns the error, or reports a timeout.
func (p *program) stopWithin(ctx context.Context) error {
	p.suite.Helper()
	p.stopped = true
	return p.suite.within("Stop", func() error { return p.app.Stop(ctx) })
}

const (
	receiverFile = `
exporters: {pipelinetest: }
service: {pipelines: {traces: {receivers: [%s], exporters: [pipelinetest]}}}`
	processorFile = `
receivers: {pipelinetest: }
exporters: {pipelinetest: }
service: {pipelines: {traces: {receivers: [pipelinetest], processors: [%s], exporters: [pipelinetest]}}}`
	connectorFile = `
receivers: {pipelinetest: }
exporters: {pipelinetest: }
service:
  pipelines:
    traces: {receivers: [pipelinetest], exporters: [%[1]s]}
    traces/next: {receivers: [%[1]s], exporters: [pipelinetest]}`
	exporterFile = `
receivers: {pipelinetest: }
extensions: {pipelinetest: {exporter: %[1]s}}
service: {extensions: [pipelinetest], pipelines: {traces: {receivers: [pipelinetest], exporters: [%[1]s]}}}`
)

// maxWait is long enough for the concurrent callers of the suite on a busy machine.
const maxWait = defaultTimeout / 2

// load loads the configuration of a program as the command line does.
func (s *suite) load(p *program, block, dir string) (*app.Config, error) {
	const name = "pipelinetest.yaml"
	f := s.sub.factory
	var file, section string
	switch f.Kind() {
	case pipeline.KindReceiver:
		file, section = receiverFile, "receivers"
	case pipeline.KindProcessor:
		file, section = processorFile, "processors"
	case pipeline.KindConnector:
		file, section = connectorFile, "connectors"
	case pipeline.KindExporter:
		file, section = exporterFile, "exporters"
	default:
		s.Fatalf("%s %s: the suite tests receivers, processors, connectors and exporters", f.Kind(), f.Type())
	}
	o := app.LoadOptions{Factories: append(p.probes(), f), Files: []string{name}}
	o.ReadFile = func(path string) ([]byte, error) {
		if path == name {
			return fmt.Appendf(nil, file, f.Type()), nil
		}
		return os.ReadFile(path)
	}
	o.Overrides = []app.Override{
		{Flag: "the configuration under test", Path: []string{section, f.Type()}, Value: block},
		{Flag: "the suite", Path: []string{"service", "data_dir"}, Value: dir},
		{Flag: "the suite", Path: []string{"service", "limits", "max_wait"}, Value: maxWait.String()},
	}
	if t := reflect.TypeOf(f.Defaults()).Elem(); delivers(t) {
		o.Overrides = append(o.Overrides,
			app.Override{Flag: "the suite", Path: []string{section, f.Type(), "retry_on_failure", "enabled"}, Value: "false"})
	}
	return app.Load(o)
}

// delivers reports whether a config embeds pipeline.Delivery.
func delivers(config reflect.Type) bool {
	if config.Kind() != reflect.Struct {
		return false
	}
	f, ok := config.FieldByName("Delivery")
	return ok && f.Anonymous && f.Type == reflect.TypeFor[pipeline.Delivery]()
}

type (
	noConfig     struct{}
	holderConfig struct {
		Exporter pipeline.Ref[any] `yaml:"exporter" doc:"The exporter under test."`
	}
	holder struct{}
)

// probes returns the components of the suite.
func (p *program) probes() []pipeline.Factory {
	none := func() noConfig { return noConfig{} }
	return []pipeline.Factory{
		pipeline.Receiver(probeType, none, func(_ pipeline.Settings, _ noConfig, next pipeline.Consumer) (*source, error) {
			p.source = &source{next: next}
			return p.source, nil
		}),
		pipeline.Exporter(probeType, none, func(pipeline.Settings, noConfig) (*destination, error) { return p.suite.destination, nil }),
		pipeline.Extension(probeType, func() holderConfig { return holderConfig{} },
			func(_ pipeline.Settings, c holderConfig) (*holder, error) {
				p.exporter = c.Exporter.Get()
				return &holder{}, nil
			}),
	}
}

// source is a receiver that the suite calls. Like every receiver, it waits for its calls when it
// stops.
type source struct {
	next pipeline.Consumer

	mu      sync.Mutex
	closed  bool
	calling sync.WaitGroup
}

var _ pipeline.Stopper = (*source)(nil)

// Start does nothing.
func (*source) Start(context.Context) error { return nil }

// Consume passes b on until the source is stopped.
func (s *source) Consume(ctx context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return pipeline.ErrStopping
	}
	s.calling.Add(1)
	s.mu.Unlock()
	defer s.calling.Done()
	return s.next.Consume(ctx, b)
}

// Stop waits for running calls.
func (s *source) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.calling.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// effects records the use of the network while it is not allowed.
type effects struct {
	allowed atomic.Bool
	mu      sync.Mutex
	early   []string
}

func (e *effects) note(what, network, address string) {
	if e.allowed.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.early = append(e.early, fmt.Sprintf("%s %s %s", what, network, address))
}

func (e *effects) noted() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.early
}

// watch returns an environment that records the use of the network.
func (e *effects) watch(env pipeline.Env) pipeline.Env {
	listen, listenPacket, dial := env.Listen, env.ListenPacket, env.Dial
	env.Listen = func(ctx context.Context, network, address string) (net.Listener, error) {
		e.note("listens on", network, address)
		return listen(ctx, network, address)
	}
	env.ListenPacket = func(ctx context.Context, network, address string) (net.PacketConn, error) {
		e.note("listens on", network, address)
		return listenPacket(ctx, network, address)
	}
	env.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		e.note("dials", network, address)
		return dial(ctx, network, address)
	}
	return env
}
