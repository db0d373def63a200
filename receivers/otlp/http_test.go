package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const (
	protobuf = "application/x-protobuf"
	jsonType = "application/json"
	oneSpan  = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0102030405060708090A0b0c0d0e0f10","spanId":"0102030405060708"}]}]}]}`
	zeroIDs  = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000000","spanId":"","name":"x"}]}]}]}`
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
	const traces, methodPost = "/v1/traces", http.MethodPost
	large := strings.Repeat(" ", 1<<20)
	post := func(name, contentType, body string, err error) row {
		return row{name, methodPost, traces, contentType, "", body, err}
	}
	out := []row{
		post("accepted protobuf", protobuf, string(request(2)), nil),
		post("accepted JSON", jsonType, oneSpan, nil),
		post("empty protobuf", protobuf, "", nil),
		post("empty JSON", jsonType, "{}", nil),
		post("parameters of the content type", "application/json; charset=utf-8", oneSpan, nil),
		post("zero ids", jsonType, zeroIDs, nil),
		{"gzip", methodPost, traces, protobuf, "gzip", gzipped(string(request(2))), nil},
		{"GET", http.MethodGet, traces, protobuf, "", "", nil},
		{"PUT", http.MethodPut, traces, protobuf, "", string(request(1)), nil},
		post("no content type", "", oneSpan, nil),
		post("other content type", "text/plain", oneSpan, nil),
		post("too large JSON", jsonType, oneSpan+large, nil),
		post("too large protobuf", protobuf, large+large, nil),
		{"bomb", methodPost, traces, jsonType, "gzip", gzipped(large + large), nil},
		post("undecodable protobuf", protobuf, "garbage", nil),
		post("undecodable JSON", jsonType, `{"resourceSpans":7}`, nil),
		post("JSON cut short", jsonType, oneSpan[:30], nil),
		{"unknown encoding", methodPost, traces, protobuf, "br", "x", nil},
		{"unknown encoding JSON", methodPost, traces, jsonType, "br", "x", nil},
		{"bad gzip", methodPost, traces, jsonType, "gzip", gzipped(oneSpan)[:30], nil},
		post("partial JSON", jsonType, oneSpan, &pipeline.Partial{Rejected: 1, Err: errors.New("too old")}),
		post("partial protobuf", protobuf, string(request(2)), &pipeline.Partial{Rejected: 1, Err: errors.New("too old")}),
		post("permanent", jsonType, oneSpan, pipeline.Permanent(errors.New("bad spans"))),
		post("overloaded", jsonType, oneSpan, pipeline.Overloaded(errors.New("busy"), 1500*time.Millisecond)),
		post("overloaded protobuf", protobuf, string(request(2)), pipeline.Overloaded(errors.New("busy"), 1500*time.Millisecond)),
		post("transient", jsonType, oneSpan, errors.New("disk full \xff")),
		{"metrics", methodPost, "/v1/metrics", protobuf, "", twoDataPoints, nil},
		{"metrics as JSON", methodPost, "/v1/metrics", jsonType, "", twoDataPointsJSON, nil},
		{"no metrics", methodPost, "/v1/metrics", protobuf, "", "", nil},
		{"garbage metrics", methodPost, "/v1/metrics", protobuf, "", "garbage", nil},
		{"garbage metrics as JSON", methodPost, "/v1/metrics", jsonType, "", `{"resourceMetrics":[`, nil},
		{"tail after JSON", methodPost, "/v1/metrics", jsonType, "", `{} {}`, nil},
		{"list instead of metrics", methodPost, "/v1/metrics", jsonType, "", `[]`, nil},
		{"logs", methodPost, "/v1/logs", protobuf, "", "\n\x04\x12\x02\x12\x00", nil},
		{"logs as JSON", methodPost, "/v1/logs", jsonType, "", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{},{"body":{}}]}]}]}`, nil},
		{"no logs", methodPost, "/v1/logs", jsonType, "", "{}", nil},
		{"GET of metrics", http.MethodGet, "/v1/metrics", jsonType, "", "", nil},
		{"metrics as text", methodPost, "/v1/metrics", "text/plain", "", "", nil},
		{"profiles", methodPost, "/v1development/profiles", protobuf, "", "", nil},
		{"other path", http.MethodGet, "/", "", "", "", nil},
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		out = append(out, post("status "+c.String(), jsonType, oneSpan, status.Error(c, "next hop")))
	}
	return out
}

// Compares responses with testdata/http.golden; -update rewrites it.
func TestHTTPResponses(t *testing.T) {
	var result error
	s := &pipelinetest.Sink{Answer: func(context.Context, *otlpdata.Batch) error { return result }}
	f := start(t, testConfig(func(_ *server.GRPCConfig, h *httpConfig) { h.MaxRequestBodySize = 1 << 20 }), 64<<20, s)
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
		fmt.Fprintf(&got, "%s\n\t%d %s%s%s\n\t%q\n", r.name, resp.StatusCode, resp.Header.Get("Content-Type"),
			formatHeader(resp, "Retry-After"), formatHeader(resp, "Allow"), body)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	golden.Check(t, "testdata/http.golden", got.Bytes())
	counted := f.Refused(t)
	want := map[string]float64{"method": 3, "media_type": 3, "too_large": 3, "undecodable": 7, "encoding": 3, "signal": 1, "path": 1}
	for reason, n := range want {
		if counted["protocols.http "+reason] != n {
			t.Errorf("%s: counted %v, want %v", reason, counted["protocols.http "+reason], n)
		}
	}
}

func formatHeader(r *http.Response, header string) string {
	if v := r.Header.Get(header); v != "" {
		return ", " + header + ": " + v
	}
	return ""
}

func TestTracesPath(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := start(t, testConfig(func(_ *server.GRPCConfig, h *httpConfig) { h.TracesPath = "/in/{x}" }), 0, s)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for path, want := range map[string]int{"/in/%7Bx%7D": 200, "/v1/traces": 404} {
		resp, err := http.Post("http://"+f.Addr("http")+path, jsonType, strings.NewReader(oneSpan))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// Compares charged and allocated memory for the JSON texts that need most memory per byte.
func TestJSONMemory(t *testing.T) {
	const n = 50_000
	list := func(before, element, after string) string {
		return before + strings.Repeat(element+",", n) + element + after
	}
	for name, text := range map[string]string{
		"objects": list(`{"resourceSpans":[{"scopeSpans":[{"spans":[`, `{}`, `]}]}]}`),
		"nulls":   list(`{"resourceSpans":[{"scopeSpans":[{"spans":[`, `null`, `]}]}]}`),
		"strings": list(`{"resourceSpans":[{"resource":{"entityRefs":[{"idKeys":[`, `""`, `]}]}}]}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := otlpdata.FromJSON([]byte(text), otlpdata.Meta{}, otlpdata.Limits{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if allocated, charged := int64(after.TotalAlloc-before.TotalAlloc), otlpdata.JSONMemory([]byte(text)); allocated > charged*3/2 {
			t.Errorf("%s: %d bytes charged, %d allocated", name, charged, allocated)
		}
	}
}

// Objects are charged: an empty span needs a hundred times the memory of its text.
func TestJSONObjectsAreCharged(t *testing.T) {
	const budget = 16 << 20
	var inConsume int64
	s := &pipelinetest.Sink{}
	f := build(t, testConfig(), budget, s)
	s.Answer = func(context.Context, *otlpdata.Batch) error {
		inConsume = f.budget.Used()
		return nil
	}
	h := f.receiver.http.listener
	post := func(body string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/traces", strings.NewReader(body))
		r.Header.Set("Content-Type", jsonType)
		h.Handler().ServeHTTP(w, r)
		return w
	}
	spans := func(n int) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat("{},", n) + `{}]}]}]}`
	}
	if w := post(spans(1000)); w.Code != 200 || inConsume < 3000 || inConsume > 10_000 {
		t.Errorf("small: %d %s, %d bytes reserved during Consume", w.Code, w.Body, inConsume)
	}
	if peak := f.budget.Peak(); peak < 1000*200 {
		t.Errorf("%d bytes charged for the objects of 1000 spans", peak)
	}
	if w := post(spans(budget / 200)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("more objects than the budget: %d %s", w.Code, w.Body)
	}
	other, err := f.budget.Reserve(budget - 100_000)
	if err != nil {
		t.Fatal(err)
	}
	if w := post(spans(1000)); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
		t.Errorf("over budget: %d %s", w.Code, w.Body)
	}
	other.Release()
	if used := f.budget.Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// FuzzHTTP posts arbitrary bodies with any content type and encoding.
func FuzzHTTP(f *testing.F) {
	types := []string{protobuf, jsonType, "application/json; charset=utf-8", "text/plain", "", ";"}
	encodings := []string{"", "identity", "gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4", "br"}
	f.Add([]byte(oneSpan), uint8(1), uint8(0))
	f.Add(request(3), uint8(0), uint8(0))
	f.Add([]byte(gzipped(oneSpan)), uint8(2), uint8(2))
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\x00"), uint8(0), uint8(3))
	f.Add([]byte("\x04\x22\x4d\x18\x64\x40\xa7\x00"), uint8(0), uint8(8))
	f.Add([]byte("\xff\x06\x00\x00sNaPpY\x01\x00"), uint8(0), uint8(6))
	f.Add([]byte("\xff\xff\xff\xff\x0f"), uint8(0), uint8(6))
	var calls int
	s := &pipelinetest.Sink{Answer: func(_ context.Context, b *otlpdata.Batch) error {
		calls++
		return pipeline.Permanent(errors.New("refused"))
	}}
	fix := build(f, testConfig(func(_ *server.GRPCConfig, h *httpConfig) { h.MaxRequestBodySize = 1 << 20 }), 32<<20, s)
	h := fix.receiver.http.listener.Handler()
	allowed := []int{400, 413, 415, 429}
	f.Fuzz(func(t *testing.T, body []byte, contentType, encoding uint8) {
		calls = 0
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/traces", bytes.NewReader(body))
		r.Header.Set("Content-Type", types[int(contentType)%len(types)])
		r.Header.Set("Content-Encoding", encodings[int(encoding)%len(encodings)])
		h.ServeHTTP(w, r)
		if !slices.Contains(allowed, w.Code) || calls > 1 || calls == 1 && w.Code != 400 {
			t.Errorf("%d %s, consumed %d times", w.Code, w.Body, calls)
		}
		if used := fix.budget.Used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	})
}

func TestJSONAndProtobufGiveTheSameBatch(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := start(t, testConfig(), 0, s)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	td := traces(3)
	asJSON, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(f.tracesURL(), jsonType, bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	encoded, err := s.Batches()[0].Encoded()
	if err != nil || !bytes.Equal(encoded, request(3)) {
		t.Errorf("batches differ, %v", err)
	}
}
