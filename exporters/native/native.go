// Package native implements the `native` exporter. It sends spans to a collector in Jaeger's model
// over gRPC, as agents do.
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
	// defaultMessageSize is slightly below 4 MiB, the default message limit of gRPC servers.
	defaultMessageSize = 4000 << 10
	minMessageSize     = 1 << 10
	maxMessageSize     = 1 << 30
)

type config struct {
	client.GRPCConfig
	client.NextHopConfig
	pipeline.Delivery
	MaxMessageSize pipeline.ByteSize `yaml:"max_message_size" doc:"Maximum size of a message before compression, at most what the next hop accepts (4MiB by default). Larger batches are sent as several messages."`
}

func defaults() config {
	c := config{GRPCConfig: client.DefaultGRPCConfig(), NextHopConfig: client.DefaultNextHopConfig(), Delivery: pipeline.DefaultDelivery(),
		MaxMessageSize: defaultMessageSize}
	c.Compression = client.CompressionNone // as agents do; old collectors support no compression
	return c
}

// Validate reports an invalid message size.
func (c *config) Validate() error {
	if c.MaxMessageSize < minMessageSize || c.MaxMessageSize > maxMessageSize {
		return pipeline.BadKey("max_message_size", "must be from %s to %s, not %s",
			pipeline.ByteSize(minMessageSize), pipeline.ByteSize(maxMessageSize), c.MaxMessageSize)
	}
	return nil
}

// Factory returns the factory of exporters of type native.
func Factory() pipeline.Factory {
	return pipeline.Exporter("native", defaults, newExporter).
		Doc("Sends spans to a collector in Jaeger's format over gRPC, as agents do.")
}

type exporter struct {
	set          pipeline.Settings
	conn         *client.GRPC
	nextHop      *client.NextHop
	metrics      *metrics
	lines        *pipeline.RepeatLog
	buffers      bufferPool
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
	// All collectors support the original service name.
	service := wire.Original(api_v2.CollectorService_ServiceDesc.ServiceName)
	e := &exporter{set: set, nextHop: client.NewNextHop(set), metrics: m, lines: pipeline.NewRepeatLog(set),
		method: "/" + service + "/PostSpans", endpoint: c.Endpoint, tenantHeader: c.TenantHeader, maxMessage: int(c.MaxMessageSize)}
	e.conn, err = client.NewGRPC(set, c.GRPCConfig, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{&e.buffers})),
		grpc.WithStatsHandler(&connections{metrics: m}))
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Start starts connecting.
func (e *exporter) Start(ctx context.Context) error { return e.conn.Start(ctx) }

// Stop closes the connection.
func (e *exporter) Stop(ctx context.Context) error { return e.conn.Stop(ctx) }

// Durability returns DurabilitySent: acknowledged spans are at the next hop.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// Consume makes one attempt to send b, split into messages of the maximum size. If a message fails
// permanently, the others are still sent. If a message fails temporarily, the attempt ends, and the
// next attempt continues with it. If there is no further attempt, the error applies to all spans: a
// caller that retries resends the earlier messages. After a queue, where no caller retries, only
// the spans of unsent messages count as dropped.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if tenant := b.Meta().Tenant; tenant != "" && e.tenantHeader != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, e.tenantHeader, tenant)
	}
	a := &attempt{exporter: e, ctx: ctx, format: b.Meta().Format, progress: pipeline.ProgressOf(ctx)}
	err := native.SplitPostSpans(b, e.maxMessage, e.buffers.empty, a.send)
	return e.nextHop.Record(ctx, a.result(err, b.Len()))
}

// attempt is one attempt to send a batch.
type attempt struct {
	exporter *exporter
	ctx      context.Context
	format   string
	progress *pipeline.Progress
	messages int   // seen so far
	failed   error // temporary
}

// send sends one message unless an earlier attempt has sent it. An error ends the attempt.
func (a *attempt) send(message []byte, spans int) error {
	if a.messages++; a.messages <= a.progress.Requests {
		a.exporter.buffers.Put(&message)
		return nil
	}
	err := a.exporter.post(a.ctx, message)
	a.exporter.report(a.ctx, a.format, spans, err)
	if err != nil && !pipeline.IsPermanent(err) {
		a.failed = err
		return err
	}
	a.progress.Requests++
	if err == nil {
		a.progress.Taken += spans
	} else if a.progress.Refusal == nil {
		a.progress.Refusal = err
	}
	return nil
}

// result returns the result for all spans. err is the error of the translation, if it failed.
func (a *attempt) result(err error, spans int) error {
	p := a.progress
	if a.failed != nil {
		return a.failed
	}
	if err != nil && p.Refusal == nil {
		p.Refusal = pipeline.Permanent(err)
	}
	return p.Result(spans)
}

// post sends one message.
func (e *exporter) post(ctx context.Context, message []byte) error {
	err := e.conn.Invoke(ctx, e.method, message, nil)
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	err = fmt.Errorf("failed to export spans: %s: %w", e.endpoint, err)
	if st.Code() == codes.ResourceExhausted && st.Message() == "server busy" {
		return pipeline.Overloaded(err, 0) // existing collectors send this status without RetryInfo
	}
	return err
}

// report counts and logs the result of one message.
func (e *exporter) report(ctx context.Context, format string, spans int, err error) {
	e.metrics.count(format, spans, err)
	switch {
	case err == nil:
		e.set.Logger.Debug("Span batch submitted by the agent", zap.Int("span-count", spans))
	case errors.Is(ctx.Err(), context.Canceled): // canceled by the caller
	case status.Code(err) == codes.PermissionDenied && strings.Contains(err.Error(), "missing tenant header"):
		e.set.Logger.Debug("Could not report untenanted spans over gRPC", zap.Error(err))
	default:
		e.lines.Error("Could not send spans over gRPC", zap.Error(err))
	}
}
