package zipkin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openzipkin/zipkin-go/model"
	"github.com/openzipkin/zipkin-go/proto/zipkin_proto3"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a Zipkin server with a preset response.
type server struct {
	url     string
	respond atomic.Pointer[http.HandlerFunc] // nil responds with 202
	mu      sync.Mutex                       // an aborted request is sent once more
	request *http.Request                    // the last one
	body    []byte                           // of the last request
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond := s.respond.Load()
		body, err := io.ReadAll(r.Body)
		if err != nil && respond == nil {
			t.Errorf("reading the request: %v", err)
		}
		s.mu.Lock()
		s.request, s.body = r, body
		s.mu.Unlock()
		if respond != nil {
			(*respond)(w, r)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL + spansPath
	return s
}

func (s *server) respondBy(h http.HandlerFunc) { s.respond.Store(&h) }

// respondWith sets the response: status, body, and alternating names and values of headers.
func (s *server) respondWith(code int, body string, header ...string) {
	s.respondBy(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body) //nolint:errcheck // the client reports errors
	})
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func start(t *testing.T, endpoint string, change func(*config)) *exporter {
	t.Helper()
	c := defaults()
	c.Endpoint, c.Compression = endpoint, client.CompressionNone
	if change != nil {
		change(&c)
	}
	f := pipelinetest.NewFixture("zipkin", 0)
	f.Settings.Env.Now = func() time.Time { return now }
	e, err := newExporter(f.Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e
}

func batch(t *testing.T, tenant string, n int) *otlpdata.Batch {
	t.Helper()
	return pipelinetest.Batch(t, otlpdata.Meta{Tenant: tenant}, n)
}

// Zipkin's own library reads the spans of both formats, from joined batches as well.
func TestFormats(t *testing.T) {
	s := startServer(t)
	joined, err := otlpdata.Concat(batch(t, "acme", 3), batch(t, "acme", 4))
	if err != nil {
		t.Fatal(err)
	}
	for format, read := range map[string]func() ([]*model.SpanModel, error){
		formatJSON: func() (spans []*model.SpanModel, err error) { return spans, json.Unmarshal(s.body, &spans) },
		formatProto: func() ([]*model.SpanModel, error) {
			return zipkin_proto3.ParseSpans(s.body, false)
		},
	} {
		if err := start(t, s.url, func(c *config) { c.Format = format }).Consume(t.Context(), joined); err != nil {
			t.Fatal(err)
		}
		if spans, err := read(); err != nil || len(spans) != 7 {
			t.Errorf("%s: %d spans, error %v", format, len(spans), err)
		}
		wantType := map[string]string{formatJSON: "application/json", formatProto: "application/x-protobuf"}[format]
		if h := s.request.Header; h.Get("Content-Type") != wantType || h.Get("X-Tenant") != "acme" || s.request.URL.Path != spansPath {
			t.Errorf("%s: sent %v to %s", format, h, s.request.URL)
		}
	}
}

func TestDefaultServiceName(t *testing.T) {
	s := startServer(t)
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID([16]byte{1})
	span.SetSpanID([8]byte{2})
	e := start(t, s.url, func(c *config) { c.DefaultServiceName, c.TenantHeader = "unnamed", "" })
	if err := e.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "acme"})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(s.body), `"serviceName":"unnamed"`) || s.request.Header.Get("X-Tenant") != "" {
		t.Errorf("sent %s with %v", s.body, s.request.Header)
	}
}

// Spans without ids are rejected; the others are sent.
func TestSpansWithoutIDs(t *testing.T) {
	s := startServer(t)
	e := start(t, s.url, nil)
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	spans.AppendEmpty().SetTraceID([16]byte{1})
	if err := e.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{})); !pipeline.IsPermanent(err) || s.request != nil {
		t.Errorf("error %v, request %v", err, s.request)
	}
	good := spans.AppendEmpty()
	good.SetTraceID([16]byte{1})
	good.SetSpanID([8]byte{1})
	err := e.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{}))
	var partial *pipeline.Partial
	if !errors.As(err, &partial) || partial.Rejected != 1 || bytes.Count(s.body, []byte("traceId")) != 1 {
		t.Errorf("error %v, sent %s", err, s.body)
	}
	s.request = nil
	if err := e.Consume(t.Context(), otlpdata.FromTraces(ptrace.NewTraces(), otlpdata.Meta{})); err != nil || s.request != nil {
		t.Errorf("no spans: error %v, request %v", err, s.request)
	}
}

func TestErrorResponses(t *testing.T) {
	s := startServer(t)
	e := start(t, s.url, nil)
	// f sets the response and checks the returned error. after is 0 for permanent errors.
	f := func(code int, retryAfter string, want codes.Code, after time.Duration) {
		t.Helper()
		var header []string
		if retryAfter != "" {
			header = []string{"Retry-After", retryAfter}
		}
		s.respondWith(code, "", header...)
		err := e.Consume(t.Context(), batch(t, "", 1))
		if got := pipeline.GRPCStatus(err).Code(); got != want || pipeline.IsPermanent(err) != (after == 0) {
			t.Errorf("%d: %s, permanent %t; want %s", code, got, pipeline.IsPermanent(err), want)
		}
		if _, got := pipeline.HTTPStatus(err); got != after {
			t.Errorf("%d with Retry-After %q: retry after %s, want %s", code, retryAfter, got, after)
		}
	}
	for _, code := range []int{301, 307, 400, 401, 403, 404, 405, 413, 415, 422} {
		f(code, "7", codes.InvalidArgument, 0)
	}
	for _, code := range []int{408, 500, 501, 502, 503, 504} {
		f(code, "", codes.Unavailable, time.Second)
	}
	f(429, "", codes.ResourceExhausted, time.Second)
	f(429, "7", codes.ResourceExhausted, 7*time.Second)
	f(503, now.Add(9*time.Second).Format(http.TimeFormat), codes.ResourceExhausted, 9*time.Second)
	f(503, "soon", codes.Unavailable, time.Second)
}

func TestErrorMessages(t *testing.T) {
	s := startServer(t)
	e := start(t, s.url+"?token=secret", nil)
	f := func(want, contentType, body string) {
		t.Helper()
		s.respondWith(400, body, "Content-Type", contentType)
		err := e.Consume(t.Context(), batch(t, "", 1))
		if want = "sending to " + s.url + ": 400 Bad Request" + want; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f("", "", "")
	f(": no such thing \uFFFD", "text/plain; charset=utf-8", "no such thing \xff\n")
	f("", "text/html", "<html>")
	f(": "+strings.Repeat("x", maxMessage), "text/plain", strings.Repeat("x", 1<<20))
}

// A login page with status 200 is not a success, and neither is an aborted response.
func TestOtherResponses(t *testing.T) {
	s := startServer(t)
	e := start(t, s.url, nil)
	s.respondWith(200, "<html>please log in</html>", "Content-Type", "text/html; charset=utf-8")
	if err := e.Consume(t.Context(), batch(t, "", 1)); err == nil || pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "web page") {
		t.Errorf("web page: error %v", err)
	}
	s.respondBy(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if err := e.Consume(t.Context(), batch(t, "", 1)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("aborted response: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.respondBy(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if err := e.Consume(ctx, batch(t, "", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: error %v", err)
	}
}

func TestConfig(t *testing.T) {
	f := func(change func(*config), want ...string) {
		t.Helper()
		c := defaults()
		c.Endpoint = "http://localhost:9411/api/v2/spans"
		change(&c)
		var keys []string
		if err, ok := c.Validate().(interface{ Unwrap() []error }); ok {
			for _, e := range err.Unwrap() {
				keys = append(keys, e.(*pipeline.KeyError).Key)
			}
		}
		if !slices.Equal(keys, want) {
			t.Errorf("errors for keys %q, want %q", keys, want)
		}
	}
	f(func(*config) {})
	f(func(c *config) { c.Endpoint = "http://proxy/zipkin" })
	f(func(c *config) { c.Endpoint, c.Format, c.DefaultServiceName = "", "xml", "" }, "endpoint", "format", "default_service_name")
	f(func(c *config) { c.Endpoint = "http://localhost:9411/" }, "endpoint")
	if f := Factory(); f.Type() != "zipkin" || f.Kind() != pipeline.KindExporter {
		t.Errorf("factory of %s %q", f.Kind(), f.Type())
	}
}
