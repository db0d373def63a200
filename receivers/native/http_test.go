package native

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
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const (
	apacheThrift = "application/vnd.apache.thrift.binary"
	xThrift      = "application/x-thrift"
)

// row is a request of the golden table.
type row struct {
	name, method, path, contentType, encoding, body string
	err                                             error // of Consume
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

func rows() []row {
	one, large := string(thriftRequest(1)), strings.Repeat(" ", 1<<20)
	post := func(name, contentType, body string, err error) row {
		return row{name, http.MethodPost, tracesPath, contentType, "", body, err}
	}
	compressed := func(name, encoding, body string) row {
		return row{name, http.MethodPost, tracesPath, xThrift, encoding, body, nil}
	}
	return []row{
		post("accepted", apacheThrift, one, nil),
		post("accepted under its other name", "application/vnd.foundation.thrift.binary", one, nil),
		post("accepted as the client for Go sends", xThrift, one, nil),
		post("parameters of the content type", "application/x-thrift; charset=utf-8", one, nil),
		{"query parameters", http.MethodPost, tracesPath + "?format=x.thrift", xThrift, "", one, nil},
		post("no spans", xThrift, string(thriftRequest(0)), nil),
		post("trailing data is ignored", xThrift, one+"rest", nil),
		compressed("gzip", "gzip", gzipped(one)),
		post("no content type", "", one, nil),
		post("content type that is none", "a/b/c", one, nil),
		post("other content type", "Text/A&B; a=b", one, nil),
		post("too large and of another type", "text/plain", one+large, nil), // the body is read first
		post("empty", xThrift, "", nil),
		post("garbage", xThrift, "hello", nil),
		post("cut short", xThrift, one[:len(one)/2], nil),
		post("string of 2 GiB", xThrift, "\x0c\x00\x01\x0b\x00\x01\x7f\xff\xff\xff\x00\x00", nil),
		post("list of 2 billion spans", xThrift, "\x0c\x00\x01\x0b\x00\x01\x00\x00\x00\x00\x00\x0f\x00\x02\x0c\x7f\xff\xff\xff\x00", nil),
		post("nested 10,000 times", xThrift, strings.Repeat("\x0c\x00\x63", 10_000), nil),
		post("two spans too many", xThrift, string(thriftRequest(12)), nil),
		post("a tag too many", xThrift, string(manyTags(1001)), nil),
		post("too large", xThrift, one+large, nil),
		compressed("gzip bomb", "gzip", gzipped(large+large)),
		compressed("unknown encoding", "br", one),
		compressed("no gzip", "gzip", one),
		compressed("gzip cut short", "gzip", gzipped(one)[:30]),
		post("partial", xThrift, one, &pipeline.Partial{Rejected: 1, Err: errors.New("too old")}),
		post("permanent", xThrift, one, pipeline.Permanent(errors.New("bad spans"))),
		post("overloaded", xThrift, one, pipeline.Overloaded(errors.New("busy"), 1500*time.Millisecond)),
		post("transient", xThrift, one, errors.New("disk full")),
		{"GET", http.MethodGet, tracesPath, "", "", "", nil},
		{"PUT", http.MethodPut, tracesPath, xThrift, "", one, nil},
		{"sampling", http.MethodGet, "/api/sampling?service=x", "", "", "", nil},
		{"other path", http.MethodPost, "/api/traces/", xThrift, "", one, nil},
	}
}

func manyTags(n int) []byte {
	tags := slices.Repeat([]*jaeger.Tag{{Key: "k"}}, n)
	return thriftBytes(&jaeger.Batch{Process: &jaeger.Process{}, Spans: []*jaeger.Span{{Tags: tags}}})
}

// Compares responses with testdata/http.golden; -update rewrites it.
func TestHTTPResponses(t *testing.T) {
	var result error
	s := &pipelinetest.Sink{Answer: func(context.Context, *otlpdata.Batch) error { return result }}
	c := testConfig(func(_ *server.GRPCConfig, h *server.HTTPConfig) { h.MaxRequestBodySize = 1 << 20 })
	c.MaxSpans, c.MaxItems = 10, 1000
	f := start(t, c, 64<<20, s)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	var got bytes.Buffer
	for _, r := range rows() {
		result = r.err
		req, err := http.NewRequestWithContext(t.Context(), r.method, "http://"+f.Addr("http")+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Content-Type": r.contentType, "Content-Encoding": r.encoding} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		text, _, undecodable := bytes.Cut(body, []byte("thrift: "))
		if undecodable { // the tests of the decoder check its errors
			text = append(text, "...\n"...)
		}
		fmt.Fprintf(&got, "%s\n\t%d %s%s%s\n\t%q\n", r.name, resp.StatusCode, resp.Header.Get("Content-Type"),
			formatHeader(resp, "Retry-After"), formatHeader(resp, "Allow"), text)
	}
	golden.Check(t, "testdata/http.golden", got.Bytes())
	counted := f.Refused(t)
	want := map[string]float64{"method": 2, "media_type": 3, "too_large": 4, "undecodable": 7, "encoding": 3, "path": 2}
	for reason, n := range want {
		if counted["protocols.http "+reason] != n {
			t.Errorf("%s: counted %v, want %v", reason, counted["protocols.http "+reason], n)
		}
	}
	for _, b := range s.Batches() {
		if m := b.Meta(); m.Format != "tracing" || m.Transport != "http" || m.Received != time.Unix(1_700_000_000, 0) {
			t.Errorf("meta: %+v", m)
		}
	}
	if names := spanNames(t, s.Batches()[0]); !slices.Equal(names, []string{"cart get 0"}) {
		t.Errorf("first span: %v", names)
	}
}

func formatHeader(r *http.Response, header string) string {
	if v := r.Header.Get(header); v != "" {
		return ", " + header + ": " + v
	}
	return ""
}

func TestHTTPTenants(t *testing.T) {
	s := &pipelinetest.Sink{}
	tenancy := server.TenancyConfig{Enabled: true, Header: "x-tenant", Tenants: []string{"a"}}
	f := start(t, testConfig(func(_ *server.GRPCConfig, h *server.HTTPConfig) { h.Tenancy = pipeline.Present(tenancy) }), 0, s)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for tenant, want := range map[string]string{"a": "202 ", "": "403 missing tenant header\n", "b": "403 unknown tenant\n"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.tracesURL(), bytes.NewReader(thriftRequest(1)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", xThrift)
		if tenant != "" {
			req.Header.Set("x-tenant", tenant)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprintf("%d %s", resp.StatusCode, body); err != nil || got != want {
			t.Errorf("%q: %q, %v", tenant, got, err)
		}
	}
	if len(s.Batches()) != 1 || s.Batches()[0].Meta().Tenant != "a" {
		t.Errorf("%d requests accepted, want 1", len(s.Batches()))
	}
}

// A client that closes its side early may still read the response.
func TestTruncatedBody(t *testing.T) {
	f := start(t, testConfig(), 0, &pipelinetest.Sink{})
	conn, err := net.Dial("tcp", f.Addr("http"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\nhalf", tracesPath, xThrift)
	conn.(*net.TCPConn).CloseWrite()
	response, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(response), "HTTP/1.1 500") ||
		!strings.Contains(string(response), "Unable to process request body: unexpected EOF") {
		t.Errorf("%s %v", response, err)
	}
}

// A million tags in one span exceed max_items_per_list and a small budget.
func TestMillionTags(t *testing.T) {
	body := manyTags(1_000_000)
	for budget, want := range map[int64]int{256 << 20: http.StatusBadRequest, 64 << 20: http.StatusRequestEntityTooLarge} {
		f := build(t, testConfig(), budget, &pipelinetest.Sink{})
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, tracesPath, bytes.NewReader(body))
		r.Header.Set("Content-Type", xThrift)
		f.receiver.http.listener.Handler().ServeHTTP(w, r)
		if w.Code != want || f.budget.Used() != 0 {
			t.Errorf("budget of %d bytes: %d %s, %d bytes still reserved", budget, w.Code, w.Body, f.budget.Used())
		}
	}
}

// Compares charged and allocated memory for the inputs that need most memory per byte.
func TestTranslationMemory(t *testing.T) {
	const n = 20_000
	logs := func(fields int) []byte {
		log := &jaeger.Log{Fields: slices.Repeat([]*jaeger.Tag{{Key: "k"}}, fields)}
		return thriftBytes(&jaeger.Batch{Process: &jaeger.Process{},
			Spans: []*jaeger.Span{{Logs: slices.Repeat([]*jaeger.Log{log}, n/(1+fields))}}})
	}
	for name, c := range map[string]struct {
		format wireFormat
		body   []byte
		growth int
	}{
		"typical Thrift":    {thriftBatch, thriftRequest(1000), native.TypicalGrowth},
		"tags":              {thriftBatch, manyTags(n), native.TypicalGrowth},
		"logs":              {thriftBatch, logs(0), native.TypicalGrowth},
		"logs with a field": {thriftBatch, logs(1), native.TypicalGrowth},
		"references": {thriftBatch, thriftBytes(&jaeger.Batch{Process: &jaeger.Process{},
			Spans: []*jaeger.Span{{References: slices.Repeat([]*jaeger.SpanRef{{}}, n)}}}), native.TypicalGrowth},
		"spans": {thriftBatch,
			thriftBytes(&jaeger.Batch{Process: &jaeger.Process{}, Spans: slices.Repeat([]*jaeger.Span{{}}, n)}), native.TypicalGrowth},
		"typical protobuf":      {postSpans, protoRequest(1000), native.TypicalGrowth},
		"tags in protobuf":      {postSpans, smallTags(n), native.TypicalGrowth},
		"few tags in protobuf":  {postSpans, smallTags(1000), native.TypicalGrowth},
		"one large text":        {postSpans, protoText(1 << 20), native.TypicalGrowth},
		"large text and Thrift": {thriftBatch, thriftText(1 << 20), native.TypicalGrowth},
		"growing spans":         {postSpans, growingSpans(n), native.MaxGrowth},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := c.format.translate(c.body, c.growth*len(c.body)+native.BaseMemory); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		allocated, charged := int64(after.TotalAlloc-before.TotalAlloc), c.format.memory(c.body, c.growth)
		if allocated > charged*3 { // TotalAlloc includes discarded buffers
			t.Errorf("%s: %d bytes charged for %d bytes of input, %d allocated", name, charged, len(c.body), allocated)
		}
		t.Logf("%s: %d bytes, charged %.1f times, allocated %.1f times", name, len(c.body), float64(charged)/float64(len(c.body)),
			float64(allocated)/float64(len(c.body)))
	}
}

// FuzzHTTP posts arbitrary bodies.
func FuzzHTTP(f *testing.F) {
	f.Add(thriftRequest(2))
	f.Add(manyTags(3))
	f.Add([]byte("\x0c\x00\x01\x0b\x00\x01\x7f\xff\xff\xff\x00\x00"))
	fix, calls := newFuzzReceiver(f)
	h := fix.receiver.http.listener.Handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		*calls = 0
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, tracesPath, bytes.NewReader(body))
		r.Header.Set("Content-Type", xThrift)
		h.ServeHTTP(w, r)
		if !slices.Contains([]int{400, 413, 429}, w.Code) || *calls > 1 || *calls == 1 && w.Code != 400 {
			t.Errorf("%d %s, consumed %d times", w.Code, w.Body, *calls)
		}
		if used := fix.budget.Used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	})
}

// FuzzPostSpans sends arbitrary messages.
func FuzzPostSpans(f *testing.F) {
	f.Add(protoRequest(2))
	f.Add(smallTags(3))
	f.Add([]byte("\x0a\xff\xff\xff\xff\x07"))
	fix, calls := newFuzzReceiver(f)
	s := fix.receiver.grpc
	f.Fuzz(func(t *testing.T, body []byte) {
		*calls = 0
		raw := server.Raw(body)
		if _, err := s.consume(t.Context(), &raw); err == nil || *calls > 1 {
			t.Errorf("%v, consumed %d times", err, *calls)
		}
		if used := fix.budget.Used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	})
}

// newFuzzReceiver returns a receiver whose consumer refuses all batches, and the number of calls of
// the consumer.
func newFuzzReceiver(f *testing.F) (*fixture, *int) {
	calls := new(int)
	return build(f, testConfig(), 32<<20, &pipelinetest.Sink{Answer: func(_ context.Context, b *otlpdata.Batch) error {
		*calls++
		return pipeline.Permanent(errors.New("refused"))
	}}), calls
}
