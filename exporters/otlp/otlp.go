// Package otlp implements the exporter "otlp". It sends spans to a next hop in the OpenTelemetry
// protocol over gRPC, without decoding them.
package otlp

import (
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

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
	return pipeline.Exporter("otlp", defaults, newExporter).
		Doc("Sends spans to a next hop in the OpenTelemetry protocol over gRPC.")
}

type exporter struct {
	conn         *client.GRPC
	nextHop      *client.NextHop
	endpoint     string
	tenantHeader string
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	conn, err := client.NewGRPC(set, c.GRPCConfig, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{})))
	if err != nil {
		return nil, err
	}
	return &exporter{conn: conn, nextHop: client.NewNextHop(set), endpoint: c.Endpoint, tenantHeader: c.TenantHeader}, nil
}

// Start starts connecting.
func (e *exporter) Start(ctx context.Context) error { return e.conn.Start(ctx) }

// Stop closes the connection.
func (e *exporter) Stop(ctx context.Context) error { return e.conn.Stop(ctx) }

// Durability returns DurabilitySent: acknowledged spans are at the next hop.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// Consume makes one attempt to send b. Errors carry the gRPC status of the next hop.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	chunks, err := b.Chunks()
	if err != nil {
		return pipeline.Permanent(err)
	}
	return e.nextHop.Record(ctx, e.send(ctx, b.Meta().Tenant, slices.Collect(chunks)))
}

func (e *exporter) send(ctx context.Context, tenant string, chunks [][]byte) error {
	if tenant != "" && e.tenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, e.tenantHeader, tenant)
	}
	var response []byte
	if err := e.conn.Invoke(ctx, exportMethod, chunks, &response); err != nil {
		return fmt.Errorf("sending to %s: %w", e.endpoint, err)
	}
	resp := ptraceotlp.NewExportResponse()
	if err := resp.UnmarshalProto(response); err != nil {
		return e.nextHop.Partial(0, fmt.Sprintf("%s sent an invalid OTLP response: %v", e.endpoint, err))
	}
	return e.nextHop.Partial(resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage())
}
