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
	// queueSize and batchSize are numbers of spans. Ending a span blocks while the queue is full,
	// so that a backfill is as fast as the installation.
	queueSize, batchSize = 8192, 2048
	exportEvery          = time.Second
	exportTimeout        = 30 * time.Second
)

// telemetry is the SDK of all instances. They share one queue of spans. The variables OTEL_* of the
// process do not apply to it.
type telemetry struct {
	processor sdktrace.SpanProcessor
	exporter  *countingExporter
	ids       *ids
	transport *http.Transport
	ended     int // spans; written by the goroutine of the simulation
}

// newTelemetry returns an SDK that sends spans to an OTLP receiver.
func newTelemetry(ctx context.Context, o *Options) (*telemetry, error) {
	transport := &http.Transport{ForceAttemptHTTP2: true}
	if !o.Direct {
		transport.Proxy = http.ProxyFromEnvironment
	}
	client := &http.Client{Transport: transport, Timeout: exportTimeout}
	// Another address would get the headers, which may hold secrets, and after 302 no spans.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(strings.TrimRight(o.OTLP, "/")+"/v1/traces"), otlptracehttp.WithHeaders(joined(o.Header)),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithTLSClientConfig(nil), otlptracehttp.WithHTTPClient(client))
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
	unlimited := sdktrace.SpanLimits{AttributeValueLengthLimit: -1, AttributeValueDepthLimit: -1, AttributeCountLimit: -1, EventCountLimit: -1,
		LinkCountLimit: -1, AttributePerEventCountLimit: -1, AttributePerLinkCountLimit: -1}
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithRawSpanLimits(unlimited),
		sdktrace.WithIDGenerator(t.ids), sdktrace.WithSpanProcessor(&instanceProcessor{t.processor, t, r})).Tracer(scope)
}

// instanceProcessor counts the spans of an instance, and sets their resource. WithResource would
// add the attributes in OTEL_RESOURCE_ATTRIBUTES.
type instanceProcessor struct {
	sdktrace.SpanProcessor
	telemetry *telemetry
	resource  *resource.Resource
}

// OnEnd implements sdktrace.SpanProcessor.
func (p *instanceProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	p.telemetry.ended++
	p.SpanProcessor.OnEnd(instanceSpan{s, p.resource})
}

// instanceSpan is a span with the resource of its instance.
type instanceSpan struct {
	sdktrace.ReadOnlySpan
	resource *resource.Resource
}

// Resource implements sdktrace.ReadOnlySpan.
func (s instanceSpan) Resource() *resource.Resource { return s.resource }

// close sends what is left and closes the connections. If ctx ends before, what is left is dropped.
func (t *telemetry) close(ctx context.Context) error {
	defer t.transport.CloseIdleConnections()
	err := t.processor.Shutdown(ctx)
	if err == nil {
		return nil
	}
	t.exporter.Shutdown(ctx) //nolint:errcheck // ends the request that is running, also if it says that ctx has ended
	return fmt.Errorf("sending the last spans: %w", err)
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
	acknowledged int
	err          error // of the last request that failed
}

// ExportSpans implements sdktrace.SpanExporter. It never fails: the SDK would write errors to
// standard error.
func (e *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.mu.Lock()
	defer e.mu.Unlock()
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
