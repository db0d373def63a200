// Package native is the exporter "native": it sends spans to a collector in the native model over gRPC, as agents do.
package native

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const (
	// defaultMaxMessage is a little less than the 4 MiB that gRPC servers take where nothing else is configured.
	defaultMaxMessage = 4000 << 10
	leastMaxMessage   = 1 << 10
	mostMaxMessage    = 1 << 30
)

type config struct {
	client.GRPCConfig
	client.NextHopConfig
	pipeline.Delivery
	MaxMessageSize pipeline.ByteSize `yaml:"max_message_size" doc:"Greatest size of one message, uncompressed, which must not exceed what the next hop takes (4MiB by default); larger batches are sent as several messages."`
}

func defaults() config {
	c := config{GRPCConfig: client.DefaultGRPCConfig(), NextHopConfig: client.DefaultNextHopConfig(), Delivery: pipeline.DefaultDelivery(),
		MaxMessageSize: defaultMaxMessage}
	c.Compression = client.CompressionNone // as agents do; old collectors know nothing else
	return c
}

// Validate reports a size that cannot work.
func (c *config) Validate() error {
	if c.MaxMessageSize < leastMaxMessage || c.MaxMessageSize > mostMaxMessage {
		return pipeline.BadKey("max_message_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(leastMaxMessage), pipeline.ByteSize(mostMaxMessage), c.MaxMessageSize)
	}
	return nil
}

// Factory makes exporters of type native.
func Factory() pipeline.Factory {
	return pipeline.Exporter("native", defaults, newExporter).
		Doc("Sends spans to a collector in the native model over gRPC, as agents do.")
}

type exporter struct {
	set          pipeline.Settings
	conn         *client.GRPC
	hop          *client.NextHop
	metrics      *metrics
	failures     failureLog
	buffers      buffers
	method       string
	endpoint     string
	tenantHeader string
	maxMessage   int
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	m, err := newMetrics(set)
	if err != nil {
		return nil, err
	}
	e := &exporter{set: set, hop: client.NewNextHop(set), metrics: m, failures: failureLog{log: set.Logger, now: set.Env.Now},
		method:   "/" + wire.Original(api_v2.CollectorService_ServiceDesc.ServiceName) + "/PostSpans", // the name that all collectors know
		endpoint: c.Endpoint, tenantHeader: c.TenantHeader, maxMessage: int(c.MaxMessageSize)}
	e.conn, err = client.NewGRPC(set, c.GRPCConfig, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{&e.buffers})),
		grpc.WithStatsHandler(&connections{metrics: m}))
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Start begins to connect.
func (e *exporter) Start(ctx context.Context) error { return e.conn.Start(ctx) }

// Stop closes the connection.
func (e *exporter) Stop(ctx context.Context) error { return e.conn.Stop(ctx) }

// Keeps tells that the next hop has what was acknowledged.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// Consume makes one attempt to send b, in as many messages as it takes. A message that is refused for good does not keep the others from
// being sent. One that fails for the moment ends the attempt: the next one goes on with it. Where there is none, because time is up, the
// error stands for all spans, and a caller who sends them again sends those of the messages before once more; behind a queue, where nobody
// does, only the others count as dropped.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	segments, err := b.Segments()
	if err != nil {
		return pipeline.Permanent(err)
	}
	if tenant := b.Meta().Tenant; tenant != "" && e.tenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, e.tenantHeader, tenant)
	}
	d := &delivery{exporter: e, ctx: ctx, format: b.Meta().Format, progress: pipeline.ProgressOf(ctx)}
	err = native.SplitPostSpans(segments, e.maxMessage, e.buffers.take, d.send)
	return e.hop.Record(ctx, d.outcome(err, b.Len()))
}

// delivery is one attempt to send a batch.
type delivery struct {
	*exporter
	ctx      context.Context
	format   string
	progress *pipeline.Progress
	seen     int   // messages
	failed   error // for the moment
}

// send sends one message, unless an attempt before has. An error ends the attempt.
func (d *delivery) send(message []byte, spans int) error {
	if d.seen++; d.seen <= d.progress.Requests {
		d.buffers.Put(&message)
		return nil
	}
	err := d.post(d.ctx, message)
	d.report(d.ctx, d.format, spans, err)
	if err != nil && !pipeline.IsPermanent(err) {
		d.failed = err
		return err
	}
	d.progress.Requests++
	if err == nil {
		d.progress.Taken += spans
	} else if d.progress.Refusal == nil {
		d.progress.Refusal = err
	}
	return nil
}

// outcome is what became of all spans. err is what ended their translation.
func (d *delivery) outcome(err error, spans int) error {
	p := d.progress
	if d.failed != nil {
		return d.failed
	}
	refusal := p.Refusal
	if err != nil && refusal == nil {
		refusal = pipeline.Permanent(err)
	}
	if refusal == nil || p.Taken == 0 {
		return refusal
	}
	return &pipeline.Partial{Rejected: spans - p.Taken, Err: refusal}
}

// post makes one call.
func (e *exporter) post(ctx context.Context, message []byte) error {
	err := e.conn.Invoke(ctx, e.method, message, nil)
	if err == nil {
		return nil
	}
	answer := status.Convert(err)
	err = fmt.Errorf("failed to export spans: %s: %w", e.endpoint, err)
	if answer.Code() == codes.ResourceExhausted && answer.Message() == "server busy" {
		return pipeline.Overloaded(err, 0) // collectors in the field say so without RetryInfo
	}
	return err
}

// report counts and logs the outcome of one message.
func (e *exporter) report(ctx context.Context, format string, spans int, err error) {
	e.metrics.count(format, spans, err)
	switch {
	case err == nil:
		e.set.Logger.Debug("Span batch submitted by the agent", zap.Int("span-count", spans))
	case errors.Is(ctx.Err(), context.Canceled): // who called gave up
	case status.Code(err) == codes.PermissionDenied && strings.Contains(err.Error(), "missing tenant header"):
		e.set.Logger.Debug("Could not report untenanted spans over gRPC", zap.Error(err))
	default:
		e.failures.add(err)
	}
}
