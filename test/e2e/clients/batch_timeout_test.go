package clients_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// heldBatches has the settings of many files of the Collector: it sends 8192 spans, or what has
// come within 10 s, which is longer than clients wait.
const heldBatches = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: {timeout: 10s, send_batch_size: 8192}}
exporters: {memory: }
service: {pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [memory]}}}
`

// TestBatchTimeoutDelaysNoClient exports single spans and full batches with the SDK, one request
// after another, as its batch processor does. Each request is accepted.
func TestBatchTimeoutDelaysNoClient(t *testing.T) {
	p := harness.RunYAML(t, heldBatches)
	p.AwaitReady()
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithInsecure(), otlptracegrpc.WithEndpoint(p.OTLPGRPC()),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false}))
	if err != nil {
		t.Fatal(err)
	}
	made := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(made))
	for range 512 {
		_, span := provider.Tracer("test").Start(t.Context(), "work")
		span.End()
	}
	spans := made.GetSpans().Snapshots()
	requests := [][]sdktrace.ReadOnlySpan{spans[:1]}
	for range 17 {
		requests = append(requests, spans)
	}
	for i, spans := range requests {
		if err := exporter.ExportSpans(t.Context(), spans); err != nil {
			t.Fatalf("request %d of %d spans: %v", i, len(spans), err)
		}
	}
	if err := exporter.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	p.Terminate()
	p.Accounting()
}

// TestBatchTimeoutIsExplained checks that the commands validate and doctor name the key.
func TestBatchTimeoutIsExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(heldBatches), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"validate", "doctor"} {
		_, stdout, stderr := inprocess.RunCommand(t, command, "--config", file)
		if !strings.Contains(stdout+stderr, "processors.batch.timeout: is limited to 1s, because clients wait until their spans are sent") {
			t.Errorf("%s says nothing about the timeout:\n%s%s", command, stdout, stderr)
		}
	}
}
