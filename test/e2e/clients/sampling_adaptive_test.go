package clients_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opentracing/opentracing-go"
	"github.com/uber/jaeger-client-go"
	"github.com/uber/jaeger-client-go/transport"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// adaptiveSettings make the preset sample adaptively with short intervals. The target is 5 traces
// per second, and the initial probability is 1.
var adaptiveSettings = []string{
	"extensions::sampling::file=null",
	"extensions::sampling::adaptive={storage: disk, calculation_interval: 1s, calculation_delay: 0s, " +
		"initial_sampling_probability: 1, target_samples_per_second: 5}",
	"processors::adaptive_sampling={sampling: sampling}",
	"service::pipelines::traces::processors=[adaptive_sampling, batch]",
}

// TestAdaptiveSamplingOfJaegerClient checks that the sampling rate of a client decreases because of
// its own spans.
func TestAdaptiveSamplingOfJaegerClient(t *testing.T) {
	collector := inprocess.Start(t, adaptiveSettings...)
	http := "http://" + collector.Addr("native", "http")
	var options jaeger.SamplerOptionsFactory
	sampler := jaeger.NewRemotelyControlledSampler("cart", options.SamplingServerURL(http+"/api/sampling"),
		options.SamplingRefreshInterval(clientRefresh),
		options.InitialSampler(jaeger.NewConstSampler(false)))
	tracer, closer := jaeger.NewTracer("cart", sampler,
		jaeger.NewRemoteReporter(transport.NewHTTPTransport(http+"/api/traces?format=jaeger.thrift"),
			jaeger.ReporterOptions.BufferFlushInterval(50*time.Millisecond)))
	t.Cleanup(func() { closer.Close() })
	sampled := func() (all int) {
		for range 100 {
			span := tracer.StartSpan("GET /", opentracing.StartTime(time.Now()))
			if span.Context().(jaeger.SpanContext).IsSampled() {
				all++
			}
			span.Finish()
			time.Sleep(2 * time.Millisecond)
		}
		return all
	}
	harness.Poll(t, "fewer than 20 of 100 traces sampled", func() bool {
		n := sampled()
		return n > 0 && n < 20 // the target is 5 of about 300 traces per second
	})
	code, stdout, stderr := inprocess.RunCommand(t, "sampling", "explain", "cart", "--operation", "GET /", "--url", http)
	if code != 0 || !strings.Contains(stdout, "from     adaptive calculated by ") || !strings.Contains(stdout, "target 5 traces per second") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestAdaptiveSamplingWithoutAStore checks that a store that does not support adaptive sampling is
// a configuration error.
func TestAdaptiveSamplingWithoutAStore(t *testing.T) {
	err := loadAdaptive(t, "exporters::grpc={endpoint: \"localhost:1\"}", "extensions::sampling::adaptive::storage=grpc")
	const want = "extensions.sampling.adaptive.storage: exporter grpc is not a store that supports adaptive sampling; these are: disk"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAdaptiveSamplingWithoutABlock checks that the processor requires an extension with adaptive
// sampling.
func TestAdaptiveSamplingWithoutABlock(t *testing.T) {
	err := loadAdaptive(t, "extensions::sampling::adaptive=null", "extensions::sampling::file={}")
	const want = "processors.adaptive_sampling.sampling: extension sampling is not " +
		"an extension that samples adaptively: adaptive block is missing"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := loadAdaptive(t); err != nil {
		t.Error(err)
	}
}

// loadAdaptive loads the preset with adaptive sampling and more settings.
func loadAdaptive(t *testing.T, changes ...string) error {
	t.Helper()
	_, err := inprocess.Options{Preset: "all-in-one", Settings: slices.Concat(adaptiveSettings, changes)}.Load()
	return err
}
