package selfexport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"

	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// newExporter returns the configured exporter.
func (e *Exporter) newExporter(ctx context.Context, o *Options) (sdktrace.SpanExporter, error) {
	otlp, on := e.OTLP.Get()
	if !on {
		return stdouttrace.New(stdouttrace.WithWriter(o.Console), stdouttrace.WithPrettyPrint())
	}
	u, err := otlp.url()
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	headers, err := otlp.headers()
	if err != nil {
		return nil, fmt.Errorf("headers_list: %w", err)
	}
	headers[selftrace.OwnHeader] = "true"
	config, err := otlp.tlsConfig(o.ReadFile)
	if err != nil {
		return nil, err
	}
	if otlp.Protocol == protocolGRPC {
		return otlp.overGRPC(ctx, u, headers, config)
	}
	return otlp.overHTTP(ctx, u, headers, config)
}

// The options of both exporters override everything that the SDK would read from variables like
// OTEL_EXPORTER_OTLP_ENDPOINT.

func (c *OTLP) overGRPC(ctx context.Context, u *url.URL, headers map[string]string, config *tls.Config) (sdktrace.SpanExporter, error) {
	security := insecure.NewCredentials()
	if u.Scheme == "https" {
		security = credentials.NewTLS(config)
	}
	compressor := encoding.Identity
	if c.Compression == compressionGzip {
		compressor = gzip.Name
	}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(u.String()), otlptracegrpc.WithHeaders(headers),
		otlptracegrpc.WithTLSCredentials(security), otlptracegrpc.WithTimeout(c.timeout()),
		otlptracegrpc.WithDialOption(grpc.WithDefaultCallOptions(grpc.UseCompressor(compressor))))
}

func (c *OTLP) overHTTP(ctx context.Context, u *url.URL, headers map[string]string, config *tls.Config) (sdktrace.SpanExporter, error) {
	to := *u
	if to.Path == "" || to.Path == "/" {
		to.Path = "/v1/traces"
	}
	compression := otlptracehttp.NoCompression
	if c.Compression == compressionGzip {
		compression = otlptracehttp.GzipCompression
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	// A redirect would send the headers, which may hold secrets, to another address, and after a
	// 302 no spans.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to.String()), otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithTLSClientConfig(nil), // transport has the settings
		otlptracehttp.WithCompression(compression), otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf))
	if err != nil {
		return nil, err
	}
	return &overHTTP{e, transport, c.timeout()}, nil
}

// overHTTP is an exporter over HTTP that limits the time of a request with its retries, and closes
// its connections.
type overHTTP struct {
	sdktrace.SpanExporter
	transport *http.Transport
	timeout   time.Duration
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *overHTTP) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	return e.SpanExporter.ExportSpans(ctx, spans)
}

// Shutdown implements sdktrace.SpanExporter.
func (e *overHTTP) Shutdown(ctx context.Context) error {
	defer e.transport.CloseIdleConnections()
	return e.SpanExporter.Shutdown(ctx)
}

// defaultTimeout is the maximum duration of a request in milliseconds.
const defaultTimeout = 10_000

func (c *OTLP) timeout() time.Duration { return milliseconds(orDefault(c.Timeout, defaultTimeout)) }

// tlsConfig returns the TLS settings of a connection. It reads the files once.
func (c *OTLP) tlsConfig(readFile func(string) ([]byte, error)) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Certificate != "" {
		pem, err := readFile(c.Certificate)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificate: %s contains no certificate in PEM format", c.Certificate)
		}
	}
	if c.ClientCertificate == "" {
		return config, nil
	}
	cert, err := readFile(c.ClientCertificate)
	if err != nil {
		return nil, fmt.Errorf("client_certificate: %w", err)
	}
	key, err := readFile(c.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("client_key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("client_certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// counted is an exporter that reports each export, so that the SDK does not write errors to
// standard error.
type counted struct {
	sdktrace.SpanExporter
	exported func(spans int, err error)
}

// ExportSpans implements sdktrace.SpanExporter. It never fails.
func (e *counted) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.exported(len(spans), e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}
