package pipeline_test

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// printerConfig is the configuration of a printer. It embeds Delivery, so that it has the keys
// timeout, retry_on_failure and sending_queue, and the framework delivers batches accordingly.
type printerConfig struct {
	pipeline.Delivery
	Fail int `yaml:"fail" doc:"Number of attempts that fail, for tests."`
}

// printer is an exporter that prints the names of spans.
type printer struct {
	config   printerConfig
	attempts int
}

// newPrinterFactory returns the factory. In a package of its own, it would be called Factory.
func newPrinterFactory() pipeline.Factory {
	defaults := func() printerConfig { return printerConfig{Delivery: pipeline.DefaultDelivery()} }
	build := func(_ pipeline.Settings, c printerConfig) (*printer, error) { return &printer{config: c}, nil }
	return pipeline.Exporter("printer", defaults, build).Doc("Prints the names of spans.")
}

// Consume prints the names of spans. It makes one attempt; the framework retries errors that are
// not marked as permanent.
func (p *printer) Consume(_ context.Context, b *otlpdata.Batch) error {
	if p.attempts++; p.attempts <= p.config.Fail {
		fmt.Println("attempt", p.attempts, "failed")
		return fmt.Errorf("attempt %d failed", p.attempts)
	}
	td, err := b.Traces()
	if err != nil {
		return pipeline.Permanent(err)
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				fmt.Println(span.Name())
			}
		}
	}
	return nil
}

// An exporter sends spans to a next hop or stores them. If it returns nil, the spans are
// acknowledged.
func ExampleExporter() {
	runProgram(`
receivers: {greeter: }
exporters: {printer: {fail: 2, retry_on_failure: {initial_interval: 1ms}}}
service: {pipelines: {traces: {receivers: [greeter], exporters: [printer]}}}
`, newGreeterFactory(), newPrinterFactory())
	// Output:
	// attempt 1 failed
	// attempt 2 failed
	// hello
	// exit code 0
}
