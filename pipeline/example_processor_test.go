package pipeline_test

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// prefixConfig is the configuration of a prefixer.
type prefixConfig struct {
	Prefix string `yaml:"prefix" doc:"Prefix of the names of spans."`
}

// Validate checks the prefix. The program prints the error with file, line and column of the key.
func (c *prefixConfig) Validate() error {
	if strings.TrimSpace(c.Prefix) == "" {
		return pipeline.BadKey("prefix", "must not be empty")
	}
	return nil
}

// prefixer is a processor that adds a prefix to the names of spans. It has no Start and Stop,
// because it needs none.
type prefixer struct {
	config prefixConfig
	next   pipeline.Consumer
}

// newPrefixerFactory returns the factory. In a package of its own, it would be called Factory.
func newPrefixerFactory() pipeline.Factory {
	defaults := func() prefixConfig { return prefixConfig{Prefix: "test/"} }
	build := func(_ pipeline.Settings, c prefixConfig, next pipeline.Consumer) (*prefixer, error) {
		return &prefixer{config: c, next: next}, nil
	}
	return pipeline.Processor("prefix", defaults, build).Doc("Adds a prefix to the names of spans.")
}

// Consume passes a changed copy of the batch to next: a batch is immutable, and other pipelines may
// have the same one.
func (p *prefixer) Consume(ctx context.Context, b *otlpdata.Batch) error {
	changed, err := b.Edit(func(td ptrace.Traces) error {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if span.Name() == "" {
						return pipeline.Permanent(errors.New("span has no name"))
					}
					span.SetName(p.config.Prefix + span.Name())
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.next.Consume(ctx, changed)
}

// A processor passes the spans that it consumes to next: all of them, some of them, or changed
// ones.
func ExampleProcessor() {
	runProgram(`
receivers: {greeter: {names: [hello, ""]}}
processors: {prefix: {prefix: my/}}
exporters: {printer: }
service: {pipelines: {traces: {receivers: [greeter], processors: [prefix], exporters: [printer]}}}
`, newGreeterFactory(), newPrefixerFactory(), newPrinterFactory())
	// Output:
	// my/hello
	//  was refused: span has no name
	// exit code 0
}
