// Package forward provides the `forward` connector, which passes all spans to all pipelines that
// list it as a receiver.
package forward

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type config struct{}

// Factory returns the factory of connectors of type forward.
func Factory() pipeline.Factory {
	return pipeline.Connector("forward", func() config { return config{} },
		func(_ pipeline.Settings, _ config, next pipeline.Branches) (*connector, error) {
			return &connector{next}, nil
		}).
		Doc("Passes all spans to the pipelines that list it as a receiver.")
}

type connector struct{ next pipeline.Branches }

// Consume passes b to all pipelines.
func (c *connector) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return c.next.Consume(ctx, b)
}
