// Package otlpclient sends batches to a next hop with OTLP over gRPC, without decoding them.
// Several exporters use it.
package otlpclient

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

// exportMethods are the methods by signal. Their responses have the same fields.
var exportMethods = [...]string{
	otlpdata.SignalTraces: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	otlpdata.SignalLogs:   "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

// Client is a connection to one next hop. It is safe for concurrent use after Start.
type Client struct {
	conn         *client.GRPC
	nextHop      *client.NextHop
	endpoint     string
	tenantHeader string
}

// New returns a client that connects on Start. After three consecutive failures it reports the next
// hop as unhealthy with set.Report, and after a success as recovered.
func New(set pipeline.Settings, c client.GRPCConfig, hop client.NextHopConfig) (*Client, error) {
	conn, err := client.NewGRPC(set, c, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{})))
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, nextHop: client.NewNextHop(set), endpoint: c.Endpoint, tenantHeader: hop.TenantHeader}, nil
}

// Start starts connecting. It does not wait for the next hop.
func (c *Client) Start(ctx context.Context) error { return c.conn.Start(ctx) }

// Stop closes the connection. Open calls fail.
func (c *Client) Stop(ctx context.Context) error { return c.conn.Stop(ctx) }

// Send makes one attempt to send b. Errors carry the gRPC status of the next hop; a partial success
// is a *pipeline.Partial.
func (c *Client) Send(ctx context.Context, b *otlpdata.Batch) error {
	chunks, err := b.Chunks()
	if err != nil {
		return pipeline.Permanent(err)
	}
	return c.nextHop.Record(ctx, c.send(ctx, b.Meta(), slices.Collect(chunks)))
}

func (c *Client) send(ctx context.Context, m otlpdata.Meta, chunks [][]byte) error {
	if m.Tenant != "" && c.tenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, c.tenantHeader, m.Tenant)
	}
	var response []byte
	if err := c.conn.Invoke(ctx, exportMethods[m.Signal], chunks, &response); err != nil {
		return fmt.Errorf("sending to %s: %w", c.endpoint, err)
	}
	resp := ptraceotlp.NewExportResponse()
	if err := resp.UnmarshalProto(response); err != nil {
		return c.nextHop.Partial(0, fmt.Sprintf("%s sent an invalid OTLP response: %v", c.endpoint, err))
	}
	return c.nextHop.Partial(resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage())
}
