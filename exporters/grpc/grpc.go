// Package grpc is the exporter "grpc": a store of another process, which is written and read over gRPC. It speaks remote storage v2 (OTLP) and
// v1 (native model), whichever the other side has.
package grpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

type config struct {
	client.GRPCConfig
	client.NextHopConfig
	pipeline.Delivery
	Writer         pipeline.Optional[client.GRPCConfig] `yaml:"writer" doc:"Where spans are written to in OTLP, if not to endpoint."`
	Protocol       string                               `yaml:"protocol" doc:"Version of the storage protocol: v2, v1, or auto, which asks the other side."`
	Archive        bool                                 `yaml:"archive" doc:"Use the archive of the other side, which v1 has besides its store: traces are written and read by id."`
	MaxMessageSize pipeline.ByteSize                    `yaml:"max_message_size" doc:"Greatest size of one message, uncompressed, that is sent; larger batches are sent as several messages."`
	MaxRecvMsgSize int                                  `yaml:"max_recv_msg_size_mib" doc:"Greatest message in MiB that is received."`
	MaxHeld        pipeline.ByteSize                    `yaml:"max_held_size" doc:"How much of the spans that searches look at is kept until it is known which are shown, all searches together; what was not kept is read once more."`
	MaxTrace       pipeline.ByteSize                    `yaml:"max_trace_size" doc:"How much of one trace a search holds; of a larger one it shows a part, and says so."`
	MaxQuestion    int                                  `yaml:"max_traces_per_question" doc:"How many traces one question to the other side may ask for; a search asks as many questions as it takes."`
}

const (
	auto            = "auto"
	v1Name, v2Name  = "v1", "v2"
	leastMaxMessage = 1 << 10
	mostMaxMessage  = 1 << 30
	mostRecvMiB     = 2047
	mostQuestion    = 100_000
)

func defaults() config {
	return config{GRPCConfig: client.DefaultGRPCConfig(), NextHopConfig: client.DefaultNextHopConfig(), Delivery: pipeline.DefaultDelivery(),
		Writer: pipeline.Absent(client.DefaultGRPCConfig()), Protocol: auto, MaxMessageSize: 4000 << 10, MaxRecvMsgSize: 64, MaxHeld: 64 << 20,
		MaxTrace: 512 << 20, MaxQuestion: 1000}
}

// Validate reports values that cannot work.
func (c *config) Validate() error {
	var errs []error
	switch c.Protocol {
	case auto, v1Name, v2Name:
	default:
		errs = append(errs, pipeline.BadKey("protocol", "%q is no version; write auto, v1 or v2", c.Protocol))
	}
	if c.Archive && c.Protocol == v2Name {
		errs = append(errs, pipeline.BadKey("archive", "v2 has no archive; name the store that is the archive by its endpoint"))
	}
	if c.MaxMessageSize < leastMaxMessage || c.MaxMessageSize > mostMaxMessage {
		errs = append(errs, pipeline.BadKey("max_message_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(leastMaxMessage), pipeline.ByteSize(mostMaxMessage), c.MaxMessageSize))
	}
	if c.MaxRecvMsgSize < 1 || c.MaxRecvMsgSize > mostRecvMiB {
		errs = append(errs, pipeline.BadKey("max_recv_msg_size_mib", "must be from 1 to %d, not %d", mostRecvMiB, c.MaxRecvMsgSize))
	}
	if c.MaxHeld < 0 {
		errs = append(errs, pipeline.BadKey("max_held_size", "must not be below 0"))
	}
	if c.MaxTrace <= 0 {
		errs = append(errs, pipeline.BadKey("max_trace_size", "must be above 0"))
	}
	if c.MaxQuestion < 1 || c.MaxQuestion > mostQuestion {
		errs = append(errs, pipeline.BadKey("max_traces_per_question", "must be from 1 to %d, not %d", mostQuestion, c.MaxQuestion))
	}
	return errors.Join(errs...)
}

// Factory makes exporters of type grpc.
func Factory() pipeline.Factory {
	return pipeline.Exporter("grpc", defaults, newExporter).
		Doc("A store of another process, which is written and read over gRPC (remote storage v2 and v1).")
}

type exporter struct {
	cfg    config
	set    pipeline.Settings
	conn   *client.GRPC
	writer *client.GRPC // nil: conn
	peer   *peer
	hop    *client.NextHop
	kept   *pipeline.Budget // of the spans that searches look at
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
	_ tracestore.Reader           = (*exporter)(nil)
	_ tracestore.Catalog          = (*exporter)(nil)
	_ tracestore.Dependencies     = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	e := &exporter{cfg: c, set: set, hop: client.NewNextHop(set), peer: newPeer(c)}
	e.kept = pipeline.NewBudget(max(int64(c.MaxHeld), 1)) // which would be none for 0
	call := grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(c.MaxRecvMsgSize<<20))
	var err error
	if e.conn, err = client.NewGRPC(set, c.GRPCConfig, call, grpc.WithStatsHandler(e.peer)); err != nil {
		return nil, err
	}
	e.peer.conn = field{e.conn}
	if w, on := c.Writer.Get(); on {
		if e.writer, err = client.NewGRPC(set, w, call); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Start begins to connect.
func (e *exporter) Start(ctx context.Context) error {
	if err := e.conn.Start(ctx); err != nil {
		return err
	}
	if e.writer == nil {
		return nil
	}
	if err := e.writer.Start(ctx); err != nil {
		return errors.Join(err, e.conn.Stop(ctx))
	}
	return nil
}

// Stop closes the connections.
func (e *exporter) Stop(ctx context.Context) error {
	err := e.conn.Stop(ctx)
	if e.writer != nil {
		err = errors.Join(err, e.writer.Stop(ctx))
	}
	return err
}

// Keeps tells that the other side has what was acknowledged.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// withTenant tells the other side whose spans a call is about.
func (e *exporter) withTenant(ctx context.Context, tenant string) context.Context {
	if tenant != "" && e.cfg.TenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, e.cfg.TenantHeader, tenant)
	}
	return ctx
}

// reading is withTenant for reads, which pass the user's token on.
func (e *exporter) reading(ctx context.Context, tenant string) context.Context {
	if token := client.BearerToken(ctx); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, remotestore.TokenHeader, token)
	}
	return e.withTenant(ctx, tenant)
}

// batch makes a Batch of what was read. It was accepted once, by whoever stored it, so the limits are wide.
func batch(otlp []byte, tenant string) (*otlpdata.Batch, error) {
	const wide = 1 << 30
	return otlpdata.FromOTLP(otlp, otlpdata.Meta{Tenant: tenant, Format: "otlp", Transport: "grpc"},
		otlpdata.Limits{Bytes: wide, Spans: wide, Items: wide, Depth: 1000})
}
