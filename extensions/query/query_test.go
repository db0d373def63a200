package query

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
)

func TestValidate(t *testing.T) {
	f := func(want []string, change func(*Config)) {
		t.Helper()
		c := defaults()
		c.Storage = pipeline.RefTo[Store](pipeline.ID{Type: "memory"})
		change(&c)
		var got []string
		if err := c.Validate(); err != nil {
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				var key *pipeline.KeyError
				if !errors.As(e, &key) {
					t.Fatalf("%v names no key", e)
				}
				got = append(got, key.Key)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("mistakes in %v, want %v", got, want)
		}
	}
	f(nil, func(*Config) {})
	f([]string{"storage"}, func(c *Config) { c.Storage = pipeline.Ref[Store]{} })
	f([]string{"archive_storage"}, func(c *Config) { c.ArchiveStorage = pipeline.RefTo[Archive](pipeline.ID{Type: "memory"}) })
	f(nil, func(c *Config) {
		c.ArchiveStorage = pipeline.RefTo[Archive](pipeline.ID{Type: "memory", Name: "archive"})
	})
	f([]string{"query_timeout", "max_clock_skew_adjustment", "max_limit", "max_trace_size", "max_scanned_spans", "max_concurrent_queries",
		"max_answer_memory"}, func(c *Config) {
		c.QueryTimeout, c.MaxLimit, c.MaxTraceSize, c.MaxScanned, c.MaxQueries, c.MaxMemory, c.MaxClockSkew = 0, 0, -1, 0, 0, 0, -1
	})
	f([]string{"max_aggregated_spans"}, func(c *Config) { c.MaxAggregated = 0 })
	for _, good := range []string{"", "/", "/a", "/a/", "/a/b-c_d.e~f"} {
		f(nil, func(c *Config) { c.BasePath = good })
	}
	for _, bad := range []string{"a", "//", "//a", "/a//b", "/a/../b", "/a/.", "/{x}", "/a b", "/a%2Fb", "/ü"} {
		f([]string{"base_path"}, func(c *Config) { c.BasePath = bad })
	}
}

// TestServes runs the extension as the framework does.
func TestServes(t *testing.T) {
	c := defaults()
	c.HTTP.Endpoint = "localhost:0"
	c.BasePath = "/tracing/"
	c.Storage = pipeline.BoundRef[Store](newFakeStore(shop()))
	c.ArchiveStorage = pipeline.BoundRef[Archive](archiveOf(t, "empty"))
	c.UI.Path = uiFolder(t)
	c.PassTokens = true
	q, err := newQuery(pipeline.Settings{
		Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(), Budget: pipeline.NewBudget(0), Report: func(error) {},
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	if q.Addr("http") != "" {
		t.Error("there is an address before Start")
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := func(path string, status int, body string) {
		t.Helper()
		res, err := http.Get("http://" + q.Addr("http") + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status || !strings.Contains(string(b), body) {
			t.Errorf("%s: %d %s, %v", path, res.StatusCode, b, err)
		}
	}
	f("/tracing/api/services", http.StatusOK, `{"data":["a/b","web"]`)
	f("/tracing/api/traces/1", http.StatusOK, `"traceID":"0000000000000001"`)
	f("/tracing/search", http.StatusOK, `JAEGER_BACKEND_CAPABILITIES = {"archiveStorage":true,"metricsStorage":true,`)
	f("/tracing/static/main.js", http.StatusOK, "let x")
	f("/api/services", http.StatusNotFound, "404 page not found")
	if q.Addr("grpc") != "" {
		t.Error("there is a listener that nobody made")
	}
	http.DefaultClient.CloseIdleConnections()
	if err := q.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStartWithoutThePages(t *testing.T) {
	c := defaults()
	c.HTTP.Endpoint = "localhost:0"
	c.Storage = pipeline.BoundRef[Store](newFakeStore(shop()))
	c.UI.Path = t.TempDir()
	q, err := newQuery(pipeline.Settings{
		Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(), Budget: pipeline.NewBudget(0), Report: func(error) {},
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "ui: cannot read the UI's index page") || q.Addr("http") != "" {
		t.Errorf("error %v", err)
	}
}

func TestMetrics(t *testing.T) {
	store := newFakeStore(shop())
	h, reg := api(t, store, func(h *handler) { h.archive = archiveOf(t, "empty") })
	for _, path := range []string{"/api/services", "/api/operations?service=web", "/api/services/web/operations", "/api/traces?service=web",
		"/api/dependencies", "/api/traces?traceID=1", "/api/traces/1", "/api/traces/77", "/api/traces/zzz",
		"/api/v3/trace-summaries?query.startTimeMin=2024-05-01T09:00:00Z&query.startTimeMax=2024-05-01T11:00:00Z",
		"/api/metrics/minstep", "/api/metrics/calls?service=web", "/api/metrics/latencies?service=web&quantile=1", "/api/metrics/calls",
		"/tempo/api/search/tags", "/tempo/api/v2/search/tags", "/tempo/api/search/tag/name/values"} {
		ask(t, h, http.MethodGet, path)
	}
	ask(t, h, http.MethodPost, "/api/archive/77")
	store.fail = errStore
	ask(t, h, http.MethodGet, "/api/services")
	ask(t, h, http.MethodGet, "/api/traces?service=web")
	ask(t, h, http.MethodGet, "/api/metrics/errors?service=web&endTs=1714561200000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store.hang = true
	record(h, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/traces/1", nil)) // the client's doing, not the store's
	want := map[string]uint64{
		"archive_trace err": 0, "archive_trace ok": 1, "find_trace_summaries err": 0, "find_trace_summaries ok": 1,
		"find_traces err": 1, "find_traces ok": 1, "get_dependencies err": 0, "get_dependencies ok": 1, "get_operations err": 0, "get_operations ok": 2,
		"get_latencies err": 0, "get_latencies ok": 1, "get_call_rates err": 0, "get_call_rates ok": 1, "get_error_rates err": 1, "get_error_rates ok": 0,
		"get_min_step_duration err": 0, "get_min_step_duration ok": 1, "get_tags err": 0, "get_tags ok": 2, "get_tag_values err": 0,
		"get_tag_values ok": 1, "aggregate err": 0, "aggregate ok": 0,
		"get_services err": 1, "get_services ok": 1, "get_trace err": 0, "get_trace ok": 4,
	}
	if got := gather(t, reg, "tracing_query_requests_total"); !reflect.DeepEqual(got, want) {
		t.Errorf("requests: %v", got)
	}
	maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
	if got := gather(t, reg, "tracing_query_latency"); !reflect.DeepEqual(got, want) {
		t.Errorf("latencies: %v", got)
	}
	results := gatherSums(t, reg, "tracing_query_responses")
	if want := map[string]float64{"find_trace_summaries": 2, "find_traces": 2, "get_dependencies": 1, "get_operations": 6, "get_services": 2, "get_trace": 2,
		"get_tags": 42, "get_tag_values": 3}; !reflect.DeepEqual(results, want) {
		t.Errorf("results: %v", results)
	}
}

// gather returns the counts of a metric by operation and result.
func gather(t *testing.T, reg *prometheus.Registry, name string) map[string]uint64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]uint64)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = uint64(m.GetCounter().GetValue()) + m.GetHistogram().GetSampleCount()
		}
	}
	return out
}

// gatherSums returns the sums of a histogram by operation.
func gatherSums(t *testing.T, reg *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				out[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleSum()
			}
		}
	}
	return out
}

func TestServerErrorsAreLogged(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	store := newFakeStore(shop())
	h, _ := api(t, store, func(h *handler) { h.logger = zap.New(core) })
	ask(t, h, http.MethodGet, "/api/traces/77")
	ask(t, h, http.MethodGet, "/api/traces")
	if logs.Len() > 0 {
		t.Errorf("a client's mistake was logged: %v", logs.All())
	}
	store.fail = errStore
	ask(t, h, http.MethodGet, "/api/traces/1")
	entries := logs.FilterMessage("HTTP handler, Internal Server Error").All()
	if len(entries) != 1 || entries[0].ContextMap()["error"] != errStore.Error() {
		t.Errorf("logged %v", logs.All())
	}
}

// big makes an answer longer than what is gathered before it is sent.
func big() ptrace.Traces {
	return many(3, func(_ int, _ ptrace.ResourceSpans, s ptrace.Span) {
		s.Attributes().PutStr("k", strings.Repeat("x", flushAt))
	})
}

// threePaths are questions for the three traces of many.
func threePaths() []string {
	return []string{"/api/traces?service=svc", "/api/traces?traceID=1&traceID=2&traceID=3", "/api/v3/traces?" + allDay}
}

// allDay are the parameters of a search for what the tests store.
const allDay = "query.startTimeMin=2024-05-01T00:00:00Z&query.startTimeMax=2024-05-02T00:00:00Z"

func TestStoreThatBreaksOff(t *testing.T) {
	for _, path := range append(threePaths(), "/api/v3/trace-summaries?"+allDay) {
		store := newFakeStore(many(3, func(int, ptrace.ResourceSpans, ptrace.Span) {}))
		store.fail, store.failAt = errStore, 2
		h, _ := api(t, store)
		if w := ask(t, h, http.MethodGet, path); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "disk on fire") {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
	}
}

// When a part of an answer is with the client, what is left to tell of a store that fails is that the answer ends too early.
func TestStoreThatBreaksOffInTheMiddle(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	for _, path := range threePaths() {
		for _, coding := range []string{"", "gzip"} {
			store := newFakeStore(big())
			store.fail, store.failAt = errStore, 2
			routes, _ := api(t, store, func(h *handler) { h.logger = zap.New(core) })
			srv := httptest.NewServer(routes)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", coding)
			res, err := srv.Client().Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", path, err)
			}
			srv.Close()
			if n := logs.TakeAll(); len(n) != 1 {
				t.Errorf("%s: logged %v", path, n)
			}
		}
	}
}

func TestSlowStore(t *testing.T) {
	f := func(path string, failAt, status int, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore(many(3, func(int, ptrace.ResourceSpans, ptrace.Span) {}))
			store.hang, store.failAt = true, failAt
			h, _ := api(t, store)
			w := ask(t, h, http.MethodGet, path)
			if w.Code != status || !strings.HasSuffix(strings.TrimSpace(w.Body.String()), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		})
	}
	const text = `"the store did not finish within query_timeout (1m0s); ask for less"}]}`
	const partly = `"errors":[{"code":504,"msg":"result is incomplete: the store did not finish within query_timeout (1m0s); ask for less"}]}`
	f("/api/services", 0, http.StatusGatewayTimeout, text)
	f("/api/operations?service=x", 0, http.StatusGatewayTimeout, text)
	f("/api/services/x/operations", 0, http.StatusGatewayTimeout, text)
	f("/api/traces/1", 0, http.StatusGatewayTimeout, text)
	f("/api/traces?service=svc", 0, http.StatusGatewayTimeout, text)
	f("/api/traces?service=svc", 2, http.StatusOK, partly)
	f("/api/traces?traceID=1&traceID=2&traceID=3", 2, http.StatusOK, partly)
	const partlyV3 = `],"warnings":["result is incomplete: the store did not finish within query_timeout (1m0s); ask for less"]}`
	f("/api/v3/traces?"+allDay, 2, http.StatusOK, strings.Replace(partlyV3, "]", "]}", 1))
	f("/api/v3/trace-summaries?"+allDay, 2, http.StatusOK, partlyV3)
	const textV3 = `{"error":{"httpCode":504,"message":"the store did not finish within query_timeout (1m0s); ask for less"}}`
	f("/api/v3/traces?"+allDay, 0, http.StatusGatewayTimeout, textV3)
	f("/api/v3/trace-summaries?"+allDay, 0, http.StatusGatewayTimeout, textV3)
}

// goneClient takes nothing.
type goneClient struct{ *httptest.ResponseRecorder }

func (goneClient) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestClientThatGoesAway(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	h, reg := api(t, newFakeStore(big()), func(h *handler) { h.logger = zap.New(core) })
	for _, path := range []string{"/api/traces?service=svc", "/api/traces/1", "/api/services"} {
		h.ServeHTTP(goneClient{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, path, nil))
	}
	if logs.Len() > 0 {
		t.Errorf("logged %v", logs.All())
	}
	for name, n := range gather(t, reg, "tracing_query_requests_total") {
		if strings.HasSuffix(name, "err") && n > 0 {
			t.Errorf("counted as a failure: %s", name)
		}
	}
}

func TestLargeTraceIsCut(t *testing.T) {
	td := ptrace.NewTraces()
	ss := service(td, "svc")
	for i := range 20 {
		put(ss, pcommon.TraceID{15: 1}, byte(i+1), 0, "op", time.Duration(i))
	}
	store := newFakeStore(td)
	h, _ := api(t, store, func(h *handler) { h.limits.traceSize = 7 })
	for _, query := range []string{"traceID=1", "service=svc"} {
		a := search200(t, h, query)
		if len(a.Data) != 1 || len(a.Data[0].Spans) != 7 ||
			!strings.Contains(string(a.Data[0].Spans[0]), "trace has more than 7 spans, showing first 7 spans only") {
			t.Errorf("%s: %.300v", query, a)
		}
	}
	if store.read != 8 {
		t.Errorf("%d pieces of one span were read to show 7 spans", store.read)
	}
}

// pieces notes how long the parts are in which an answer is written.
type pieces struct {
	*httptest.ResponseRecorder
	longest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	return p.ResponseRecorder.Write(b)
}

// A trace is sent while it is encoded, so that what is held of the answer does not grow with the trace.
func TestLargeTraceIsSentInParts(t *testing.T) {
	td := ptrace.NewTraces()
	ss := service(td, "svc")
	const spans = 900
	for i := range spans {
		s := put(ss, pcommon.TraceID{15: 1}, byte(i), byte(i>>8), "op", time.Duration(i))
		s.Attributes().PutStr("k", strings.Repeat("x", 1000))
	}
	h, _ := api(t, newFakeStore(td))
	for _, path := range []string{"/api/traces/1", "/api/traces/1?raw=true", "/api/traces?service=svc"} {
		w := &pieces{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var a answered
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || len(a.Data) != 1 || len(a.Data[0].Spans) != spans {
			t.Fatalf("%s: %v, %.200s", path, err, w.Body)
		}
		if w.longest > flushAt+2000 || w.Body.Len() < 3*flushAt {
			t.Errorf("%s: %d bytes were written in parts of up to %d", path, w.Body.Len(), w.longest)
		}
	}
}
