package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is a fake of the process.
type process struct {
	health   status.Health
	registry *prometheus.Registry
	status   status.Report
	level    zap.AtomicLevel
	routes   map[string]http.Handler // by kind and id of the component
}

func (p *process) Health() status.Health         { return p.health }
func (p *process) Gatherer() prometheus.Gatherer { return p.registry }
func (p *process) Status() status.Report         { return p.status }
func (p *process) LogLevel() zap.AtomicLevel     { return p.level }
func (p *process) Intake() status.Intake         { return status.Intake{} }

func (p *process) Details(context.Context) status.Details {
	return status.Details{Report: p.status}
}
func (p *process) Components() []pipeline.Running { return nil }
func (p *process) AdminHandler(kind pipeline.Kind, id pipeline.ID) http.Handler {
	return p.routes[kind.String()+" "+id.String()]
}
func (p *process) Build() status.Build {
	return status.Build{Version: "v1.2.3", Commit: "abc", Date: "2026-01-02"}
}

// start starts the extension on a free port.
func start(t *testing.T, p *process, change func(*Config)) *admin {
	t.Helper()
	env := pipeline.SystemEnv()
	env.Now = func() time.Time { return p.health.Since.Add(2960 * time.Millisecond) }
	c := defaults()
	c.Endpoint = "localhost:0"
	if change != nil {
		change(&c)
	}
	a, err := build(pipeline.Settings{ID: pipeline.ID{Type: "admin"}, Logger: zap.NewNop(), Metrics: p.registry, Env: env,
		Budget: pipeline.NewBudget(0), Process: p}, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

func get(t *testing.T, a *admin, path string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+a.Addr("http")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestHealth(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry()}
	a := start(t, p, nil)
	defer a.Stop(context.Background())

	resp, body := get(t, a, "/")
	if want := `{"status":"Server not available","upSince":"0001-01-01T00:00:00Z","uptime":""}`; resp.StatusCode != 503 ||
		strings.TrimSpace(body) != want {
		t.Errorf("not ready: %d %s", resp.StatusCode, body)
	}
	for _, path := range []string{"/anything", "/health/live", "/metric", "/api/traces"} {
		if resp, body := get(t, a, path); resp.StatusCode != 404 || !strings.Contains(body, "this port serves /, /healthz, /readyz, ") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	// A component that is not ready recovers by itself. Liveness probes of "/" must not restart the
	// process meanwhile.
	for _, reason := range []string{"", "exporter disk: no space left"} {
		p.health = status.Health{Ready: reason == "", Reason: reason, Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
		resp, body := get(t, a, "/")
		want := `{"status":"Server available","upSince":"2026-01-02T03:04:05.000000006Z","uptime":"2.96s"}`
		if resp.StatusCode != 200 || strings.TrimSpace(body) != want || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("reason %q: %d %s %s", reason, resp.StatusCode, resp.Header.Get("Content-Type"), body)
		}
	}
}

// The format is plain text even if the scraper accepts OpenMetrics and compression: OpenMetrics
// would rename counters.
func TestMetricsArePlainText(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry()}
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_collector_spans_received", Help: "Spans."})
	p.registry.MustRegister(c)
	c.Add(3)
	a := start(t, p, nil)
	defer a.Stop(context.Background())
	resp, body := get(t, a, "/metrics", "Accept", "application/openmetrics-text; version=1.0.0, */*;q=0.1", "Accept-Encoding", "gzip")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Encoding") != "" ||
		!strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if !strings.Contains(body, "\ntracing_collector_spans_received 3\n") {
		t.Errorf("counter is missing in:\n%s", body)
	}
}

// A failing collector does not hide the metrics of others.
func TestFailingCollector(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry()}
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "good", Help: "Spans."})
	p.registry.MustRegister(c, failingCollector{})
	a := start(t, p, nil)
	defer a.Stop(context.Background())
	if resp, body := get(t, a, "/metrics"); resp.StatusCode != 200 || !strings.Contains(body, "\ngood 0\n") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

type failingCollector struct{}

func (failingCollector) Describe(chan<- *prometheus.Desc) {}
func (failingCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "", nil, nil), errors.New("broken"))
}

func TestVersion(t *testing.T) {
	a := start(t, &process{registry: prometheus.NewRegistry()}, nil)
	defer a.Stop(context.Background())
	resp, body := get(t, a, "/version")
	var got map[string]string
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || got["gitCommit"] != "abc" || got["gitVersion"] != "v1.2.3" || got["buildDate"] != "2026-01-02" {
		t.Errorf("%d %v", resp.StatusCode, got)
	}
}

// The extension serves requests during the linger time. A deadline ends it.
func TestLinger(t *testing.T) {
	p := &process{registry: prometheus.NewRegistry()}
	a := start(t, p, func(c *Config) { c.Linger = pipeline.Duration(time.Hour) })
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Stop(ctx) }()
	if resp, _ := get(t, a, "/metrics"); resp.StatusCode != 200 {
		t.Errorf("while lingering: %d", resp.StatusCode)
	}
	cancel()
	<-stopped
	if _, err := http.Get("http://" + a.Addr("http") + "/metrics"); err == nil {
		t.Error("still serving after Stop")
	}
}
