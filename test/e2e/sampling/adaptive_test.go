package sampling_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opentracing/opentracing-go"
	"github.com/uber/jaeger-client-go"
	"github.com/uber/jaeger-client-go/transport"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// adaptively are the settings with which the preset samples adaptively, in short intervals: 5 traces per second, where all are sampled first.
var adaptively = []string{
	"extensions::sampling::file=null",
	"extensions::sampling::adaptive={storage: disk, calculation_interval: 1s, calculation_delay: 0s, initial_sampling_probability: 1, target_samples_per_second: 5}",
	"processors::adaptive_sampling={sampling: sampling}",
	"service::pipelines::traces::processors=[adaptive_sampling, batch]",
}

// A real client that samples too much is told to sample less, by what its own spans say.
func TestAdaptiveSamplingOfARealClient(t *testing.T) {
	collector := harness.Start(t, adaptively...)
	native := pipeline.ID{Type: "native"}
	http := "http://" + collector.App.Addr(native, "http")
	var options jaeger.SamplerOptionsFactory
	sampler := jaeger.NewRemotelyControlledSampler("cart", options.SamplingServerURL(http+"/api/sampling"), options.SamplingRefreshInterval(clientRefresh),
		options.InitialSampler(jaeger.NewConstSampler(false)))
	tracer, closer := jaeger.NewTracer("cart", sampler, jaeger.NewRemoteReporter(transport.NewHTTPTransport(http+"/api/traces?format=jaeger.thrift"),
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
	for end := time.Now().Add(30 * time.Second); ; {
		if n := sampled(); n > 0 && n < 20 { // of some 300 traces per second, 5
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d of 100 traces are sampled", n)
		}
	}
	var stdout, stderr strings.Builder
	args := []string{"sampling", "explain", "cart", "--operation", "GET /", "--url", http}
	code := app.Run(t.Context(), args, &stdout, &stderr, tracing.Components(), tracing.Presets()...)
	if code != 0 || !strings.Contains(stdout.String(), "from     adaptive calculated by ") || !strings.Contains(stdout.String(), "5 traces per second are wanted") {
		t.Errorf("exit code %d: %s%s", code, stdout.String(), stderr.String())
	}
}

// A store that cannot keep what is learned is a mistake, told when the configuration is loaded.
func TestAdaptiveSamplingWithoutAStore(t *testing.T) {
	err := loadAdaptively(t, "exporters::grpc={endpoint: \"localhost:1\"}", "extensions::sampling::adaptive::storage=grpc")
	const want = "extensions.sampling.adaptive.storage: exporter grpc is not a store that can keep what adaptive sampling learns; these are: disk"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Counting for an extension that does not sample adaptively would be silence: it is a mistake, too.
func TestAdaptiveSamplingWithoutABlock(t *testing.T) {
	err := loadAdaptively(t, "extensions::sampling::adaptive=null", "extensions::sampling::file={}")
	const want = "processors.adaptive_sampling.sampling: extension sampling is not an extension that samples adaptively: it has no block adaptive"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := loadAdaptively(t); err != nil {
		t.Error(err)
	}
}

// loadAdaptively loads the preset with adaptive sampling and changes.
func loadAdaptively(t *testing.T, changes ...string) error {
	t.Helper()
	o := app.LoadOptions{Factories: tracing.Components(), Presets: tracing.Presets()}
	for _, text := range slices.Concat(adaptively, changes) {
		v, err := app.ParseSet(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Overrides = append(o.Overrides, v)
	}
	_, err := app.Load(o)
	return err
}
