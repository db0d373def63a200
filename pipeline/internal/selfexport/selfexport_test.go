package selfexport

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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
		p := newSimple(t, OTLP{Protocol: protocol, Endpoint: "http://localhost:1", Timeout: 50, Compression: compressionGzip},
			Options{Exported: func(_ int, err error) { reported = err }})
		_, span := p.Tracer("test").Start(t.Context(), "work")
		span.End()
		if reported == nil {
			t.Errorf("%s: export succeeded", protocol)
		}
	}
}

// TestRedirect checks that spans are not sent to the address that an endpoint redirects to.
func TestRedirect(t *testing.T) {
	to, _, requests := serve(t, false, http.StatusOK)
	s := httptest.NewServer(http.RedirectHandler(to, http.StatusFound))
	defer s.Close()
	var reported error
	p := newSimple(t, OTLP{Protocol: protocolHTTP, Endpoint: s.URL, Timeout: 50, Compression: compressionGzip},
		Options{Exported: func(_ int, err error) { reported = err }})
	_, span := p.Tracer("test").Start(t.Context(), "work")
	span.End()
	if reported == nil {
		t.Error("a redirected export succeeded")
	}
	select {
	case got := <-requests:
		t.Errorf("redirected request: %s", got)
	default:
	}
}

// newSimple returns a provider that exports each span immediately.
func newSimple(t *testing.T, o OTLP, more Options) *sdktrace.TracerProvider {
	t.Helper()
	c := DefaultConfig()
	c.Processors = []Processor{{Simple: pipeline.Present(Simple{Exporter{OTLP: pipeline.Present(o)}})}}
	p, _, err := New(t.Context(), &c, more)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// serve starts a server for OTLP over HTTP or gRPC, with or without TLS, that answers with a
// status. It sends a description of the first request. pem is its certificate.
func serve(t *testing.T, secure bool, status int) (url string, pem []byte, requests <-chan string) {
	t.Helper()
	got := make(chan string, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		select {
		case got <- fmt.Sprintf("TLS %t %s %s encoding=%q custom=%q", r.TLS != nil, r.URL.Path, h.Get("Content-Type"),
			h.Get("Content-Encoding")+h.Get("Grpc-Encoding"), h.Get("Custom")):
		default: // a retry
		}
		w.Header().Set("Content-Type", h.Get("Content-Type"))
		w.WriteHeader(status)
		if h.Get("Content-Type") == "application/grpc" {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
			w.Write(make([]byte, 5)) //nolint:errcheck // an empty answer
		}
	}))
	t.Cleanup(s.Close)
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	if !secure {
		s.Start()
		return s.URL, nil, got
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	return s.URL, pemOf(s.Certificate()), got
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// TestEnvironment checks that variables of the SDK change nothing about a configured exporter.
func TestEnvironment(t *testing.T) {
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pemOf(other.Certificate()), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(protocol string, secure bool, want string) {
		t.Helper()
		url, certificate, requests := serve(t, secure, http.StatusOK)
		o := OTLP{Protocol: protocol, Endpoint: url, Headers: []Header{{"custom", "secret"}}}
		if secure {
			o.Certificate = "ca.pem"
		}
		p := newSimple(t, o, Options{ReadFile: func(string) ([]byte, error) { return certificate, nil }, Exported: func(_ int, err error) {
			if err != nil {
				t.Errorf("%s: %v", url, err)
			}
		}})
		_, span := p.Tracer("test").Start(t.Context(), "work")
		span.End()
		select {
		case got := <-requests:
			if got != want {
				t.Errorf("request %s, want %s", got, want)
			}
		default:
			t.Errorf("%s %s: no request", protocol, url)
		}
	}
	const overGRPC = "/opentelemetry.proto.collector.trace.v1.TraceService/Export application/grpc"
	const overHTTP = "/v1/traces application/x-protobuf"
	for _, scheme := range []string{"http", "https"} {
		for name, value := range map[string]string{"ENDPOINT": scheme + "://localhost:1/other", "INSECURE": fmt.Sprint(scheme == "http"),
			"COMPRESSION": "gzip", "PROTOCOL": "http/json", "CERTIFICATE": authority, "HEADERS": "custom=other", "TIMEOUT": "1"} {
			t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
		}
		f(protocolGRPC, false, "TLS false "+overGRPC+` encoding="identity" custom="secret"`)
		f(protocolGRPC, true, "TLS true "+overGRPC+` encoding="identity" custom="secret"`)
		f(protocolHTTP, false, "TLS false "+overHTTP+` encoding="" custom="secret"`)
		f(protocolHTTP, true, "TLS true "+overHTTP+` encoding="" custom="secret"`)
	}
}

// TestTimeout checks that the timeout limits a request with its retries.
func TestTimeout(t *testing.T) {
	url, _, _ := serve(t, false, http.StatusServiceUnavailable)
	var reported error
	p := newSimple(t, OTLP{Protocol: protocolHTTP, Endpoint: url, Timeout: 200}, Options{Exported: func(_ int, err error) { reported = err }})
	_, span := p.Tracer("test").Start(t.Context(), "work")
	span.End()
	if !errors.Is(reported, context.DeadlineExceeded) {
		t.Errorf("error %v", reported)
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
		if got := fmt.Sprint(slices.Sorted(slices.Values(c.propagator().Fields()))); got != want {
			t.Errorf("%v: headers %s", formats, got)
		}
	}
	f("[]")
	f("[traceparent tracestate]", "tracecontext")
	f("[b3]", "b3")
}

// TestLimits checks that limits below 0 are refused.
func TestLimits(t *testing.T) {
	if err := (&Limits{EventCount: -1}).Validate(); err == nil {
		t.Error("accepted -1 events")
	}
	if err := (&Limits{}).Validate(); err != nil {
		t.Error(err)
	}
}
