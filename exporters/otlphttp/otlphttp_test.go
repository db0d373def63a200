package otlphttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nextHop is an OTLP server with preset responses.
type nextHop struct {
	url string

	mu      sync.Mutex
	handler http.HandlerFunc // nil responds with 200
	req     *http.Request    // last request
	body    []byte           // of the last request
}

func startHop(t *testing.T) *nextHop {
	t.Helper()
	h := &nextHop{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		h.mu.Lock()
		h.req, h.body = r, b
		handler := h.handler
		h.mu.Unlock()
		if handler != nil {
			handler(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	h.url = srv.URL
	return h
}

// respondWith sets the response: status, body, and alternating names and values of headers.
func (h *nextHop) respondWith(code int, body []byte, header ...string) {
	h.handleWith(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		w.Write(body) //nolint:errcheck // the client reports errors
	})
}

func (h *nextHop) handleWith(handler http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handler = handler
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func start(t *testing.T, endpoint string, change func(*config)) *exporter {
	t.Helper()
	c := defaults()
	c.Endpoint, c.Compression = endpoint, client.CompressionNone
	if change != nil {
		change(&c)
	}
	f := pipelinetest.NewFixture("otlphttp", 0)
	f.Settings.Env.Now = func() time.Time { return now }
	e, err := newExporter(f.Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e
}

// batch returns an encoded batch of n spans.
func batch(t testing.TB, tenant string, n int) *otlpdata.Batch {
	t.Helper()
	return pipelinetest.Batch(t, otlpdata.Meta{Tenant: tenant}, n)
}

func TestBytesPassThrough(t *testing.T) {
	hop := startHop(t)
	joined, err := otlpdata.Concat(batch(t, "acme", 3), batch(t, "acme", 200))
	if err != nil {
		t.Fatal(err)
	}
	want, err := joined.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(t, hop.url+"/", nil).Consume(t.Context(), joined); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(hop.body, want) || hop.req.ContentLength != int64(len(want)) {
		t.Errorf("next hop received %d bytes, content length %d; want %d", len(hop.body), hop.req.ContentLength, len(want))
	}
	got := []string{hop.req.URL.Path, hop.req.Header.Get("Content-Type"), hop.req.Header.Get("X-Tenant"),
		hop.req.Header.Get("Content-Encoding")}
	if want := []string{"/v1/traces", "application/x-protobuf", "acme", ""}; !slices.Equal(got, want) {
		t.Errorf("next hop received %q, want %q", got, want)
	}

	e := start(t, "", func(c *config) { c.TracesEndpoint, c.Compression, c.TenantHeader = hop.url+"/in?x=1", "gzip", "" })
	if err := e.Consume(t.Context(), joined); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(hop.body))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || !bytes.Equal(b, want) {
		t.Errorf("got %d bytes, error %v", len(b), err)
	}
	if uri, tenant := hop.req.RequestURI, hop.req.Header.Get("X-Tenant"); uri != "/in?x=1" || tenant != "" {
		t.Errorf("sent to %s with tenant %q", uri, tenant)
	}
}

func TestJSON(t *testing.T) {
	hop := startHop(t)
	e := start(t, hop.url, func(c *config) { c.Encoding = encodingJSON })
	response := []byte(`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`)
	hop.respondWith(200, response, "Content-Type", "application/json; charset=utf-8")
	err := e.Consume(t.Context(), batch(t, "", 7))
	var partial *pipeline.Partial
	if !errors.As(err, &partial) || partial.Rejected != 2 || !strings.Contains(err.Error(), "too old") {
		t.Errorf("error %v", err)
	}
	req := ptraceotlp.NewExportRequest()
	if err := req.UnmarshalJSON(hop.body); err != nil || req.Traces().SpanCount() != 7 || hop.req.Header.Get("Content-Type") != typeJSON {
		t.Errorf("sent %d spans as %s, error %v", req.Traces().SpanCount(), hop.req.Header.Get("Content-Type"), err)
	}
}

func TestSuccessResponses(t *testing.T) {
	hop := startHop(t)
	e := start(t, hop.url, nil)
	f := func(code int, rejected int, body []byte, header ...string) {
		t.Helper()
		hop.respondWith(code, body, header...)
		err := e.Consume(t.Context(), batch(t, "", 3))
		var partial *pipeline.Partial
		switch {
		case rejected == 0 && err != nil:
			t.Errorf("error %v", err)
		case rejected > 0 && (!errors.As(err, &partial) || partial.Rejected != rejected):
			t.Errorf("error %v, want %d rejected spans", err, rejected)
		}
	}
	resp := ptraceotlp.NewExportResponse()
	resp.PartialSuccess().SetErrorMessage("slow down")
	warning, _ := resp.MarshalProto()
	resp.PartialSuccess().SetRejectedSpans(1)
	partial, _ := resp.MarshalProto()
	f(200, 0, nil)
	f(202, 0, []byte{0x0a, 0}, "Content-Type", typeProto)
	f(200, 0, warning, "Content-Type", typeProto)
	f(200, 1, partial, "Content-Type", typeProto)
	f(200, 0, []byte("thanks"), "Content-Type", "text/plain")
	f(200, 0, []byte("not protobuf"), "Content-Type", typeProto)
	f(200, 0, make([]byte, 1<<20), "Content-Type", typeJSON)
}

// A login page with status 200 is not a success.
func TestWebPageIsAnError(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<html>please log in</html>") //nolint:errcheck // a test
	}))
	defer web.Close()
	err := start(t, web.URL, nil).Consume(t.Context(), batch(t, "", 1))
	if err == nil || pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "web page") {
		t.Errorf("%v", err)
	}
}

func TestErrorResponses(t *testing.T) {
	hop := startHop(t)
	e := start(t, hop.url, nil)
	// f sets the response and checks the returned error. after is 0 for permanent errors.
	f := func(code int, retryAfter string, want codes.Code, after time.Duration) {
		t.Helper()
		var header []string
		if retryAfter != "" {
			header = []string{"Retry-After", retryAfter}
		}
		hop.respondWith(code, nil, header...)
		err := e.Consume(t.Context(), batch(t, "", 1))
		if got := pipeline.GRPCStatus(err).Code(); got != want || pipeline.IsPermanent(err) != (after == 0) {
			t.Errorf("%d: %s, permanent %t; want %s", code, got, pipeline.IsPermanent(err), want)
		}
		if _, got := pipeline.HTTPStatus(err); got != after {
			t.Errorf("%d with Retry-After %q: retry after %s, want %s", code, retryAfter, got, after)
		}
	}
	for _, code := range []int{301, 307, 400, 401, 403, 404, 405, 408, 413, 415, 422, 500, 501} {
		f(code, "7", codes.InvalidArgument, 0)
	}
	for _, code := range []int{502, 503, 504} {
		f(code, "", codes.Unavailable, time.Second)
	}
	f(429, "", codes.ResourceExhausted, time.Second)
	f(429, "7", codes.ResourceExhausted, 7*time.Second)
	f(503, "7", codes.ResourceExhausted, 7*time.Second)
	f(503, now.Add(9*time.Second).Format(http.TimeFormat), codes.ResourceExhausted, 9*time.Second)
	f(503, now.Add(-time.Hour).Format(http.TimeFormat), codes.ResourceExhausted, time.Second)
	f(503, "18446744073709551615", codes.ResourceExhausted, client.MaxRetryAfter)
	f(503, "soon", codes.Unavailable, time.Second)
	f(502, "7", codes.Unavailable, time.Second)
}

func TestErrorMessages(t *testing.T) {
	hop := startHop(t)
	e := start(t, "", func(c *config) { c.TracesEndpoint = hop.url + "/v1/traces?token=secret" })
	f := func(want, contentType string, body []byte) {
		t.Helper()
		hop.respondWith(400, body, "Content-Type", contentType)
		err := e.Consume(t.Context(), batch(t, "", 1))
		if want = "sending to " + hop.url + "/v1/traces: 400 Bad Request" + want; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	st := &spb.Status{Code: 3, Message: "no such thing"}
	inProto, _ := proto.Marshal(st)
	inJSON, _ := protojson.Marshal(st)
	f("", "", nil)
	f(": no such thing", typeProto, inProto)
	f(": no such thing", typeJSON, inJSON)
	f(": more", typeJSON, []byte(`{"message":"more","unknown":[1]}`))
	f(": bad \uFFFD", "text/plain; charset=utf-8", []byte("bad \xff\n"))
	f("", "text/html", []byte("<html>"))
	f("", typeProto, []byte("not protobuf"))
	f(": "+strings.Repeat("x", maxMessage)+"...", "text/plain", bytes.Repeat([]byte("x"), 1<<20))
}

func TestConnectionErrors(t *testing.T) {
	hop := startHop(t)
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	if err := start(t, srv.URL, nil).Consume(t.Context(), batch(t, "", 1)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("no listener: error %v", err)
	}
	hop.handleWith(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if err := start(t, hop.url, nil).Consume(t.Context(), batch(t, "", 1)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("aborted response: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hop.handleWith(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if err := start(t, hop.url, nil).Consume(ctx, batch(t, "", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: error %v", err)
	}
}

func TestConfig(t *testing.T) {
	f := func(change func(*config), want ...string) {
		t.Helper()
		c := defaults()
		c.Endpoint = "http://localhost:4318"
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
	f(func(c *config) { c.Endpoint = "" }, "endpoint")
	f(func(c *config) { c.Endpoint, c.TracesEndpoint = "", "https://a/b" })
	f(func(c *config) { c.TracesEndpoint, c.Encoding = "a:1", "xml" }, "traces_endpoint", "encoding")
	if f := Factory(); f.Type() != "otlphttp" || f.Kind() != pipeline.KindExporter {
		t.Errorf("factory of %s %q", f.Kind(), f.Type())
	}
}

// FuzzResponse decodes arbitrary responses.
func FuzzResponse(f *testing.F) {
	f.Add(503, "7", typeProto, []byte{0x08, 3, 0x12, 2, 'n', 'o'})
	f.Add(429, "Fri, 02 Jan 2026 03:04:14 GMT", typeJSON, []byte(`{"code":3,"message":"no"}`))
	f.Add(200, "", typeJSON, []byte(`{"partialSuccess":{"rejectedSpans":"9223372036854775807"}}`))
	f.Add(400, "-1", "text/plain; charset=\"", bytes.Repeat([]byte("["), 1000))
	f.Fuzz(func(t *testing.T, code int, retryAfter, contentType string, body []byte) {
		r := client.Response{Status: code, Header: http.Header{"Retry-After": {retryAfter}, "Content-Type": {contentType}}, Body: body}
		err := responseError(r, now)
		if len(err.Error()) > 2*maxMessage+100 {
			t.Errorf("message of %d bytes", len(err.Error()))
		}
		if _, after := pipeline.HTTPStatus(err); after < 0 || after > client.MaxRetryAfter {
			t.Errorf("retry after %s", after)
		}
		resp := ptraceotlp.NewExportResponse()
		if decode(r, resp.UnmarshalProto, resp.UnmarshalJSON) != nil {
			return
		}
		var partial *pipeline.Partial
		hop := client.NewNextHop(pipeline.Settings{Logger: zap.NewNop(), Env: pipeline.SystemEnv()})
		if errors.As(hop.Partial(resp.PartialSuccess().RejectedSpans(), ""), &partial) && partial.Rejected <= 0 {
			t.Errorf("%d rejected spans", partial.Rejected)
		}
	})
}
