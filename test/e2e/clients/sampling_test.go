package clients_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opentracing/opentracing-go"
	"github.com/uber/jaeger-client-go"
	"go.opentelemetry.io/contrib/samplers/jaegerremote"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// samplingClient is a client library. start starts traces and returns the number of sampled ones,
// and the sampler tags of the last sampled one: type and parameter.
type samplingClient struct {
	name  string
	start func(operation string, traces int) (sampled int, sampler string)
}

// oneByOne returns a client that starts traces with decide.
func oneByOne(name string, decide func(operation string) (sampled bool, sampler string)) samplingClient {
	return samplingClient{name, func(operation string, traces int) (sampled int, sampler string) {
		for range traces {
			if is, by := decide(operation); is {
				sampled, sampler = sampled+1, by
			}
		}
		return sampled, sampler
	}}
}

// clientRefresh is the interval at which clients read their strategies.
const clientRefresh = 20 * time.Millisecond

// jaegerSamplingClient returns the Jaeger client for Go.
func jaegerSamplingClient(t *testing.T, name, url string) samplingClient {
	var options jaeger.SamplerOptionsFactory
	sampler := jaeger.NewRemotelyControlledSampler("cart", options.SamplingServerURL(url), options.SamplingRefreshInterval(clientRefresh),
		options.InitialSampler(jaeger.NewConstSampler(false)))
	tracer, closer := jaeger.NewTracer("cart", sampler, jaeger.NewNullReporter())
	t.Cleanup(func() { closer.Close() })
	return oneByOne(name, func(operation string) (bool, string) {
		span := tracer.StartSpan(operation, opentracing.StartTime(time.Now())).(*jaeger.Span)
		defer span.Finish()
		tags := span.Tags()
		return span.SpanContext().IsSampled(), fmt.Sprint(tags[jaeger.SamplerTypeTagKey], " ", tags[jaeger.SamplerParamTagKey])
	})
}

// otelSamplingClient returns the OpenTelemetry SDK with the Jaeger remote sampler.
func otelSamplingClient(t *testing.T, name, url string) samplingClient {
	sampler := jaegerremote.New("cart", jaegerremote.WithSamplingServerURL(url), jaegerremote.WithSamplingRefreshInterval(clientRefresh),
		jaegerremote.WithInitialSampler(sdktrace.NeverSample()))
	t.Cleanup(sampler.Close)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
	t.Cleanup(func() { provider.Shutdown(t.Context()) }) //nolint:errcheck // it exports nothing
	tracer := provider.Tracer("test")
	return oneByOne(name, func(operation string) (bool, string) {
		_, span := tracer.Start(t.Context(), operation, trace.WithNewRoot())
		defer span.End()
		if !span.SpanContext().IsSampled() {
			return false, ""
		}
		var typ, param attribute.Value
		for _, a := range span.(sdktrace.ReadOnlySpan).Attributes() {
			switch {
			case strings.HasSuffix(string(a.Key), "sampler.type"):
				typ = a.Value
			case strings.HasSuffix(string(a.Key), "sampler.param"):
				param = a.Value
			}
		}
		return true, fmt.Sprint(typ.AsString(), " ", param.AsFloat64())
	})
}

// await starts traces until one is sampled by the given sampler.
func (c samplingClient) await(t *testing.T, sampler string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s has the sampler %s", c.name, last)
		}
	}()
	harness.Poll(t, c.name+" has the sampler "+sampler, func() bool {
		sampled, by := c.start("GET /", 1)
		if sampled > 0 {
			last = by
		}
		return sampled > 0 && by == sampler
	})
}

// share starts 20,000 traces and checks that a share p of them is sampled, within six standard
// deviations.
func (c samplingClient) share(t *testing.T, operation string, p float64) {
	t.Helper()
	const traces = 20_000
	n, _ := c.start(operation, traces)
	sigma := math.Sqrt(traces * p * (1 - p))
	if math.Abs(float64(n)-traces*p) > 6*sigma {
		t.Errorf("%s: %d of %d traces of %s were sampled, want a share of %v", c.name, n, traces, operation, p)
	}
}

// startAgent starts the preset agent for a collector.
func startAgent(t *testing.T, collector string, settings ...string) *inprocess.Program {
	t.Helper()
	return inprocess.StartPreset(t, "agent",
		append(settings, "exporters::native::endpoint="+collector, "extensions::sampling::remote::endpoint="+collector)...)
}

// TestSamplersFollowTheFile checks that clients of a collector and of an agent follow the
// strategies file when it changes.
func TestSamplersFollowTheFile(t *testing.T) {
	followTheFile(t, func(atCollector, atAgent string) []samplingClient {
		return []samplingClient{
			jaegerSamplingClient(t, "jaeger-client-go at the collector", atCollector), jaegerSamplingClient(t,
				"jaeger-client-go at the agent", atAgent),
			otelSamplingClient(t, "jaegerremote at the collector", atCollector), otelSamplingClient(t, "jaegerremote at the agent", atAgent),
		}
	})
}

// followTheFile changes a strategies file twice and checks that the clients of a collector and of
// its agent follow it.
func followTheFile(t *testing.T, connect func(atCollector, atAgent string) []samplingClient) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "strategies.json")
	write := func(strategy string) {
		t.Helper()
		text := `{"default_strategy": {"type": "probabilistic", "param": 0}, "service_strategies": [{"service": "cart", ` + strategy + `}]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`"type": "probabilistic", "param": 0.25`)
	collector := inprocess.Start(t, "extensions::sampling::file::path="+file, "extensions::sampling::file::reload_interval=10ms")
	agent := startAgent(t, collector.Addr("native", "grpc"), "extensions::sampling::remote::fresh_for=1ms")
	clients := connect("http://"+collector.Addr("native", "http")+"/api/sampling",
		"http://"+agent.Addr("sampling", "http")+"/sampling")
	for _, c := range clients {
		c.await(t, "probabilistic 0.25")
		c.share(t, "GET /", 0.25)
	}
	write(`"type": "probabilistic", "param": 0.75, "operation_strategies": [{"operation": "health", "type": "probabilistic", "param": 0.125}]`)
	for _, c := range clients {
		c.await(t, "probabilistic 0.75")
		c.share(t, "GET /", 0.75)
		c.share(t, "health", 0.125)
	}
	write(`"type": "ratelimiting", "param": 7`)
	for _, c := range clients {
		c.await(t, "ratelimiting 7")
	}
	t.Run("limits", func(t *testing.T) {
		for _, c := range clients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				checkLimit(t, c, 7)
			})
		}
	})
	checkExplained(t, collector, file)
}

// checkLimit starts traces until twice the limit, in traces per second, has been sampled, and
// checks that this took long enough. First it uses up the credit of the client.
func checkLimit(t *testing.T, c samplingClient, limit float64) {
	t.Helper()
	var begin time.Time // the credit is used up since then
	for sampled := 1; sampled > 0; {
		begin = time.Now()
		sampled, _ = c.start("GET /", 1)
	}
	n := 0
	for float64(n) < 2*limit {
		sampled, _ := c.start("GET /", 1)
		n += sampled
		time.Sleep(100 * time.Microsecond)
	}
	if seconds := time.Since(begin).Seconds(); float64(n) > limit*seconds+2 {
		t.Errorf("%s: %d traces were sampled in %v s, the limit is %v per second", c.name, n, seconds, limit)
	}
}

// checkExplained checks the output of `tracing sampling explain`.
func checkExplained(t *testing.T, collector *inprocess.Program, file string) {
	t.Helper()
	code, stdout, stderr := inprocess.RunCommand(t, "sampling", "explain", "cart", "--url", "http://"+collector.Addr("native", "http"))
	for _, want := range []string{"cart: ratelimiting 7\n", "file " + file + ":1\n", "over http", "over grpc", "applies to each process"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing, exit code %d: %s%s", want, code, stdout, stderr)
		}
	}
}
