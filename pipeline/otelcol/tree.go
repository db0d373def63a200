package otelcol

import "github.com/tracing-backend/tracing/pipeline"

// EffectiveTree implements [pipeline.TreeConfig].
func (c *Config) EffectiveTree() map[string]any { return c.given }

// TreeKeys implements [pipeline.TreeConfig].
func (c *Config) TreeKeys() []pipeline.TreeKey { return nil }
