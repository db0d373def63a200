// Package grpc implements the `grpc` exporter, the remote storage client: it writes to and reads
// from a store in another process over gRPC. It supports remote storage v2 (OTLP) and v1 (Jaeger's
// model) and uses the version that the server supports. If the server is this program, it reads
// through the store service (tracing.store.v1), which supports all capabilities of a store.
package grpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

type config struct {
	Endpoint  string   `yaml:"endpoint" doc:"Address of the server: host:port, dns:///host:port, or a list of host:port, separated by commas, of servers with the same store. Requests are balanced over all servers."`
	Endpoints []string `yaml:"endpoints" doc:"Addresses of servers with different stores, which are read as one store; see docs/several-stores.md. Spans cannot be written to several stores."`
	client.GRPCSettings
	client.NextHopConfig
	pipeline.Delivery
	Writer         pipeline.Optional[client.GRPCConfig] `yaml:"writer" doc:"Connection for writing spans over OTLP, if it differs from endpoint."`
	Protocol       string                               `yaml:"protocol" doc:"Version of the storage protocol: v2, v1 or auto (ask the server). Only auto supports all features of this program's stores."`
	ProbeInterval  pipeline.Duration                    `yaml:"probe_interval" doc:"Interval at which an unreachable server is probed. Until it responds, the component is degraded. Without a sending_queue or another endpoint that responds, the process is also not ready."`
	Archive        bool                                 `yaml:"archive" doc:"Whether to use the archive of the server, which exists only in v1. Archived traces can be read by id but not searched."`
	MaxMessageSize pipeline.ByteSize                    `yaml:"max_message_size" doc:"Maximum size of a sent message before compression. Larger batches are split."`
	MaxRecvMsgSize int                                  `yaml:"max_recv_msg_size_mib" doc:"Maximum size of a received message in MiB."`
	MaxHeld        pipeline.ByteSize                    `yaml:"max_held_size" doc:"Maximum memory for candidate traces of all searches. Other traces are reread when they are needed."`
	MaxTrace       pipeline.ByteSize                    `yaml:"max_trace_size" doc:"Maximum size of a trace in a search result. Larger ones are truncated, and the result is incomplete."`
	MaxTraces      int                                  `yaml:"max_traces_per_question" doc:"Maximum number of traces in one request to the server. A search sends as many requests as necessary."`
}

const (
	auto           = "auto"
	v1Name, v2Name = "v1", "v2"
	minMessageSize = 1 << 10
	maxMessageSize = 1 << 30
	maxRecvMiB     = 2047
	maxRequested   = 100_000
)

func defaults() config {
	return config{
		GRPCSettings: client.DefaultGRPCConfig().GRPCSettings, NextHopConfig: client.DefaultNextHopConfig(), Delivery: pipeline.DefaultDelivery(),
		Writer: pipeline.Absent(client.DefaultGRPCConfig()), Protocol: auto, MaxMessageSize: 4000 << 10, MaxRecvMsgSize: 64,
		ProbeInterval: pipeline.Duration(5 * time.Second), MaxHeld: 64 << 20, MaxTrace: 512 << 20, MaxTraces: 1000,
	}
}

// Validate checks the values of the configuration.
func (c *config) Validate() error {
	errs := c.validateEndpoints()
	switch c.Protocol {
	case auto, v1Name, v2Name:
	default:
		errs = append(errs, pipeline.BadKey("protocol", "unknown version %q; use auto, v1 or v2", c.Protocol))
	}
	if c.Archive && c.Protocol == v2Name {
		errs = append(errs, pipeline.BadKey("archive", "protocol v2 has no archive; set protocol: v1, or set endpoint to the archive server"))
	}
	if c.MaxMessageSize < minMessageSize || c.MaxMessageSize > maxMessageSize {
		errs = append(errs, pipeline.BadKey("max_message_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(minMessageSize), pipeline.ByteSize(maxMessageSize), c.MaxMessageSize))
	}
	if c.MaxRecvMsgSize < 1 || c.MaxRecvMsgSize > maxRecvMiB {
		errs = append(errs, pipeline.BadKey("max_recv_msg_size_mib", "must be from 1 to %d, not %d", maxRecvMiB, c.MaxRecvMsgSize))
	}
	if c.ProbeInterval <= 0 {
		errs = append(errs, pipeline.BadKey("probe_interval", "must be above 0"))
	}
	if c.MaxHeld < 0 {
		errs = append(errs, pipeline.BadKey("max_held_size", "must not be below 0"))
	}
	if c.MaxTrace <= 0 {
		errs = append(errs, pipeline.BadKey("max_trace_size", "must be above 0"))
	}
	if c.MaxTraces < 1 || c.MaxTraces > maxRequested {
		errs = append(errs, pipeline.BadKey("max_traces_per_question", "must be from 1 to %d, not %d", maxRequested, c.MaxTraces))
	}
	return errors.Join(errs...)
}

// Factory returns the factory of the `grpc` exporter.
func Factory() pipeline.Factory {
	return pipeline.Exporter("grpc", defaults, newComponent).
		Doc("Remote storage client: writes to and reads from a store in another process over gRPC (v2 and v1), or reads several stores as one.")
}

// exporter is the client of one server.
type exporter struct {
	cfg     config
	set     pipeline.Settings
	conn    *client.GRPC
	store   grpc.ClientConnInterface // conn, for the store service
	writer  *client.GRPC             // nil to use conn
	server  *capabilityCache
	watch   *watcher // of conn
	watches []*watcher
	nextHop *client.NextHop
	held    *pipeline.Budget // memory for candidate traces of searches
	feeds   sync.WaitGroup   // goroutines that receive for feeds
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
	_ tracestore.Reader           = (*exporter)(nil)
	_ tracestore.Catalog          = (*exporter)(nil)
	_ tracestore.Edges            = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	e := &exporter{cfg: c, set: set, server: newCapabilityCache(c)}
	reports := pipeline.NewReports(set.Report)
	set.Report = reports.Part("writes")
	e.nextHop = client.NewNextHop(set)
	e.held = pipeline.NewBudget(max(int64(c.MaxHeld), 1)) // 0 would disable the limit
	call := grpc.WithDefaultCallOptions(grpc.ForceCodecV2(server.RawCodec()), grpc.MaxCallRecvMsgSize(c.MaxRecvMsgSize<<20))
	var err error
	if e.conn, err = e.connect("connection", c.connection(c.Endpoint), reports, call, grpc.WithStatsHandler(e.server)); err != nil {
		return nil, err
	}
	e.watch = e.watches[0]
	e.server.conn = originalNames{e.conn}
	e.store = storeConn(e.conn, c.Compression)
	if w, on := c.Writer.Get(); on {
		if e.writer, err = e.connect("writer", w, reports, call); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// connect returns a connection that is watched.
func (e *exporter) connect(part string, c client.GRPCConfig, reports *pipeline.Reports, opts ...grpc.DialOption) (*client.GRPC, error) {
	set := e.set
	set.Report = reports.Part(part + " tls")
	conn, err := client.NewGRPC(set, c, opts...)
	if err != nil {
		return nil, err
	}
	report := reports.Part(part)
	e.watches = append(e.watches, newWatcher(conn, c.Endpoint, e.cfg.ProbeInterval.Std(), func(err error) {
		if err == nil {
			_ = e.nextHop.Record(context.Background(), nil) // writes failed because of the outage; there may be none now
		}
		if q, on := e.cfg.Queue.Get(); !on || !q.Enabled { // a queue accepts spans meanwhile
			err = pipeline.NotReady(err)
		}
		report(err)
	}))
	return conn, nil
}

// Start starts to connect.
func (e *exporter) Start(ctx context.Context) error {
	if err := e.conn.Start(ctx); err != nil {
		return err
	}
	if e.writer != nil {
		if err := e.writer.Start(ctx); err != nil {
			return errors.Join(err, e.conn.Stop(ctx))
		}
	}
	for _, w := range e.watches {
		w.start()
	}
	return nil
}

// Stop closes the connections.
func (e *exporter) Stop(ctx context.Context) error {
	for _, w := range e.watches {
		w.stop()
	}
	err := e.conn.Stop(ctx)
	if e.writer != nil {
		err = errors.Join(err, e.writer.Stop(ctx))
	}
	e.feeds.Wait()
	return err
}

// Durability reports that acknowledged spans have been sent to the server.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// withTenant adds the tenant to the metadata of a call.
func (e *exporter) withTenant(ctx context.Context, tenant string) context.Context {
	if tenant != "" && e.cfg.TenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, e.cfg.TenantHeader, tenant)
	}
	return ctx
}

// withReadMetadata adds the tenant and the bearer token of the user to the metadata of a read.
func (e *exporter) withReadMetadata(ctx context.Context, tenant string) context.Context {
	if token := client.BearerToken(ctx); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, remotestore.TokenHeader, token)
	}
	return e.withTenant(ctx, tenant)
}

// batch returns a Batch of spans that were read. The limits are high because the spans were already
// accepted when they were stored.
func batch(otlp []byte, tenant string) (*otlpdata.Batch, error) {
	const high = 1 << 30
	return otlpdata.FromOTLP(otlp, otlpdata.Meta{Tenant: tenant, Format: "otlp", Transport: "grpc"},
		otlpdata.Limits{Bytes: high, Spans: high, Items: high, Depth: 1000})
}
