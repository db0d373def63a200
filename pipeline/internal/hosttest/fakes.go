package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Part is a fake component: the `source` receiver, the `hub` extension, and a part of all others.
type Part struct {
	World *World
	ID    string
}

// Start records the start.
func (p *Part) Start(context.Context) error { return p.World.record("start " + p.ID) }

// Stop records the stop.
func (p *Part) Stop(ctx context.Context) error {
	if p.World.OnStop != nil {
		p.World.OnStop(ctx)
	}
	return p.World.record("stop " + p.ID)
}

// Addr returns the address of the grpc listener.
func (p *Part) Addr(listener string) string {
	if listener != "grpc" {
		return ""
	}
	return p.ID + " at " + listener
}

// SourceConfig is the configuration of the `source` receiver.
type SourceConfig struct {
	Endpoint pipeline.Endpoint `yaml:"endpoint" doc:"Where to listen."`
}

// StepConfig is a configuration without keys.
type StepConfig struct{}

// Beside is embedded by components that can run beside their replacement.
type Beside struct{}

// HandOver does nothing.
func (Beside) HandOver(context.Context) {}

// Step is the `step` processor. It passes batches on.
type Step struct {
	Part
	Beside
	Next pipeline.Consumer
}

// Consume passes b on.
func (s *Step) Consume(ctx context.Context, b *otlpdata.Batch) error { return s.Next.Consume(ctx, b) }

// SinkConfig is the configuration of the `sink` exporter.
type SinkConfig struct {
	MaxTraces int `yaml:"max_traces" doc:"How many traces to keep."`
}

// Validate checks max_traces.
func (c *SinkConfig) Validate() error {
	if c.MaxTraces < 0 {
		return pipeline.BadKey("max_traces", "must not be below 0")
	}
	return nil
}

// Sink is the `sink` exporter: a store in memory that can be referenced as a [Reader].
type Sink struct{ Part }

// Consume returns the response of World.Accept.
func (s *Sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	if s.World.Accept == nil {
		return nil
	}
	return s.World.Accept(s.ID, b)
}

// Durability returns DurabilityMemory.
func (s *Sink) Durability() pipeline.Durability { return pipeline.DurabilityMemory }

// Read identifies the store.
func (s *Sink) Read() string { return "read " + s.ID }

// Reader is what the extension ask refers to.
type Reader interface{ Read() string }

// AskConfig is the configuration of the `ask` extension.
type AskConfig struct {
	Storage pipeline.Ref[Reader]            `yaml:"storage" doc:"Where to read." ref:"a store"`
	HTTP    pipeline.Optional[SourceConfig] `yaml:"http" doc:"Listener."`
}

type ask struct{ Part }

// proxy is an extension that reads from another store.
type proxy struct{ Part }

type proxyConfig struct {
	Of pipeline.Ref[Reader] `yaml:"of" doc:"Where to read." ref:"a store"`
}

func (p *proxy) Read() string { return "read " + p.ID }

// hop is an exporter that cannot be referenced and does not report a durability.
type hop struct{ sink Sink }

func (h *hop) Consume(ctx context.Context, b *otlpdata.Batch) error { return h.sink.Consume(ctx, b) }

// hubConfig has a map and a list of blocks.
type hubConfig struct {
	Listeners map[string]SourceConfig `yaml:"listeners" doc:"Where to listen."`
	Sinks     []SinkConfig            `yaml:"sinks" doc:"Limits."`
	Wait      pipeline.Duration       `yaml:"wait" doc:"How long."`
	Size      pipeline.ByteSize       `yaml:"size" doc:"How much."`
	Token     pipeline.Secret         `yaml:"token" doc:"Hidden token."`
}

// watch is an observer.
type watch struct{ Part }

func (w *watch) ObservesProcess() {}

// split is a connector that passes spans to the pipelines of its configuration, or to all.
type split struct {
	Part
	Beside
	next pipeline.Consumer
}

type splitConfig struct {
	Pipelines [][]pipeline.PipelineID `yaml:"pipelines" doc:"Only these pipelines."`
	Headers   []string                `yaml:"headers" doc:"Headers that decide."`
}

// ReadsHeaders returns the keys of headers.
func (c *splitConfig) ReadsHeaders() map[string]string {
	keys := map[string]string{}
	for i, name := range c.Headers {
		keys[name] = fmt.Sprint("headers::", i)
	}
	return keys
}

// joinConfig is the configuration of the `join` processor, which passes batches on.
type joinConfig struct {
	Headers []string `yaml:"headers" doc:"Headers that joined requests have."`
}

// JoinsHeaders returns the key headers.
func (c *joinConfig) JoinsHeaders() (key string, kept []string) { return "headers", c.Headers }

func (s *split) Consume(ctx context.Context, b *otlpdata.Batch) error { return s.next.Consume(ctx, b) }

// Factories returns the factories of all fakes.
func (w *World) Factories() []pipeline.Factory {
	none := func() StepConfig { return StepConfig{} }
	part := func(s pipeline.Settings) Part { return Part{w, s.ID.String()} }
	return []pipeline.Factory{
		pipeline.Receiver("source", func() SourceConfig { return SourceConfig{Endpoint: "localhost:0"} },
			func(s pipeline.Settings, _ SourceConfig, next pipeline.Consumer) (*Part, error) {
				w.Source[s.ID.String()] = next
				return &Part{w, s.ID.String()}, w.RecordBuild(s, "")
			}),
		pipeline.Processor("step", none, func(s pipeline.Settings, _ StepConfig, next pipeline.Consumer) (*Step, error) {
			return &Step{part(s), Beside{}, next}, w.RecordBuild(s, "")
		}),
		pipeline.Exporter("sink", func() SinkConfig { return SinkConfig{} }, func(s pipeline.Settings, _ SinkConfig) (*Sink, error) {
			return &Sink{part(s)}, w.RecordBuild(s, "")
		}).Alias("drain", "old_drain"),
		pipeline.Connector("split", func() splitConfig { return splitConfig{} },
			func(s pipeline.Settings, c splitConfig, next pipeline.Branches) (*split, error) {
				out := &split{part(s), Beside{}, next}
				if len(c.Pipelines) > 0 {
					out.next = next.Only(slices.Concat(c.Pipelines...)...)
				}
				return out, w.RecordBuild(s, "")
			}).Doc("Splits the flow."),
		pipeline.Extension("ask", func() AskConfig { return AskConfig{HTTP: pipeline.Absent(SourceConfig{Endpoint: "localhost:1"})} },
			func(s pipeline.Settings, c AskConfig) (*ask, error) {
				w.Ask = &c
				return &ask{part(s)}, w.RecordBuild(s, "")
			}),
		pipeline.Exporter("hop", none, func(s pipeline.Settings, _ StepConfig) (*hop, error) {
			return &hop{Sink{part(s)}}, w.RecordBuild(s, "")
		}),
		pipeline.Extension("proxy", func() proxyConfig { return proxyConfig{} }, func(s pipeline.Settings, c proxyConfig) (*proxy, error) {
			return &proxy{part(s)}, w.RecordBuild(s, " of "+c.Of.Get().Read())
		}),
		pipeline.Extension("hub", func() hubConfig { return hubConfig{} }, func(s pipeline.Settings, _ hubConfig) (*Part, error) {
			return &Part{w, s.ID.String()}, w.RecordBuild(s, "")
		}),
		pipeline.Extension("watch", none, func(s pipeline.Settings, _ StepConfig) (*watch, error) {
			return &watch{part(s)}, w.RecordBuild(s, "")
		}),
		pipeline.Processor("join", func() joinConfig { return joinConfig{} },
			func(s pipeline.Settings, _ joinConfig, next pipeline.Consumer) (*Step, error) {
				return &Step{part(s), Beside{}, next}, w.RecordBuild(s, "")
			}),
	}
}

// BrokenCollector is a metric collector that fails.
type BrokenCollector struct{}

// Describe describes nothing.
func (BrokenCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reports an error.
func (BrokenCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "", nil, nil), errors.New("broken"))
}
