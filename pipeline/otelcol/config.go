package otelcol

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tracing-backend/tracing/pipeline"
)

// Config is the configuration of an adapted component. It decodes and checks itself with the
// component's own code.
type Config struct {
	value component.Config // of the component's own type
	given map[string]any
}

var _ pipeline.TreeConfig = (*Config)(nil)

func defaults(f component.Factory) func() Config {
	return func() Config { return Config{value: f.CreateDefaultConfig()} }
}

// UnmarshalTree implements [pipeline.TreeConfig].
func (c *Config) UnmarshalTree(tree map[string]any) error {
	c.given = tree
	if err := confmap.NewFromStringMap(tree).Unmarshal(c.value); err != nil {
		return decodeErrors(c.value, err)
	}
	return validationErrors(tree, confmap.Validate(c.value))
}

// GivenTree implements [pipeline.TreeConfig].
func (c *Config) GivenTree() map[string]any { return c.given }
