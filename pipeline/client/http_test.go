package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/internal/certs/certstest"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// receivedRequest is a request as received by the server.
type receivedRequest struct {
	*http.Request
	body []byte
}

// serveHTTP starts a server that records requests and responds with status 200.
func serveHTTP(t *testing.T) (*httptest.Server, <-chan receivedRequest) {
	t.Helper()
	got := make(chan receivedRequest, 16)
	srv := httptest.NewServer(record(t, got))
	t.Cleanup(srv.Close)
	return srv, got
}

func record(t *testing.T, got chan receivedRequest) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		got <- receivedRequest{r, b}
	}
}

func httpConfig(url string) client.HTTPConfig {
	c := client.DefaultHTTPConfig()
	c.Endpoint = url
	return c
}

func (fix *fixture) http(cfg client.HTTPConfig) *client.HTTP {
	fix.t.Helper()
	if err := cfg.Validate(); err != nil {
		fix.t.Fatal(err)
	}
	h, err := client.NewHTTP(fix.set, cfg)
	if err != nil {
		fix.t.Fatal(err)
	}
	fix.start(h)
	return h
}

func chunks() [][]byte {
	return [][]byte{bytes.Repeat([]byte("first "), 10_000), nil, bytes.Repeat([]byte("second "), 10_000)}
}

func TestHTTPJoinsChunks(t *testing.T) {
	fix := newFixture(t)
	srv, got := serveHTTP(t)
	want := bytes.Join(chunks(), nil)
	f := func(compression string, decode func([]byte) ([]byte, error)) {
		t.Helper()
		cfg := httpConfig(srv.URL)
		cfg.Compression = compression
		if _, err := fix.http(cfg).Post(t.Context(), srv.URL+"/x", nil, chunks()); err != nil {
			t.Errorf("%s: %v", compression, err)
			return
		}
		r := <-got
		b, err := decode(r.body)
		if err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: body of %d bytes decodes to %d, error %v; want %d", compression, len(r.body), len(b), err, len(want))
		}
		if r.Header.Get("Content-Encoding") != strings.TrimSuffix(compression, "none") ||
			r.ContentLength != int64(len(r.body)) || r.URL.Path != "/x" {
			t.Errorf("%s: sent to %s as %q, content length %d", compression, r.URL, r.Header.Get("Content-Encoding"), r.ContentLength)
		}
	}
	plain := func(b []byte) ([]byte, error) { return b, nil }
	f("none", plain)
	f("", plain)
	f("snappy", func(b []byte) ([]byte, error) { return snappy.Decode(nil, b) })
	f("gzip", func(b []byte) ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	})
	f("zstd", func(b []byte) ([]byte, error) {
		r, err := zstd.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	})
}

func TestHTTPReusesCompressorsAndConnections(t *testing.T) {
	fix := newFixture(t)
	srv, got := serveHTTP(t)
	h := fix.http(httpConfig(srv.URL))
	peers := map[string]bool{}
	for range 3 {
		if _, err := h.Post(t.Context(), srv.URL, nil, chunks()); err != nil {
			t.Fatal(err)
		}
		r := <-got
		z, err := gzip.NewReader(bytes.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(z); err != nil || !bytes.Equal(b, bytes.Join(chunks(), nil)) {
			t.Errorf("got %d bytes, error %v", len(b), err)
		}
		peers[r.RemoteAddr] = true
	}
	if len(peers) != 1 {
		t.Errorf("3 requests came over %d connections", len(peers))
	}
}

func TestHTTPSendsHeaders(t *testing.T) {
	fix := newFixture(t)
	srv, got := serveHTTP(t)
	cfg := httpConfig(srv.URL)
	cfg.Headers = map[string]pipeline.Secret{"api-key": "k", "content-type": "wrong"}
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "tok")
	cfg.Auth = pipeline.Present(client.AuthConfig{BearerTokenFile: token})
	if _, err := fix.http(cfg).Post(t.Context(), srv.URL, http.Header{"Content-Type": {"right"}}, nil); err != nil {
		t.Fatal(err)
	}
	if fix.logs.FilterMessageSnippet("plaintext").Len() != 1 {
		t.Error("no warning about a token sent in plaintext")
	}
	h := (<-got).Header
	sent := []string{h.Get("Api-Key"), h.Get("Content-Type"), h.Get("Authorization"), h.Get("User-Agent")}
	if want := []string{"k", "right", "Bearer tok", "tracing"}; !slices.Equal(sent, want) {
		t.Errorf("server got %q, want %q", sent, want)
	}
}

func TestHTTPSendsPassword(t *testing.T) {
	fix := newFixture(t)
	srv, got := serveHTTP(t)
	cfg := httpConfig(srv.URL)
	cfg.Auth = pipeline.Present(client.AuthConfig{Username: "ann", Password: "p:w"})
	if _, err := fix.http(cfg).Post(t.Context(), srv.URL, nil, nil); err != nil {
		t.Fatal(err)
	}
	if user, password, ok := (&http.Request{Header: (<-got).Header}).BasicAuth(); !ok || user != "ann" || password != "p:w" {
		t.Errorf("server got %q, %q", user, password)
	}
	if fix.logs.FilterMessageSnippet("plaintext").Len() != 1 {
		t.Error("no warning about a password sent in plaintext")
	}
}

func TestHTTPReloadsCertificates(t *testing.T) {
	fix, ca := newFixture(t), certstest.New(t)
	serverDir, clientDir := t.TempDir(), t.TempDir()
	got := make(chan receivedRequest, 1)
	srv := httptest.NewUnstartedServer(record(t, got))
	srv.EnableHTTP2 = true
	srv.TLS = fix.mutualTLS(ca.Issue(t, serverDir, "server 1"), "h2", "http/1.1")
	srv.StartTLS()
	t.Cleanup(srv.Close)
	files := ca.Issue(t, clientDir, "client 1")
	cfg := httpConfig(srv.URL) // the certificates are also valid for 127.0.0.1
	cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile = files.CA, files.Cert, files.Key
	h := fix.http(cfg)
	expect := func(wantServer, wantClient string) {
		t.Helper()
		_, err := h.Post(t.Context(), srv.URL, nil, chunks())
		for try := 0; err != nil && try < 100; try++ { // until the client notices that its connection is closed
			_, err = h.Post(t.Context(), srv.URL, nil, chunks())
		}
		if err != nil {
			t.Fatalf("%s: %v", wantServer, err)
		}
		r := <-got
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != wantClient || r.ProtoMajor != 2 {
			t.Errorf("server saw %q over %s, want %q", name, r.Proto, wantClient)
		}
	}
	expect("server 1", "client 1")
	ca = certstest.New(t)
	ca.Issue(t, serverDir, "server 2")
	ca.Issue(t, clientDir, "client 2")
	fix.advance()
	expect("server 1", "client 1")
	srv.CloseClientConnections()
	expect("server 2", "client 2")

	cfg.TLS.CAFile = certstest.New(t).Issue(t, t.TempDir(), "stranger").CA
	if _, err := fix.http(cfg).Post(t.Context(), srv.URL, nil, nil); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("error %v", err)
	}
	cfg.TLS.CAFile, cfg.TLS.ServerName = files.CA, "other.test"
	if _, err := fix.http(cfg).Post(t.Context(), srv.URL, nil, nil); err == nil || !strings.Contains(err.Error(), "other.test") {
		t.Errorf("error %v", err)
	}
}

func TestHTTPResponses(t *testing.T) {
	fix := newFixture(t)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(rw, r, "/big", http.StatusTemporaryRedirect)
			return
		}
		rw.Header().Set("X-Test", "yes")
		rw.WriteHeader(http.StatusTeapot)
		rw.Write(make([]byte, 1<<20)) //nolint:errcheck // the client reads only a part
	}))
	t.Cleanup(srv.Close)
	h := fix.http(httpConfig(srv.URL))
	a, err := h.Post(t.Context(), srv.URL+"/big", nil, chunks())
	if err != nil || a.Status != http.StatusTeapot || len(a.Body) != client.MaxResponse || a.Header.Get("X-Test") != "yes" {
		t.Errorf("status %d, %d bytes, error %v", a.Status, len(a.Body), err)
	}
	if a, err := h.Post(t.Context(), srv.URL+"/redirect", nil, chunks()); err != nil || a.Status != http.StatusTemporaryRedirect {
		t.Errorf("status %d, error %v; want the redirect itself", a.Status, err)
	}
}

// The span of a request has the status of the response, and fails if that is an error.
func TestHTTPSpans(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(srv.Close)
	fix := newFixture(t)
	spans := tracetest.NewSpanRecorder()
	fix.set.Tracer = &selftrace.Tracer{}
	fix.set.Tracer.TurnOn(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), propagation.TraceContext{})
	h := fix.http(httpConfig(srv.URL))
	ctx, root := fix.set.Tracer.StartRoot(t.Context(), "export")
	for _, status = range []int{http.StatusOK, http.StatusBadRequest, http.StatusServiceUnavailable} {
		if _, err := h.Get(ctx, srv.URL, 100); err != nil {
			t.Fatal(err)
		}
	}
	root.End()
	var got []string
	for _, span := range spans.Ended()[:3] {
		got = append(got, fmt.Sprintf("%v %s %s", span.Attributes()[0].Value.AsInterface(), span.Status().Code, span.Status().Description))
	}
	if want := []string{"200 Unset ", "400 Error Bad Request", "503 Error Service Unavailable"}; !slices.Equal(got, want) {
		t.Errorf("spans %q", got)
	}
}

func TestHTTPPostIsCanceledWithItsContext(t *testing.T) {
	fix := newFixture(t)
	release, arrived := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // ends when the client disconnects
		close(arrived)
		<-release
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	h := fix.http(httpConfig(srv.URL))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := h.Post(ctx, srv.URL, nil, chunks()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestHTTPConnectTimeout(t *testing.T) {
	fix := newFixture(t)
	fix.set.Env.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, url := range []string{"http://silent.test:1", "https://silent.test:1"} {
		cfg := httpConfig(url)
		cfg.ConnectTimeout = pipeline.Duration(time.Millisecond)
		if _, err := fix.http(cfg).Post(t.Context(), url, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v", url, err)
		}
	}
}

func TestHTTPValidate(t *testing.T) {
	f := func(want string, change func(*client.HTTPConfig)) {
		t.Helper()
		c := httpConfig("http://localhost:4318")
		change(&c)
		expectErrors(t, want, c.Validate())
	}
	f("", func(*client.HTTPConfig) {})
	f("", func(c *client.HTTPConfig) { c.Endpoint = "" })
	f(`endpoint: "localhost:4318" is not a valid URL; write an http or https URL, for example http://localhost:4318`,
		func(c *client.HTTPConfig) { c.Endpoint = "localhost:4318" })
	f(`endpoint: "ftp://a" is not a valid URL; write an http or https URL, for example http://localhost:4318`,
		func(c *client.HTTPConfig) { c.Endpoint = "ftp://a" })
	f("endpoint: must not contain a password, because URLs are logged; use headers instead",
		func(c *client.HTTPConfig) { c.Endpoint = "http://u:p@a" })
	f("max_conns_per_host: must be from 1 to 2147483647, not 0", func(c *client.HTTPConfig) { c.MaxConnsPerHost = 0 })
	f("http2_ping_timeout: must be above 0 while pings are enabled", func(c *client.HTTPConfig) { c.PingTimeout = 0 })
}
