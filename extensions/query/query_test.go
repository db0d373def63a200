package query

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/wire/streaming"
	"github.com/tracing-backend/tracing/pipeline"
)

func refTo[T any](t *testing.T, id string) (r pipeline.Ref[T]) {
	t.Helper()
	if err := r.UnmarshalText([]byte(id)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestValidate(t *testing.T) {
	f := func(want []string, change func(*Config)) {
		t.Helper()
		c := defaults()
		c.Storage = refTo[Store](t, "memory")
		change(&c)
		var got []string
		if err := c.Validate(); err != nil {
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				var key *pipeline.KeyError
				if !errors.As(e, &key) {
					t.Fatalf("%v has no key", e)
				}
				got = append(got, key.Key)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("errors for %v, want %v", got, want)
		}
	}
	f(nil, func(*Config) {})
	f([]string{"storage"}, func(c *Config) { c.Storage = pipeline.Ref[Store]{} })
	f([]string{"archive_storage"}, func(c *Config) { c.ArchiveStorage = refTo[Archive](t, "memory") })
	f(nil, func(c *Config) {
		c.ArchiveStorage = refTo[Archive](t, "memory/archive")
	})
	keys := []string{"query_timeout", "max_clock_skew_adjustment", "max_limit", "max_trace_size", "max_scanned_spans",
		"max_concurrent_queries"}
	f(keys, func(c *Config) {
		c.QueryTimeout, c.MaxLimit, c.MaxTraceSize, c.MaxScanned, c.MaxQueries, c.MaxClockSkew = 0, 0, -1, 0, 0, -1
	})
	f([]string{"max_aggregated_spans"}, func(c *Config) { c.MaxAggregated = 0 })
	for _, good := range []string{"", "/", "/a", "/a/", "/a/b-c_d.e~f"} {
		f(nil, func(c *Config) { c.BasePath = good })
	}
	for _, bad := range []string{"a", "//", "//a", "/a//b", "/a/../b", "/a/.", "/{x}", "/a b", "/a%2Fb", "/ü"} {
		f([]string{"base_path"}, func(c *Config) { c.BasePath = bad })
	}
}

// TestServes starts and stops the extension.
func TestServes(t *testing.T) {
	c := defaults()
	c.HTTP.Endpoint = "localhost:0"
	c.BasePath = "/tracing/"
	c.Storage = pipeline.BoundRef[Store](querytest.NewStore(querytest.Shop()))
	c.ArchiveStorage = pipeline.BoundRef[Archive](querytest.NewArchive(t, "empty"))
	c.UI.Path = uiFolder(t)
	c.PassTokens = true
	q, err := newQuery(querytest.Settings(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if q.Addr("http") != "" {
		t.Error("Addr returns an address before Start")
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
		t.Error("Addr returns an address for a listener that is not configured")
	}
	http.DefaultClient.CloseIdleConnections()
	checkStreaming(t, q.Addr("http"))
	if err := q.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// checkStreaming searches over gRPC on the port of HTTP.
func checkStreaming(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := streaming.NewStreamingQuerierClient(conn).Search(t.Context(), &streaming.SearchRequest{Start: 1714550000, End: 1714560000})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := stream.Recv(); err != nil || len(found.Traces) != 2 {
		t.Errorf("streaming search: %v %v", found, err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("end of the streaming search: %v", err)
	}
}

// Streams are sent line by line through the listener and the compression, and end when the
// extension stops.
func TestStreamsThroughListener(t *testing.T) {
	c := defaults()
	c.HTTP.Endpoint = "localhost:0"
	c.Storage = pipeline.BoundRef[Store](querytest.FilledMemory(t, querytest.Shop()))
	q, err := newQuery(querytest.Settings(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+q.Addr("http")+"/api/ui/v1/tail", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() || lines.Text() != "event: status" { // sent while the answer goes on
		t.Errorf("first line %q, %v", lines.Text(), lines.Err())
	}
	if err := q.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	last := ""
	for lines.Scan() {
		last += lines.Text()
	}
	if !strings.Contains(last, "server is shutting down") {
		t.Errorf("the answer ended with %q, %v", last, lines.Err())
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestStartWithoutIndexPage(t *testing.T) {
	c := defaults()
	c.HTTP.Endpoint = "localhost:0"
	c.Storage = pipeline.BoundRef[Store](querytest.NewStore(querytest.Shop()))
	c.UI.Path = t.TempDir()
	q, err := newQuery(querytest.Settings(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "ui: cannot read the UI's index page") ||
		q.Addr("http") != "" {
		t.Errorf("error %v", err)
	}
}

func TestMetrics(t *testing.T) {
	store := querytest.NewStore(querytest.Shop())
	h, reg := api(t, store, func(o *core.Options) { o.Archive = querytest.NewArchive(t, "empty") })
	for _, path := range []string{"/api/services", "/api/operations?service=web", "/api/services/web/operations", "/api/traces?service=web",
		"/api/dependencies", "/api/traces?traceID=1", "/api/traces/1", "/api/traces/77", "/api/traces/zzz",
		"/api/v3/trace-summaries?query.startTimeMin=2024-05-01T09:00:00Z&query.startTimeMax=2024-05-01T11:00:00Z",
		"/api/metrics/minstep", "/api/metrics/calls?service=web", "/api/metrics/latencies?service=web&quantile=1", "/api/metrics/calls",
		"/api/ui/v1/services", "/api/ui/v1/ingest", "/api/ui/v1/errors", "/api/ui/v1/changes",
		"/tempo/api/search/tags", "/tempo/api/v2/search/tags", "/tempo/api/search/tag/name/values"} {
		querytest.Ask(t, h, http.MethodGet, path)
	}
	querytest.Ask(t, h, http.MethodPost, "/api/archive/77")
	store.Fail = querytest.ErrStore
	querytest.Ask(t, h, http.MethodGet, "/api/services")
	querytest.Ask(t, h, http.MethodGet, "/api/traces?service=web")
	querytest.Ask(t, h, http.MethodGet, "/api/metrics/errors?service=web&endTs=1714561200000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store.Hang = true
	// A canceled request is not an error of the store.
	querytest.Record(h, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/traces/1", nil))
	want := map[string]uint64{
		"archive_trace err": 0, "archive_trace ok": 1, "find_trace_summaries err": 0, "find_trace_summaries ok": 1,
		"find_traces err": 1, "find_traces ok": 1, "get_dependencies err": 0, "get_dependencies ok": 1,
		"get_operations err": 0, "get_operations ok": 2,
		"get_latencies err": 0, "get_latencies ok": 1, "get_call_rates err": 0, "get_call_rates ok": 1, "get_error_rates err": 1,
		"get_error_rates ok":        0,
		"get_min_step_duration err": 0, "get_min_step_duration ok": 1, "get_tags err": 0, "get_tags ok": 2, "get_tag_values err": 0,
		"get_tag_values ok": 1, "aggregate err": 0, "aggregate ok": 0,
		"get_service_performance err": 0, "get_service_performance ok": 1, "get_usage err": 0, "get_usage ok": 1,
		"get_errors err": 0, "get_errors ok": 1, "get_changes err": 0, "get_changes ok": 1, "explain err": 0, "explain ok": 0,
		"get_status err": 0, "get_status ok": 0,
		"get_services err": 1, "get_services ok": 1, "get_trace err": 0, "get_trace ok": 4,
	}
	if got := querytest.Counts(t, reg, "tracing_query_requests_total"); !reflect.DeepEqual(got, want) {
		t.Errorf("requests: %v", got)
	}
	maps.DeleteFunc(want, func(_ string, n uint64) bool { return n == 0 })
	if got := querytest.Counts(t, reg, "tracing_query_latency"); !reflect.DeepEqual(got, want) {
		t.Errorf("latencies: %v", got)
	}
	results := gatherSums(t, reg, "tracing_query_responses")
	if want := map[string]float64{"find_trace_summaries": 2, "find_traces": 2, "get_dependencies": 1, "get_operations": 6,
		"get_services": 2, "get_trace": 2,
		"get_tags": 62, "get_tag_values": 3}; !reflect.DeepEqual(results, want) {
		t.Errorf("results: %v", results)
	}
}

// gatherSums returns the sum of a histogram by operation.
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
