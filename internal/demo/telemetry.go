package demo

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of the instrumentation.
const scope = "github.com/tracing-backend/tracing/internal/demo"

const (
	// queueSize and batchSize are numbers of spans. Whoever ends a span waits while the queue is
	// full, so that a backfill is as fast as the installation.
	queueSize, batchSize = 8192, 2048
	exportEvery          = time.Second
	exportTimeout        = 30 * time.Second
)

// telemetry is the SDK of all instances. They share one queue of spans.
type telemetry struct {
	processor sdktrace.SpanProcessor
	exporter  *countingExporter
	ids       *ids
	transport *http.Transport
}

// newTelemetry returns an SDK that sends spans to an OTLP receiver.
func newTelemetry(ctx context.Context, o *Options) (*telemetry, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(strings.TrimRight(o.OTLP, "/")+"/v1/traces"), otlptracehttp.WithHeaders(joined(o.Header)),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: transport, Timeout: exportTimeout}))
	if err != nil {
		return nil, fmt.Errorf("OTLP exporter: %w", err)
	}
	t := &telemetry{exporter: &countingExporter{SpanExporter: exporter}, ids: &ids{}, transport: transport}
	t.processor = sdktrace.NewBatchSpanProcessor(t.exporter, sdktrace.WithBlocking(), sdktrace.WithMaxQueueSize(queueSize),
		sdktrace.WithMaxExportBatchSize(batchSize), sdktrace.WithBatchTimeout(exportEvery), sdktrace.WithExportTimeout(exportTimeout))
	return t, nil
}

// joined returns headers with the values of each in one, as HTTP allows.
func joined(headers http.Header) map[string]string {
	out := make(map[string]string, len(headers))
	for name, values := range headers {
		out[name] = strings.Join(values, ", ")
	}
	return out
}

// tracer returns the tracer of an instance.
func (t *telemetry) tracer(attributes []attribute.KeyValue) trace.Tracer {
	r, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(attributes...))
	if err != nil {
		r = resource.NewSchemaless(attributes...)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithResource(r), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithIDGenerator(t.ids), sdktrace.WithSpanProcessor(t.processor)).Tracer(scope)
}

// close sends what is left and closes the connections.
func (t *telemetry) close(ctx context.Context) error {
	defer t.transport.CloseIdleConnections()
	return t.processor.Shutdown(ctx)
}

// countingExporter counts the spans that the receiver has acknowledged. It is safe for concurrent
// use.
type countingExporter struct {
	sdktrace.SpanExporter

	mu  sync.Mutex
	sum exported
}

// exported is what happened to spans.
type exported struct {
	spans, acknowledged int
	err                 error // of the last request that failed
}

// ExportSpans implements sdktrace.SpanExporter. It never fails: the SDK would write errors to
// standard error.
func (e *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sum.spans += len(spans)
	if err != nil {
		e.sum.err = err
		return nil
	}
	e.sum.acknowledged += len(spans)
	return nil
}

// counts returns what was exported.
func (e *countingExporter) counts() exported {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sum
}

// ids generates ids from the random numbers of the simulation, which starts all spans in one
// goroutine.
type ids struct{ random *rand.Rand }

// NewIDs implements sdktrace.IDGenerator.
func (g *ids) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:8], g.random.Uint64())
		binary.BigEndian.PutUint64(id[8:], g.random.Uint64())
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (g *ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:], g.random.Uint64())
	}
	return id
}
