// Package otlp is the exporter "otlp": it sends spans to a next hop in the OpenTelemetry protocol over gRPC. Encoded spans pass through as
// the bytes they came in.
package otlp

import (
	"context"
	"fmt"

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

// Factory makes exporters of type otlp.
func Factory() pipeline.Factory {
	return pipeline.Exporter("otlp", defaults, newExporter).
		Doc("Sends spans to a next hop in the OpenTelemetry protocol over gRPC.")
}

type exporter struct {
	conn         *client.GRPC
	hop          *client.NextHop
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
	return &exporter{conn: conn, hop: client.NewNextHop(set), endpoint: c.Endpoint, tenantHeader: c.TenantHeader}, nil
}

// Start begins to connect.
func (e *exporter) Start(ctx context.Context) error { return e.conn.Start(ctx) }

// Stop closes the connection.
func (e *exporter) Stop(ctx context.Context) error { return e.conn.Stop(ctx) }

// Keeps tells that the next hop has what was acknowledged.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// Consume makes one attempt to send b. A refusal of the next hop is returned with its gRPC status.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	segments, err := b.Segments()
	if err != nil {
		return pipeline.Permanent(err)
	}
	return e.hop.Record(ctx, e.send(ctx, b.Meta().Tenant, segments))
}

func (e *exporter) send(ctx context.Context, tenant string, segments [][]byte) error {
	if tenant != "" && e.tenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, e.tenantHeader, tenant)
	}
	var answer []byte
	if err := e.conn.Invoke(ctx, exportMethod, segments, &answer); err != nil {
		return fmt.Errorf("sending to %s: %w", e.endpoint, err)
	}
	resp := ptraceotlp.NewExportResponse()
	if err := resp.UnmarshalProto(answer); err != nil {
		return e.hop.Partial(0, fmt.Sprintf("the answer of %s is not one of OTLP: %v", e.endpoint, err))
	}
	return e.hop.Partial(resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage())
}
