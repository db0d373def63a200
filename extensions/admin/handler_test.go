package admin

import (
	"context"
	"encoding/json"
	"expvar"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/status"
)

func TestReadiness(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry()}
	a := start(t, p, nil)
	defer a.Stop(context.Background())
	f := func(path string, status int, body string) {
		t.Helper()
		if resp, got := get(t, a, path); resp.StatusCode != status || got != body+"\n" {
			t.Errorf("%s: %d %q, want %d %q", path, resp.StatusCode, got, status, body)
		}
	}
	f("/healthz", 200, "ok")
	f("/readyz", 503, "not ready")
	p.health.Ready = true
	f("/healthz", 200, "ok")
	f("/readyz", 200, "ready")
}

func TestStatus(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry()}
	a := start(t, p, nil)
	defer a.Stop(context.Background())
	problemSince := time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC)
	f := func(state status.State, code int) {
		t.Helper()
		p.status = status.Report{State: state, Pipelines: []status.Pipeline{{Pipeline: "traces", State: state,
			Components: []status.Component{{Component: "memory", Kind: "exporter", State: state, Reason: "full",
				Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}}}, Beside: []status.Component{},
			Configuration: status.Reload{Since: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Reloads: 2, Problem: "typo",
				ProblemSince: &problemSince}}
		want := strings.ReplaceAll(`{"status":"S","pipelines":[{"pipeline":"traces","status":"S","components":[{"component":"memory",`+
			`"kind":"exporter","status":"S","reason":"full","since":"2026-01-02T03:04:05Z"}]}],"beside":[],`+
			`"configuration":{"since":"2026-01-02T03:04:06Z","reloads":2,"problem":"typo","problem_since":"2026-01-02T03:04:07Z"}}`,
			"S", string(state))
		resp, body := get(t, a, "/status")
		if resp.StatusCode != code || strings.TrimSpace(body) != want || resp.Header.Get("Content-Type") != "application/json" ||
			resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s, want %d %s", state, resp.StatusCode, resp.Header, body, code, want)
		}
	}
	f(status.Starting, 503)
	f(status.OK, 200)
	f(status.Degraded, 200)
	f(status.Stopped, 503)
}

func TestLogLevel(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry(), level: zap.NewAtomicLevel()}
	a := start(t, p, nil)
	defer a.Stop(context.Background())
	if resp, body := get(t, a, "/log-level"); resp.StatusCode != 200 || body != `{"level":"info"}`+"\n" {
		t.Errorf("GET: %d %s", resp.StatusCode, body)
	}
	f := func(method, body string, status int, want string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+a.Addr("http")+"/log-level", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status || p.level.String() != want {
			t.Errorf("%s %s: %v %d %s, level %s", method, body, err, resp.StatusCode, got, p.level)
		}
	}
	f(http.MethodPut, `{"level":"debug"}`, 200, "debug")
	f(http.MethodPut, `{"level":"loud"}`, 400, "debug")
	f(http.MethodPut, `nonsense`, 400, "debug")
	f(http.MethodDelete, ``, 405, "debug")
	f(http.MethodPut, `{"level":"warn"}`, 200, "warn")
}

// Variables and profiles are served, except the command line, which may contain secrets.
func TestDebug(t *testing.T) {
	a := start(t, &process{registry: prometheus.NewRegistry()}, nil)
	defer a.Stop(context.Background())
	_, body := get(t, a, "/debug/vars")
	var vars map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &vars); err != nil || vars["memstats"] == nil || vars["cmdline"] != nil {
		t.Errorf("%v %.100s", err, body)
	}
	if expvar.Get("cmdline") == nil {
		t.Error("no variable cmdline to leave out")
	}
	for path, status := range map[string]int{"/debug/pprof/": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/heap": 200,
		"/debug/pprof/cmdline": 404, "/debug/pprof/profile?seconds=1": 200, "/debug/pprof/symbol": 200} {
		if resp, body := get(t, a, path); resp.StatusCode != status || len(body) == 0 {
			t.Errorf("%s: %d, %d bytes", path, resp.StatusCode, len(body))
		}
	}
}

// Routes of components are below their kind and id, with or without a name. Their handlers get the
// rest of the path.
func TestComponentRoutes(t *testing.T) {
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name+" "+r.URL.Path) })
	}
	p := &process{registry: prometheus.NewRegistry(), routes: map[string]http.Handler{
		"exporter disk": echo("disk"), "exporter disk/second": echo("second"), "receiver otlp": echo("otlp")}}
	a := start(t, p, nil)
	defer a.Stop(context.Background())
	const none = "no running component with this name has routes here\n"
	for path, want := range map[string]string{"/exporters/disk/delete": "disk /delete", "/exporters/disk/second/a/b": "second /a/b",
		"/exporters/disk/": "disk /", "/exporters/disk": "disk ", "/receivers/otlp/x": "otlp /x", "/exporters/otlp/x": none,
		"/exporters/": none, "/processors/otlp/x": notFound + "\n"} {
		resp, body := get(t, a, path)
		if body != want || want == none && resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %q, want %q", path, resp.StatusCode, body, want)
		}
	}
}

// The state of the process and its sampling are JSON.
func TestOperations(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry(), status: status.Report{State: status.OK}}
	a := start(t, p, nil)
	defer a.Stop(context.Background())
	for path, want := range map[string]string{"/status/details": `"report":{"status":"ok"`, "/sampling?tenant=x": `{"providers":[]}`,
		"/sampling/explain?service=a&trace=1f": `{"strategies":[],"stages":[]}`} {
		resp, body := get(t, a, path)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	resp, body := get(t, a, "/sampling/explain?trace=xyz")
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "hex digits") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
