package pipeline_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// greeterConfig is the configuration of a greeter.
type greeterConfig struct {
	Names []string `yaml:"names" doc:"Names of the spans to send."`
}

// greeter is a receiver that sends a span for each configured name.
type greeter struct {
	config  greeterConfig
	next    pipeline.Consumer
	stop    chan struct{} // closed to end run
	stopped chan struct{} // closed when run has ended
}

var _ pipeline.Stopper = (*greeter)(nil)

// newGreeterFactory returns the factory. In a package of its own, it would be called Factory.
func newGreeterFactory() pipeline.Factory {
	defaults := func() greeterConfig { return greeterConfig{Names: []string{"hello"}} }
	build := func(_ pipeline.Settings, c greeterConfig, next pipeline.Consumer) (*greeter, error) {
		return &greeter{config: c, next: next, stop: make(chan struct{}), stopped: make(chan struct{})}, nil
	}
	return pipeline.Receiver("greeter", defaults, build).Doc("Sends a span for each configured name.")
}

// Start starts sending.
func (g *greeter) Start(context.Context) error {
	go g.run()
	return nil
}

func (g *greeter) run() {
	defer close(g.stopped)
	for _, name := range g.config.Names {
		td := ptrace.NewTraces()
		td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
		batch := otlpdata.FromTraces(td, otlpdata.Meta{Format: "greeting"})
		if err := g.next.Consume(context.Background(), batch); err != nil {
			fmt.Println(name, "was refused:", err)
		}
	}
	<-g.stop
}

// Stop waits until all spans have been answered.
func (g *greeter) Stop(ctx context.Context) error {
	close(g.stop)
	select {
	case <-g.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A receiver passes the spans that it receives to next. A real one listens on an address, answers
// its clients with the outcome of Consume, and is best built on package server.
func ExampleReceiver() {
	runProgram(`
receivers: {greeter: {names: [hello, world]}}
exporters: {printer: }
service: {pipelines: {traces: {receivers: [greeter], exporters: [printer]}}}
`, newGreeterFactory(), newPrinterFactory())
	// Output:
	// hello
	// world
	// exit code 0
}
