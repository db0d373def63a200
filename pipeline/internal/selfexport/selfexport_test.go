package selfexport

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tracing-backend/tracing/pipeline"
)

func on(s SamplerKinds) pipeline.Optional[FlatSampler] { return pipeline.Present(FlatSampler{s}) }

// TestSampler checks the decisions for requests without a parent, with a sampled one and with one
// that is not.
func TestSampler(t *testing.T) {
	always := SamplerKinds{AlwaysOn: pipeline.Present(struct{}{})}
	never := SamplerKinds{AlwaysOff: pipeline.Present(struct{}{})}
	none := SamplerKinds{TraceIDRatioBased: pipeline.Present(Ratio{0})}
	f := func(c *Config, root, sampled, notSampled bool) {
		t.Helper()
		for i, want := range []bool{root, sampled, notSampled} {
			ctx := t.Context()
			if i > 0 {
				ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
					TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.TraceFlags(2 - i), Remote: true}))
			}
			result := c.sampler().ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: trace.TraceID{1}})
			if got := result.Decision == sdktrace.RecordAndSample; got != want {
				t.Errorf("%s, case %d: sampled %t", c.sampler().Description(), i, got)
			}
		}
	}
	with := func(s Sampler) *Config { return &Config{Sampler: pipeline.Present(s)} }
	f(&Config{}, true, true, false)
	f(with(Sampler{SamplerKinds: always}), true, true, true)
	f(with(Sampler{SamplerKinds: never}), false, false, false)
	f(with(Sampler{SamplerKinds: none}), false, false, false)
	f(with(Sampler{ParentBased: pipeline.Present(ParentBased{})}), true, true, false)
	f(with(Sampler{ParentBased: pipeline.Present(ParentBased{Root: on(none)})}), false, true, false)
	f(with(Sampler{ParentBased: pipeline.Present(ParentBased{Root: on(never), RemoteParentSampled: on(never),
		RemoteParentNotSampled: on(always)})}), false, false, true)
}

// TestConsole exports a span to standard output, with the attributes of the process.
func TestConsole(t *testing.T) {
	var out bytes.Buffer
	c := DefaultConfig()
	c.Processors = []Processor{{Batch: pipeline.Present(Batch{Exporter: Exporter{Console: pipeline.Present(struct{}{})}})}}
	exported := 0
	p, _, err := New(t.Context(), &c, Options{Resource: map[string]string{"service.name": "backend", "service.version": ""},
		Console: &out, Exported: func(n int, err error) {
			if exported += n; err != nil {
				t.Error(err)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, span := p.Tracer("test").Start(t.Context(), "work")
	span.SetAttributes(attribute.String("key", "value"))
	span.End()
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Name": "work"`, `"Key": "service.name"`, `"Value": "backend"`, `"Value": "value"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, &out)
		}
	}
	if exported != 1 || strings.Contains(out.String(), "service.version") {
		t.Errorf("exported %d spans: %s", exported, &out)
	}
}

// TestUnreachable checks that a destination that is not there is reported and does not fail.
func TestUnreachable(t *testing.T) {
	for _, protocol := range []string{protocolGRPC, protocolHTTP} {
		var reported error
		c := DefaultConfig()
		c.Processors = []Processor{{Simple: pipeline.Present(Simple{Exporter{OTLP: pipeline.Present(OTLP{
			Protocol: protocol, Endpoint: "http://localhost:1", Timeout: 50, Compression: compressionGzip})}})}}
		p, _, err := New(t.Context(), &c, Options{Exported: func(_ int, err error) { reported = err }})
		if err != nil {
			t.Fatal(err)
		}
		_, span := p.Tracer("test").Start(t.Context(), "work")
		span.End()
		if reported == nil {
			t.Errorf("%s: export succeeded", protocol)
		}
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestMissingFiles checks the errors of certificates that cannot be read.
func TestMissingFiles(t *testing.T) {
	f := func(want string, o OTLP) {
		t.Helper()
		o.Protocol, o.Endpoint = protocolHTTP, "https://localhost:1"
		c := DefaultConfig()
		c.Processors = []Processor{{Simple: pipeline.Present(Simple{Exporter{OTLP: pipeline.Present(o)}})}}
		_, _, err := New(t.Context(), &c, Options{ReadFile: func(name string) ([]byte, error) {
			if name == "missing" {
				return nil, errors.New("no such file")
			}
			return []byte("text"), nil
		}})
		if fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f("processors::0: certificate: no such file", OTLP{Certificate: "missing"})
	f("processors::0: certificate: ca.pem contains no certificate in PEM format", OTLP{Certificate: "ca.pem"})
	f("processors::0: client_certificate: no such file", OTLP{ClientCertificate: "missing", ClientKey: "k"})
	f("processors::0: client_key: no such file", OTLP{ClientCertificate: "c", ClientKey: "missing"})
}

func TestHeaders(t *testing.T) {
	o := OTLP{HeadersList: "a=1, b=x%20y,", Headers: []Header{{"a", "2"}}}
	got, err := o.headers()
	if fmt.Sprint(got) != "map[a:2 b:x y]" || err != nil {
		t.Errorf("headers %v, %v", got, err)
	}
}

// TestPropagators checks that every format is read and written.
func TestPropagators(t *testing.T) {
	f := func(want string, formats ...string) {
		t.Helper()
		c := Config{Propagators: formats}
		if got := fmt.Sprint(c.propagator().Fields()); got != want {
			t.Errorf("%v: headers %s", formats, got)
		}
	}
	f("[]")
	f("[traceparent tracestate]", "tracecontext")
	f("[b3]", "b3")
}
