package app_test

import (
	"context"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// A receiver that makes spans itself. Its file would be all of a package, with newGreeterFactory called Factory.

type greeterConfig struct {
	Names []string `yaml:"names" doc:"Names of the spans to make."`
}

// greeter sends one span for each name, and then waits for its end.
type greeter struct {
	config  greeterConfig
	next    pipeline.Consumer
	done    chan struct{}
	stopped chan struct{}
}

func newGreeterFactory() pipeline.Factory {
	return pipeline.Receiver("greeter", func() greeterConfig { return greeterConfig{Names: []string{"hello"}} },
		func(_ pipeline.Settings, c greeterConfig, next pipeline.Consumer) (*greeter, error) {
			return &greeter{config: c, next: next, done: make(chan struct{}), stopped: make(chan struct{})}, nil
		}).Doc("Makes one span for each name.")
}

func (g *greeter) Start(context.Context) error {
	go g.run()
	return nil
}

func (g *greeter) run() {
	defer close(g.stopped)
	for _, name := range g.config.Names {
		td := ptrace.NewTraces()
		td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
		if err := g.next.Consume(context.Background(), otlpdata.FromTraces(td, otlpdata.Meta{Format: "greeting"})); err != nil {
			fmt.Println("nobody took", name, "because", err)
		}
	}
	<-g.done
}

func (g *greeter) Stop(ctx context.Context) error {
	close(g.done)
	select {
	case <-g.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ pipeline.Stopper = (*greeter)(nil)

// A receiver is a factory, which is a value: the program is given it beside those that are built in.
func ExampleReceiver() {
	w := newWorld()
	w.take = func(id string, b *otlpdata.Batch) error {
		td, err := b.Traces()
		fmt.Println(id, "got", td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name())
		return err
	}
	config := app.Preset{Name: "example", YAML: []byte(`
receivers: {greeter: {names: [hello, world]}}
exporters: {sink: }
service: {pipelines: {traces: {receivers: [greeter], exporters: [sink]}}}
`)}
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt() // a real program runs until it is told to stop
	code := app.Run(ctx, nil, io.Discard, io.Discard, append(w.factories(), newGreeterFactory()), config)
	fmt.Println("exit code", code)
	// Output:
	// sink got hello
	// sink got world
	// exit code 0
}
