package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// HTTPConfig are the keys of HTTP connections outwards, named as in the OpenTelemetry Collector where it has them. `timeout` is one of
// [pipeline.Delivery].
type HTTPConfig struct {
	Endpoint            string                     `yaml:"endpoint" doc:"URL of the server, below which its paths are: http://localhost:4318."`
	TLS                 TLSConfig                  `yaml:"tls" doc:"How connections to an https URL are secured."`
	Compression         string                     `yaml:"compression" doc:"gzip, zstd, snappy or none."`
	Headers             map[string]pipeline.Secret `yaml:"headers" doc:"Headers to send with every request; values are never shown."`
	Auth                AuthConfig                 `yaml:"auth" doc:"How requests prove who sends them."`
	ConnectTimeout      pipeline.Duration          `yaml:"connect_timeout" doc:"How long one attempt to connect may take, TLS included."`
	MaxConnsPerHost     int                        `yaml:"max_conns_per_host" doc:"How many connections may be open; further requests wait."`
	MaxIdleConns        int                        `yaml:"max_idle_conns" doc:"How many connections without a request are kept."`
	MaxIdleConnsPerHost int                        `yaml:"max_idle_conns_per_host" doc:"How many connections without a request are kept per server."`
	IdleConnTimeout     pipeline.Duration          `yaml:"idle_conn_timeout" doc:"How long a connection without a request is kept; 0: without end."`
	DisableKeepAlives   bool                       `yaml:"disable_keep_alives" doc:"Use every connection for one request only."`
	ReadIdleTimeout     pipeline.Duration          `yaml:"http2_read_idle_timeout" doc:"Ping an HTTP/2 connection after so long without any sign of the server; 0: never."`
	PingTimeout         pipeline.Duration          `yaml:"http2_ping_timeout" doc:"Close the connection when a ping is not answered for so long."`
	ReadBufferSize      pipeline.ByteSize          `yaml:"read_buffer_size" doc:"Buffer for reading, per connection."`
	WriteBufferSize     pipeline.ByteSize          `yaml:"write_buffer_size" doc:"Buffer for writing, per connection."`
}

// DefaultHTTPConfig returns the defaults: gzip, and up to 100 connections. There is no endpoint.
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

// Validate reports values that cannot work. That there is an endpoint is for the owner to check: it may have URLs of its own.
func (c *HTTPConfig) Validate() error {
	errs := []error{validateCompression(c.Compression), validateHeaders(c.Headers, c.Auth), validateConnectTimeout(c.ConnectTimeout)}
	if c.Endpoint != "" {
		errs = append(errs, ValidateURL("endpoint", c.Endpoint))
	}
	if c.ReadIdleTimeout > 0 && c.PingTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("http2_ping_timeout", "must be above 0, or every ping would be one too late"))
	}
	checkRange := func(key string, v, least, most int64) {
		if v < least || v > most {
			errs = append(errs, pipeline.BadKey(key, "must be from %d to %d, not %d", least, most, v))
		}
	}
	checkRange("max_conns_per_host", int64(c.MaxConnsPerHost), 1, math.MaxInt32)
	checkRange("max_idle_conns", int64(c.MaxIdleConns), 1, math.MaxInt32)
	checkRange("max_idle_conns_per_host", int64(c.MaxIdleConnsPerHost), 1, math.MaxInt32)
	checkRange("read_buffer_size", int64(c.ReadBufferSize), 0, maxBuffer)
	checkRange("write_buffer_size", int64(c.WriteBufferSize), 0, maxBuffer)
	return errors.Join(errs...)
}

// ValidateURL checks the value of a key that holds an http or https URL.
func ValidateURL(key, value string) error {
	u, err := url.Parse(value)
	switch {
	case err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "":
		return pipeline.BadKey(key, "%q is no URL; write the scheme too, for example http://localhost:4318", value)
	case u.User != nil:
		return pipeline.BadKey(key, "a URL must not hold a password, which would be shown; send it by headers")
	}
	return nil
}

// HTTP makes requests to servers. Redirects are not followed, since headers may hold secrets.
type HTTP struct {
	set       pipeline.Settings
	cfg       HTTPConfig
	tls       *certs.Source
	headers   headers
	bodies    *bodies
	transport *http.Transport
}

var (
	_ pipeline.Starter = (*HTTP)(nil)
	_ pipeline.Stopper = (*HTTP)(nil)
)

// NewHTTP makes a client that opens nothing before its first request.
func NewHTTP(set pipeline.Settings, cfg HTTPConfig) (*HTTP, error) {
	source, err := cfg.TLS.source(set, "h2", "http/1.1")
	if err != nil {
		return nil, err
	}
	h := &HTTP{set: set, cfg: cfg, tls: source, headers: newHeaders(set, cfg.Headers, cfg.Auth), bodies: newBodies(cfg.Compression)}
	h.transport = &http.Transport{
		DialContext:            h.dial,
		DialTLSContext:         h.dialTLS,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // of answers, which are small
		DisableKeepAlives:      cfg.DisableKeepAlives,
		MaxConnsPerHost:        cfg.MaxConnsPerHost,
		MaxIdleConns:           cfg.MaxIdleConns,
		MaxIdleConnsPerHost:    cfg.MaxIdleConnsPerHost,
		IdleConnTimeout:        cfg.IdleConnTimeout.Std(),
		ReadBufferSize:         int(cfg.ReadBufferSize),
		WriteBufferSize:        int(cfg.WriteBufferSize),
		MaxResponseHeaderBytes: maxAnswerHeaders,
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
	if h.headers.token != nil && strings.HasPrefix(h.cfg.Endpoint, "http://") {
		h.set.Logger.Warn("auth::bearer_token_file is sent in plain text, because endpoint is an http URL")
	}
	return nil
}

// Stop closes the connections that are not in use; no Post may be running.
func (h *HTTP) Stop(context.Context) error {
	h.transport.CloseIdleConnections()
	return nil
}

// dial bounds the attempt by itself: a connection may be made for a request that has ended since.
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
	cfg := h.tls.Config()
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			raw.Close() //nolint:errcheck // the error that matters is returned
			return nil, err
		}
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close() //nolint:errcheck // the error that matters is returned
		return nil, err
	}
	return conn, nil
}

// Answer is what a server answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // no more than MaxAnswer bytes of it
}

// Post sends the segments, one after the other, as the body of a request, compressed as configured. header is added to the configured
// headers; its keys are in canonical form. An answer of any status is no error.
func (h *HTTP) Post(ctx context.Context, url string, header http.Header, segments [][]byte) (Answer, error) {
	body, err := h.bodies.compress(segments)
	if err != nil {
		return Answer{}, fmt.Errorf("compressing the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return Answer{}, err
	}
	h.setHeaders(req, header)
	if n := length(body); n > 0 {
		req.ContentLength = int64(n)
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(newReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	resp, err := h.transport.RoundTrip(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // what matters was read
	answer := Answer{Status: resp.StatusCode, Header: resp.Header}
	if answer.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer)); err != nil {
		return Answer{}, fmt.Errorf("reading the answer (%s): %w", resp.Status, err)
	}
	return answer, nil
}

func newReader(segments [][]byte) io.Reader {
	readers := make([]io.Reader, len(segments))
	for i, s := range segments {
		readers[i] = bytes.NewReader(s)
	}
	return io.MultiReader(readers...)
}

func (h *HTTP) setHeaders(req *http.Request, own http.Header) {
	fixed := h.headers.now()
	for i := 0; i < len(fixed); i += 2 {
		req.Header.Set(fixed[i], fixed[i+1])
	}
	req.Header.Set("User-Agent", userAgent(h.set))
	if h.bodies.name != None {
		req.Header.Set("Content-Encoding", h.bodies.name)
	}
	for k, v := range own {
		req.Header[k] = v
	}
}
