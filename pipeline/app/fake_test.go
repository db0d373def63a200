package app_test

import (
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// world is what the fake components of a test share: it records what happens to them, and says how they behave.
type world struct {
	mu       sync.Mutex
	events   []string
	fail     map[string]error                         // "start sink": what that call returns
	panics   map[string]bool                          // the same, for panics
	seen     func(event string)                       // told of every event
	stopping func(ctx context.Context)                // told of every Stop
	ask      *askConfig                               // of the last ask that was built
	set      map[string]pipeline.Settings             // what components got when they were built, by id
	dirs     []string                                 // Settings.Dir of what was built
	take     func(id string, b *otlpdata.Batch) error // what exporters answer
	source   map[string]pipeline.Consumer             // what receivers feed
}

func newWorld() *world {
	return &world{fail: map[string]error{}, panics: map[string]bool{}, source: map[string]pipeline.Consumer{},
		set: map[string]pipeline.Settings{}}
}

func (w *world) note(event string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	if w.seen != nil {
		w.seen(event)
	}
	if w.panics[event] {
		panic(event)
	}
	return w.fail[event]
}

func (w *world) built(s pipeline.Settings, more string) error {
	w.set[s.ID.String()] = s
	w.dirs = append(w.dirs, s.Dir)
	return w.note("build " + s.ID.String() + more)
}

type part struct {
	w  *world
	id string
}

func (p *part) Start(context.Context) error { return p.w.note("start " + p.id) }
func (p *part) Stop(ctx context.Context) error {
	if p.w.stopping != nil {
		p.w.stopping(ctx)
	}
	return p.w.note("stop " + p.id)
}

// Addr knows one listener.
func (p *part) Addr(name string) string {
	if name != "grpc" {
		return ""
	}
	return p.id + " at " + name
}

type sourceConfig struct {
	Endpoint pipeline.Endpoint `yaml:"endpoint" doc:"Where to listen."`
}

type stepConfig struct{}
type step struct {
	part
	next pipeline.Consumer
}

func (s *step) Consume(ctx context.Context, b *otlpdata.Batch) error { return s.next.Consume(ctx, b) }

type sinkConfig struct {
	MaxTraces int `yaml:"max_traces" doc:"How many traces to keep."`
}

// Validate checks max_traces.
func (c *sinkConfig) Validate() error {
	if c.MaxTraces < 0 {
		return pipeline.BadKey("max_traces", "must not be below 0")
	}
	return nil
}

type sink struct{ part }

func (s *sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	if s.w.take == nil {
		return nil
	}
	return s.w.take(s.id, b)
}
func (s *sink) Durability() pipeline.Durability { return pipeline.DurabilityMemory }
func (s *sink) Read() string                    { return "read " + s.id }

// reader is the capability that the fake query extension needs.
type reader interface{ Read() string }

type askConfig struct {
	Storage pipeline.Ref[reader]            `yaml:"storage" doc:"Where to read." ref:"a store"`
	HTTP    pipeline.Optional[sourceConfig] `yaml:"http" doc:"Listener."`
}
type ask struct{ part }

// A proxy reads what another store holds.
type proxyConfig struct {
	Of pipeline.Ref[reader] `yaml:"of" doc:"Where to read." ref:"a store"`
}
type proxy struct{ part }

func (p *proxy) Read() string { return "read " + p.id }

// A hop is an exporter that keeps nothing and cannot be read.
type hop struct{ sink sink }

func (h *hop) Consume(ctx context.Context, b *otlpdata.Batch) error { return h.sink.Consume(ctx, b) }

// A hub has blocks below keys of the user's choice.
type hubConfig struct {
	Listeners map[string]sourceConfig `yaml:"listeners" doc:"Where to listen."`
	Sinks     []sinkConfig            `yaml:"sinks" doc:"Limits."`
	Wait      pipeline.Duration       `yaml:"wait" doc:"How long."`
	Size      pipeline.ByteSize       `yaml:"size" doc:"How much."`
	Token     pipeline.Secret         `yaml:"token" doc:"What nobody may see."`
}

type brokenCollector struct{}

func (brokenCollector) Describe(chan<- *prometheus.Desc) {}
func (brokenCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "", nil, nil), errors.New("broken"))
}

type watch struct{ part }

func (w *watch) ObservesProcess() {}

func (w *world) factories() []pipeline.Factory {
	return []pipeline.Factory{
		pipeline.Receiver("source", func() sourceConfig { return sourceConfig{Endpoint: "localhost:0"} },
			func(s pipeline.Settings, _ sourceConfig, next pipeline.Consumer) (*part, error) {
				w.source[s.ID.String()] = next
				return &part{w, s.ID.String()}, w.built(s, "")
			}),
		pipeline.Processor("step", func() stepConfig { return stepConfig{} },
			func(s pipeline.Settings, _ stepConfig, next pipeline.Consumer) (*step, error) {
				return &step{part{w, s.ID.String()}, next}, w.built(s, "")
			}),
		pipeline.Exporter("sink", func() sinkConfig { return sinkConfig{} },
			func(s pipeline.Settings, _ sinkConfig) (*sink, error) {
				return &sink{part{w, s.ID.String()}}, w.built(s, "")
			}),
		pipeline.Extension("ask", func() askConfig { return askConfig{HTTP: pipeline.Absent(sourceConfig{Endpoint: "localhost:1"})} },
			func(s pipeline.Settings, c askConfig) (*ask, error) {
				w.ask = &c
				return &ask{part{w, s.ID.String()}}, w.built(s, "")
			}),
		pipeline.Exporter("hop", func() stepConfig { return stepConfig{} },
			func(s pipeline.Settings, _ stepConfig) (*hop, error) {
				return &hop{sink{part{w, s.ID.String()}}}, w.built(s, "")
			}),
		pipeline.Extension("proxy", func() proxyConfig { return proxyConfig{} },
			func(s pipeline.Settings, c proxyConfig) (*proxy, error) {
				return &proxy{part{w, s.ID.String()}}, w.built(s, " of "+c.Of.Get().Read())
			}),
		pipeline.Extension("hub", func() hubConfig { return hubConfig{} },
			func(s pipeline.Settings, _ hubConfig) (*part, error) {
				return &part{w, s.ID.String()}, w.built(s, "")
			}),
		pipeline.Extension("watch", func() stepConfig { return stepConfig{} },
			func(s pipeline.Settings, _ stepConfig) (*watch, error) {
				return &watch{part{w, s.ID.String()}}, w.built(s, "")
			}),
	}
}

// load loads one YAML text.
func (w *world) load(yaml string, overrides ...app.Override) (*app.Config, error) {
	return w.loadWith(w.factories(), yaml, overrides...)
}

// loadWith is load with factories of the test's own.
func (w *world) loadWith(factories []pipeline.Factory, yaml string, overrides ...app.Override) (*app.Config, error) {
	return app.Load(app.LoadOptions{Factories: factories, Files: []string{"c.yaml"}, Overrides: overrides,
		LookupEnv: func(n string) (string, bool) { return "from-env", n == "SET" },
		ReadFile:  func(string) ([]byte, error) { return []byte(yaml), nil }})
}
