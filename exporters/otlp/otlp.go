// Package otlp implements the `otlp` exporter. It sends spans and log records to a next hop in the
// OpenTelemetry protocol over gRPC, without decoding them.
package otlp

import (
	"context"

	"github.com/tracing-backend/tracing/internal/otlpclient"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type config struct {
	client.GRPCConfig
	client.NextHopConfig
	pipeline.Delivery
}

func defaults() config {
	return config{client.DefaultGRPCConfig(), client.DefaultNextHopConfig(), pipeline.DefaultDelivery()}
}

// Factory returns the factory of exporters of type otlp.
func Factory() pipeline.Factory {
	return pipeline.Exporter("otlp", defaults, newExporter).Logs().
		Doc("Sends spans and log records to a next hop in the OpenTelemetry protocol over gRPC.")
}

type exporter struct{ client *otlpclient.Client }

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	next, err := otlpclient.New(set, c.GRPCConfig, c.NextHopConfig)
	if err != nil {
		return nil, err
	}
	return &exporter{next}, nil
}

// Start starts connecting.
func (e *exporter) Start(ctx context.Context) error { return e.client.Start(ctx) }

// Stop closes the connection.
func (e *exporter) Stop(ctx context.Context) error { return e.client.Stop(ctx) }

// Durability returns DurabilitySent: acknowledged spans are at the next hop.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// Consume makes one attempt to send b. Errors carry the gRPC status of the next hop.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return e.client.Send(ctx, b)
}
