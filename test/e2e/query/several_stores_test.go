package query_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// collector is a process with a disk store, which other processes may read.
type collector struct {
	*harness.Process
	dir, store string // its folder, and the address of its store
}

// runCollector starts a collector. store is the address of its store.
func runCollector(t *testing.T, dir, store string) *collector {
	t.Helper()
	p := harness.RunYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}}
exporters: {disk: {allow_delete: true}}
extensions: {remote_storage: {endpoint: %q, storage: disk, allow_delete: true}, admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [remote_storage, admin]
  pipelines: {traces: {receivers: [otlp], exporters: [disk]}}
`, store, dir))
	p.AwaitReady()
	return &collector{p, dir, p.Address("remote_storage", "grpc")}
}

// fleet is several collectors behind load_balancing, and a query service that reads all of them.
type fleet struct {
	collectors   []*collector
	front, query *harness.Process
}

func runFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{}
	var backends, stores []string
	for range n {
		c := runCollector(t, t.TempDir(), pipelinetest.FixedAddress(t))
		f.collectors = append(f.collectors, c)
		backends, stores = append(backends, c.OTLPGRPC()), append(stores, c.store)
	}
	f.front = harness.RunYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}}
exporters:
  load_balancing:
    protocol: {otlp: {tls: {insecure: true}}}
    resolver: {static: {hostnames: [%s]}}
service: {data_dir: %q, pipelines: {traces: {receivers: [otlp], exporters: [load_balancing]}}}
`, strings.Join(backends, ", "), t.TempDir()))
	f.front.AwaitReady()
	f.query = harness.RunYAML(t, fmt.Sprintf(`
exporters: {grpc: {endpoints: [%s], tls: {insecure: true}, probe_interval: 100ms}}
extensions: {query: {storage: grpc, http: {endpoint: "localhost:0"}}, admin: {endpoint: "localhost:0"}}
service: {data_dir: %q, extensions: [query, admin]}
`, strings.Join(stores, ", "), t.TempDir()))
	f.query.AwaitReady()
	return f
}

// answerOf returns the status of a response, and its body after the header that may say what is
// missing.
func answerOf(t *testing.T, address string) (int, string) {
	t.Helper()
	resp, err := http.Get(address) //nolint:gosec,noctx // the address of a process of this test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to the end
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Tracing-Warning") + body.String()
}

// chosen matches what depends on the store: the exemplars of a heatmap, of which it may choose any,
// and whether it knows that spans arrived a moment ago.
var chosen = regexp.MustCompile(`"exemplars":\{.*?\]\}|"growing":true,`)

// otherPaths are further requests about spans of a trace.
func otherPaths(start time.Time, service, id string) []string {
	from, to := start.Add(-time.Minute), start.Add(10*time.Minute)
	window := fmt.Sprintf("start=%d&end=%d", from.UnixNano(), to.UnixNano())
	seconds := fmt.Sprintf("start=%d&end=%d", from.Unix(), to.Unix())
	v3 := fmt.Sprintf("query.start_time_min=%s&query.start_time_max=%s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	return []string{
		"/api/ui/v1/map?" + window, "/api/ui/v1/groups?by=service&" + window, "/api/ui/v1/ingest", "/api/ui/v1/baseline/" + id,
		"/api/ui/v1/typical/" + id, "/api/ui/v1/explain?sel_q=" + url.QueryEscape(`{ status = error }`) + "&" + window,
		"/api/ui/v1/tree?" + window,
		"/api/ui/v1/sampling/explain?service=" + service,
		"/api/ui/v1/keys?prefix=http&q=" + url.QueryEscape(`{ kind = server }`) + "&" + window,
		"/api/v3/operations?service=" + service, "/api/v3/traces?" + v3, "/api/v3/trace-summaries?" + v3,
		"/tempo/api/search?q=" + url.QueryEscape(`{ kind = server }`) + "&" + seconds, "/tempo/api/v2/traces/" + id,
		"/tempo/api/search/tags", "/tempo/api/v2/search/tag/span.http.request.method/values", "/tempo/api/search/tag/service.name/values",
		"/tempo/api/v2/search/tag/name/values?q=" + url.QueryEscape(`{ kind = server }`) + "&" + seconds,
	}
}

// TestSeveralStores checks that a query service over the stores of three collectors answers all
// requests as one store with the same spans does. While one of them is down, every response is
// partial and names it.
func TestSeveralStores(t *testing.T) {
	f := runFleet(t, 3)
	one := inprocess.StartPreset(t, "collector", "extensions::query::storage=disk", "extensions::query::http::endpoint=localhost:0",
		"service::extensions=[sampling, remote_storage, query, admin]")
	start := time.Now().Truncate(time.Minute).Add(-10 * time.Minute)
	data := bench.New(5, start)
	const spans = 2000
	for _, target := range []string{f.front.OTLPGRPC(), one.OTLPGRPC()} {
		r, err := load.Run(t.Context(), load.Options{Target: target, Connections: 2, InFlight: 2, Retry: time.Minute}, data.Requests(spans, 100))
		if err != nil || r.Acked < spans {
			t.Fatalf("%d spans were acknowledged: %v", r.Acked, err)
		}
	}
	var paths []string
	for _, path := range splitPaths(data, start) {
		if !strings.Contains(path, "/config") && !strings.Contains(path, "/minstep") { // not about spans
			paths = append(paths, path)
		}
	}
	same := func() {
		t.Helper()
		for _, path := range paths {
			want, wantBody := answerOf(t, one.QueryURL()+path)
			got, body := answerOf(t, f.query.QueryURL()+path)
			for _, either := range []*regexp.Regexp{scanned, chosen} {
				body, wantBody = either.ReplaceAllString(body, ""), either.ReplaceAllString(wantBody, "")
			}
			if got == want && body == wantBody {
				continue
			}
			at := 0
			for at < min(len(body), len(wantBody)) && body[at] == wantBody[at] {
				at++
			}
			text, _ := url.QueryUnescape(path)
			t.Errorf("%s: %d, ...%.300s\nof one store: %d, ...%.300s", text, got, body[max(0, at-50):], want, wantBody[max(0, at-50):])
		}
	}
	same()

	down := f.collectors[1]
	down.Kill()
	f.query.Await("msg", "component is degraded")
	trace := data.Trace(3)
	id := hex.EncodeToString(trace[0].TraceID[:])
	for _, path := range append(paths, otherPaths(start, data.Services()[0], id)...) {
		status, body := answerOf(t, f.query.QueryURL()+path)
		// Without the store, it is unknown whether the trace exists.
		found := status == http.StatusOK || status == http.StatusNotFound && strings.Contains(path, id)
		if !found || !strings.Contains(body, "store "+down.store) {
			t.Errorf("%s without a store: %d %.500s", path, status, body)
		}
	}
	if code, body := harness.Fetch(t, f.query.AdminURL()+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz without a store: %d %s", code, body)
	}
	_, state := harness.Fetch(t, f.query.AdminURL()+"/status")
	if !strings.Contains(string(state), `"degraded"`) || !strings.Contains(string(state), down.store+" is unreachable") {
		t.Errorf("/status without a store: %s", state)
	}

	f.collectors[1] = runCollector(t, down.dir, down.store)
	f.query.Await("msg", "component recovered")
	same()
	for _, c := range f.collectors {
		c.Kill()
	}
	harness.Poll(t, "not ready without any store", func() bool {
		code, _ := harness.Fetch(t, f.query.AdminURL()+"/readyz")
		return code == http.StatusServiceUnavailable
	})
	checkUnavailable(t, http.MethodGet, f.query.QueryURL()+"/api/services", "")
	checkUnavailable(t, http.MethodGet, f.query.QueryURL()+"/api/traces/"+id, "")
	checkUnavailable(t, http.MethodGet, f.query.QueryURL()+"/api/traces?service="+data.Services()[0], "")
}
