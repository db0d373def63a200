package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// HTTPConfig is the configuration of an HTTP client. Keys that also exist in the OpenTelemetry
// Collector have the same names. `timeout` is part of [pipeline.Delivery] instead.
type HTTPConfig struct {
	Endpoint            string                        `yaml:"endpoint" doc:"Base URL of the server, for example http://localhost:4318."`
	TLS                 TLSConfig                     `yaml:"tls" doc:"TLS settings for https URLs."`
	Compression         string                        `yaml:"compression" doc:"Compression of requests: gzip, zstd, snappy or none."`
	Headers             map[string]pipeline.Secret    `yaml:"headers" doc:"Headers of every request."`
	Auth                pipeline.Optional[AuthConfig] `yaml:"auth" doc:"Authentication of requests."`
	ConnectTimeout      pipeline.Duration             `yaml:"connect_timeout" doc:"Maximum time for one connection attempt, with TLS handshake."`
	MaxConnsPerHost     int                           `yaml:"max_conns_per_host" doc:"Maximum number of open connections per server. Further requests wait."`
	MaxIdleConns        int                           `yaml:"max_idle_conns" doc:"Maximum number of idle connections, for all servers together."`
	MaxIdleConnsPerHost int                           `yaml:"max_idle_conns_per_host" doc:"Maximum number of idle connections per server."`
	IdleConnTimeout     pipeline.Duration             `yaml:"idle_conn_timeout" doc:"Time after which an idle connection is closed. 0 disables the limit."`
	DisableKeepAlives   bool                          `yaml:"disable_keep_alives" doc:"Whether to use a new connection for every request."`
	ReadIdleTimeout     pipeline.Duration             `yaml:"http2_read_idle_timeout" doc:"Time without activity on an HTTP/2 connection after which the client pings the server. 0 disables pings."`
	PingTimeout         pipeline.Duration             `yaml:"http2_ping_timeout" doc:"Time to wait for the response to a ping before the connection is closed."`
	ReadBufferSize      pipeline.ByteSize             `yaml:"read_buffer_size" doc:"Size of the read buffer per connection."`
	WriteBufferSize     pipeline.ByteSize             `yaml:"write_buffer_size" doc:"Size of the write buffer per connection."`
}

// DefaultHTTPConfig returns a config with gzip and up to 100 connections, and without an endpoint.
func DefaultHTTPConfig() HTTPConfig {
	return HTTPConfig{
		TLS:                 defaultTLS(),
		Compression:         "gzip",
		ConnectTimeout:      pipeline.Duration(10 * time.Second),
		MaxConnsPerHost:     100,
		MaxIdleConns:        100,
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     pipeline.Duration(90 * time.Second),
		ReadIdleTimeout:     pipeline.Duration(10 * time.Second),
		PingTimeout:         pipeline.Duration(10 * time.Second),
		ReadBufferSize:      4 << 10,
		WriteBufferSize:     64 << 10,
	}
}

// Validate reports invalid values. It accepts an empty endpoint, because the component may have
// other keys for URLs.
func (c *HTTPConfig) Validate() error {
	errs := []error{validateCompression(c.Compression), validateHeaders(c.Headers, c.Auth), validateConnectTimeout(c.ConnectTimeout)}
	if c.Endpoint != "" {
		errs = append(errs, ValidateURL("endpoint", c.Endpoint))
	}
	if c.ReadIdleTimeout > 0 && c.PingTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("http2_ping_timeout", "must be above 0 while pings are enabled"))
	}
	checkRange := func(key string, v, lowest, highest int64) {
		if v < lowest || v > highest {
			errs = append(errs, pipeline.BadKey(key, "must be from %d to %d, not %d", lowest, highest, v))
		}
	}
	checkRange("max_conns_per_host", int64(c.MaxConnsPerHost), 1, math.MaxInt32)
	checkRange("max_idle_conns", int64(c.MaxIdleConns), 1, math.MaxInt32)
	checkRange("max_idle_conns_per_host", int64(c.MaxIdleConnsPerHost), 1, math.MaxInt32)
	checkRange("read_buffer_size", int64(c.ReadBufferSize), 0, maxBuffer)
	checkRange("write_buffer_size", int64(c.WriteBufferSize), 0, maxBuffer)
	return errors.Join(errs...)
}

// ValidateURL checks that the value of key is an http or https URL without a password.
func ValidateURL(key, value string) error {
	u, err := url.Parse(value)
	switch {
	case err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "":
		return pipeline.BadKey(key, "%q is not a valid URL; write an http or https URL, for example http://localhost:4318", pipeline.MaskURLs(value))
	case u.User != nil:
		return pipeline.BadKey(key, "must not contain a password, because URLs are logged; use headers instead")
	}
	return nil
}

// HTTP is an HTTP client. It does not follow redirects, because headers may contain secrets. It is
// safe for concurrent use after Start.
type HTTP struct {
	set        pipeline.Settings
	cfg        HTTPConfig
	tls        *certs.TLSSource
	headers    headers
	compressor *bodyCompressor
	transport  *http.Transport
}

var (
	_ pipeline.Starter = (*HTTP)(nil)
	_ pipeline.Stopper = (*HTTP)(nil)
)

// NewHTTP returns a client. It opens no connection before the first request.
func NewHTTP(set pipeline.Settings, cfg HTTPConfig) (*HTTP, error) {
	source, err := cfg.TLS.source(set, "h2", "http/1.1")
	if err != nil {
		return nil, err
	}
	h := &HTTP{set: set, cfg: cfg, tls: source, headers: newHeaders(set, cfg.Headers, cfg.Auth),
		compressor: newBodyCompressor(cfg.Compression)}
	h.transport = &http.Transport{
		DialContext:            h.dial,
		DialTLSContext:         h.dialTLS,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // of responses, which are small
		DisableKeepAlives:      cfg.DisableKeepAlives,
		MaxConnsPerHost:        cfg.MaxConnsPerHost,
		MaxIdleConns:           cfg.MaxIdleConns,
		MaxIdleConnsPerHost:    cfg.MaxIdleConnsPerHost,
		IdleConnTimeout:        cfg.IdleConnTimeout.Std(),
		ReadBufferSize:         int(cfg.ReadBufferSize),
		WriteBufferSize:        int(cfg.WriteBufferSize),
		MaxResponseHeaderBytes: maxResponseHeaders,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: cfg.ReadIdleTimeout.Std(), PingTimeout: cfg.PingTimeout.Std()},
	}
	return h, nil
}

// Start reads certificates and tokens.
func (h *HTTP) Start(context.Context) error {
	if err := h.headers.load(); err != nil {
		return err
	}
	if err := h.tls.Load(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if h.headers.secret && strings.HasPrefix(h.cfg.Endpoint, "http://") {
		h.set.Logger.Warn("sending the credentials of auth in plaintext, because endpoint is an http URL")
	}
	return nil
}

// Stop closes idle connections. No request may be active.
func (h *HTTP) Stop(context.Context) error {
	h.transport.CloseIdleConnections()
	return nil
}

// dial applies connect_timeout itself, because a connection attempt may outlive the request that
// started it.
func (h *HTTP) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.ConnectTimeout.Std())
	defer cancel()
	return h.set.Env.Dial(ctx, network, addr)
}

func (h *HTTP) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.ConnectTimeout.Std())
	defer cancel()
	raw, err := h.set.Env.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return (&TLS{h.tls}).Client(ctx, raw, addr)
}

// Response is the response of a server.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Post sends the joined chunks as the body of a request, compressed as configured. header is added
// to the configured headers and overrides them; its keys must be in canonical form. A response with
// any status is returned without an error. Its body is truncated to MaxResponse bytes.
func (h *HTTP) Post(ctx context.Context, url string, header http.Header, chunks [][]byte) (Response, error) {
	body, err := h.compressor.compress(chunks)
	if err != nil {
		return Response{}, fmt.Errorf("compressing request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return Response{}, err
	}
	h.setHeaders(req, header)
	if n := totalSize(body); n > 0 {
		req.ContentLength = int64(n)
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(newReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	resp, err := h.roundTrip(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // the body was read
	response := Response{Status: resp.StatusCode, Header: resp.Header}
	if response.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxResponse)); err != nil {
		return Response{}, fmt.Errorf("reading response (%s): %w", resp.Status, err)
	}
	return response, nil
}

// Get requests a resource with the configured headers. A response with any status is returned
// without an error, unless its body exceeds maxBody bytes.
func (h *HTTP) Get(ctx context.Context, url string, maxBody int64) (Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Response{}, err
	}
	h.setHeaders(req, nil)
	req.Header.Del("Content-Encoding") // the request has no body
	resp, err := h.roundTrip(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // the body was read
	response := Response{Status: resp.StatusCode, Header: resp.Header}
	if response.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1)); err != nil {
		return Response{}, fmt.Errorf("reading response (%s): %w", resp.Status, err)
	}
	if int64(len(response.Body)) > maxBody {
		return Response{}, fmt.Errorf("response (%s) is larger than %d bytes", resp.Status, maxBody)
	}
	return response, nil
}

// MaxRetryAfter is the maximum delay that a server can request.
const MaxRetryAfter = 10 * time.Minute

// RetryAfter returns the delay in the Retry-After header of a response, at most 10 minutes, and
// whether there is one. The header contains seconds or a date.
func RetryAfter(header http.Header, now time.Time) (after time.Duration, ok bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(MaxRetryAfter/time.Second))) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), MaxRetryAfter), true
	}
	return 0, false
}

func newReader(chunks [][]byte) io.Reader {
	readers := make([]io.Reader, len(chunks))
	for i, c := range chunks {
		readers[i] = bytes.NewReader(c)
	}
	return io.MultiReader(readers...)
}

// setHeaders sets the configured headers, then the additional ones.
func (h *HTTP) setHeaders(req *http.Request, additional http.Header) {
	configured := h.headers.current()
	for i := 0; i < len(configured); i += 2 {
		req.Header.Set(configured[i], configured[i+1])
	}
	req.Header.Set("User-Agent", userAgent(h.set))
	if h.compressor.name != CompressionNone {
		req.Header.Set("Content-Encoding", h.compressor.name)
	}
	for k, v := range additional {
		req.Header[k] = v
	}
}

// roundTrip sends a request and returns the head of the response. If self-tracing is on, it records
// the request as a span and propagates the trace context. The span fails on an error and on a
// status of 400 or above.
func (h *HTTP) roundTrip(req *http.Request) (*http.Response, error) {
	ctx, span := h.set.Tracer.StartClient(req.Context(), req.Method)
	h.set.Tracer.Inject(ctx, propagation.HeaderCarrier(req.Header))
	resp, err := h.transport.RoundTrip(req)
	failure := err
	if err == nil && span.IsRecording() {
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest {
			failure = errors.New(http.StatusText(resp.StatusCode))
		}
	}
	selftrace.End(span, failure)
	return resp, err
}
