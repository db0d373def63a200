package tracing_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is an exporter that counts spans and discards them.
type counter struct{ spans atomic.Int64 }

type counterConfig struct {
	Label string `yaml:"label" doc:"Name of the counter."`
}

// counterFactory is the factory of the component type counter.
func counterFactory() pipeline.Factory {
	defaults := func() counterConfig { return counterConfig{Label: "spans"} }
	build := func(pipeline.Settings, counterConfig) (*counter, error) { return &counter{}, nil }
	return pipeline.Exporter("counter", defaults, build).Doc("Counts spans and discards them.")
}

// Consume implements pipeline.Consumer.
func (c *counter) Consume(_ context.Context, b *otlpdata.Batch) error {
	c.spans.Add(int64(b.Len()))
	return nil
}

const configuration = `
receivers:
  otlp: {protocols: {grpc: , http: }}
exporters:
  counter: {label: demo}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [counter]}
`

// A custom build adds components to the list of built-in ones. Its main function calls [app.Main]
// with them. The example calls [app.Run] instead, to validate a configuration that uses the
// additional component.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tracing.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	components := append(tracing.Components(), counterFactory())
	args := []string{"validate", "--config", file}
	code := app.Run(context.Background(), args, os.Stdout, os.Stderr, components, tracing.Presets()...)
	fmt.Println("exit code", code)
	// Output:
	// the configuration is valid
	// exit code 0
}
