package sampling_test

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

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// samplingClient is a client library. begin begins traces, and says how many of them are sampled and, if any, what decided about the last
// one of these: the tags of its root span.
type samplingClient struct {
	name  string
	begin func(operation string, traces int) (sampled int, sampler string)
}

// oneByOne makes a client of what begins one trace.
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

const clientRefresh = 20 * time.Millisecond

// jaegerSamplingClient is the native library in Go.
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

// otelSamplingClient is the SDK of OpenTelemetry with its sampler for this protocol.
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

// await begins traces until one is sampled by the sampler.
func (c samplingClient) await(t *testing.T, sampler string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		sampled, by := c.begin("GET /", 1)
		if sampled > 0 && by == sampler {
			return
		}
		if sampled > 0 {
			last = by
		}
	}
	t.Fatalf("%s does not take over %s; it has %s", c.name, sampler, last)
}

// share begins 20,000 traces and checks how many are sampled.
func (c samplingClient) share(t *testing.T, operation string, p float64) {
	t.Helper()
	const traces = 20_000
	n, _ := c.begin(operation, traces)
	sigma := math.Sqrt(traces * p * (1 - p))
	if math.Abs(float64(n)-traces*p) > 5*sigma {
		t.Errorf("%s: %d of %d traces of %s are sampled, want a share of %v", c.name, n, traces, operation, p)
	}
}

// startAgentOf starts the built-in agent on free ports, with the collector that listens at addr.
func startAgentOf(t *testing.T, addr string, set ...string) *harness.Program {
	t.Helper()
	o := app.LoadOptions{Factories: tracing.Components(), Presets: tracing.Presets(), Preset: "agent"}
	set = append(set, "service::data_dir="+t.TempDir(), "exporters::native::endpoint="+addr, "extensions::sampling::remote::endpoint="+addr,
		"extensions::sampling::http::endpoint=localhost:0", "extensions::admin::endpoint=localhost:0")
	for _, listener := range []string{"compact", "binary", "zipkin"} {
		set = append(set, "receivers::thriftudp::"+listener+"::endpoint=localhost:0")
	}
	for _, s := range set {
		v, err := app.ParseSet(s)
		if err != nil {
			t.Fatal(err)
		}
		o.Overrides = append(o.Overrides, v)
	}
	cfg, err := app.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return harness.StartConfig(t, cfg)
}

// Samplers of real clients do what a file says, through a collector and through an agent, and change when it changes.
func TestSamplersFollowTheFile(t *testing.T) {
	followTheFile(t, func(atCollector, atAgent string) []samplingClient {
		return []samplingClient{
			jaegerSamplingClient(t, "jaeger-client-go at the collector", atCollector), jaegerSamplingClient(t, "jaeger-client-go at the agent", atAgent),
			otelSamplingClient(t, "jaegerremote at the collector", atCollector), otelSamplingClient(t, "jaegerremote at the agent", atAgent),
		}
	})
}

// followTheFile changes a file twice, and sees that clients of a collector with that file and of an agent of it change with it.
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
	collector := harness.Start(t, "extensions::sampling::file::path="+file, "extensions::sampling::file::reload_interval=10ms")
	native := pipeline.ID{Type: "native"}
	agent := startAgentOf(t, collector.App.Addr(native, "grpc"), "extensions::sampling::remote::fresh_for=1ms")
	clients := connect("http://"+collector.App.Addr(native, "http")+"/api/sampling",
		"http://"+agent.App.Addr(pipeline.ID{Type: "sampling"}, "http")+"/sampling")
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
		checkLimit(t, c, 7)
	}
	checkExplained(t, collector, file)
}

// checkLimit begins traces for a while, once all that the client had saved before is spent: as many are sampled as the limit allows, and one
// more at each end. A process that is given no time may sample fewer, but not much fewer.
func checkLimit(t *testing.T, c samplingClient, limit float64) {
	t.Helper()
	for sampled := 1; sampled > 0; {
		sampled, _ = c.begin("GET /", 1)
	}
	n, begin := 0, time.Now()
	for time.Since(begin) < 2*time.Second {
		sampled, _ := c.begin("GET /", 1)
		n += sampled
		time.Sleep(100 * time.Microsecond)
	}
	seconds := time.Since(begin).Seconds()
	if least, most := limit*seconds/2, limit*seconds+2; float64(n) < least || float64(n) > most {
		t.Errorf("%s: %d traces are sampled, want from %v to %v", c.name, n, least, most)
	}
}

// checkExplained asks the collector why, as an operator does.
func checkExplained(t *testing.T, collector *harness.Program, file string) {
	t.Helper()
	var stdout, stderr strings.Builder
	args := []string{"sampling", "explain", "cart", "--url", "http://" + collector.App.Addr(pipeline.ID{Type: "native"}, "http")}
	code := app.Run(t.Context(), args, &stdout, &stderr, tracing.Components(), tracing.Presets()...)
	for _, want := range []string{"cart: ratelimiting 7\n", "file " + file + ":1\n", "over http", "over grpc", "one of each process"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is missing, exit code %d: %s%s", want, code, stdout.String(), stderr.String())
		}
	}
}
