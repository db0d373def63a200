package pipeline_test

import (
	"context"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// world is what the fake components of a test share: it records what happens to them, and says how they behave.
type world struct {
	mu     sync.Mutex
	events []string
	fail   map[string]error                         // "start sink": what that call returns
	panics map[string]bool                          // the same, for panics
	take   func(id string, b *otlpdata.Batch) error // what exporters answer
	source map[string]pipeline.Consumer             // what receivers feed
}

func newWorld() *world {
	return &world{fail: map[string]error{}, panics: map[string]bool{}, source: map[string]pipeline.Consumer{}}
}

func (w *world) note(event string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	if w.panics[event] {
		panic(event)
	}
	return w.fail[event]
}

type part struct {
	w  *world
	id string
}

func (p *part) Start(context.Context) error { return p.w.note("start " + p.id) }
func (p *part) Stop(context.Context) error  { return p.w.note("stop " + p.id) }

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
func (s *sink) Keeps() pipeline.Keep { return pipeline.KeepMemory }
func (s *sink) Read() string         { return "read " + s.id }

// reader is the capability that the fake query extension needs.
type reader interface{ Read() string }

type askConfig struct {
	Storage pipeline.Ref[reader]            `yaml:"storage" doc:"Where to read." ref:"a store"`
	HTTP    pipeline.Optional[sourceConfig] `yaml:"http" doc:"Listener."`
}
type ask struct {
	part
	config askConfig
}

type watch struct{ part }

func (w *watch) ObservesProcess() {}

func (w *world) factories() []pipeline.Factory {
	return []pipeline.Factory{
		pipeline.Receiver("source", func() sourceConfig { return sourceConfig{Endpoint: "localhost:0"} },
			func(s pipeline.Settings, _ sourceConfig, next pipeline.Consumer) (*part, error) {
				w.source[s.ID.String()] = next
				return &part{w, s.ID.String()}, w.note("build " + s.ID.String())
			}),
		pipeline.Processor("step", func() stepConfig { return stepConfig{} },
			func(s pipeline.Settings, _ stepConfig, next pipeline.Consumer) (*step, error) {
				return &step{part{w, s.ID.String()}, next}, w.note("build " + s.ID.String())
			}),
		pipeline.Exporter("sink", func() sinkConfig { return sinkConfig{} },
			func(s pipeline.Settings, _ sinkConfig) (*sink, error) {
				return &sink{part{w, s.ID.String()}}, w.note("build " + s.ID.String())
			}),
		pipeline.Extension("ask", func() askConfig { return askConfig{HTTP: pipeline.Absent(sourceConfig{Endpoint: "localhost:1"})} },
			func(s pipeline.Settings, c askConfig) (*ask, error) {
				return &ask{part{w, s.ID.String()}, c}, w.note("build " + s.ID.String())
			}),
		pipeline.Extension("watch", func() stepConfig { return stepConfig{} },
			func(s pipeline.Settings, _ stepConfig) (*watch, error) {
				return &watch{part{w, s.ID.String()}}, w.note("build " + s.ID.String())
			}),
	}
}

// load loads one YAML text.
func (w *world) load(yaml string, overrides ...pipeline.Override) (*pipeline.Config, error) {
	return pipeline.Load(pipeline.LoadOptions{Factories: w.factories(), Files: []string{"c.yaml"}, Overrides: overrides,
		LookupEnv: func(n string) (string, bool) { return "from-env", n == "SET" },
		ReadFile:  func(string) ([]byte, error) { return []byte(yaml), nil }})
}
