package healthcheck

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is a fake of the process that has only a health.
type process struct {
	pipeline.Process
	health status.Health
}

func (p *process) Health() status.Health { return p.health }

func start(t *testing.T, p *process, change func(*config)) *extension {
	t.Helper()
	c := defaults()
	c.Endpoint = "localhost:0"
	if change != nil {
		change(&c)
	}
	f := pipelinetest.NewFixture("health_check", 0)
	f.Settings.Process = p
	f.Settings.Env.Now = func() time.Time { return p.health.Since.Add(time.Second) }
	e, err := newExtension(f.Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e
}

func TestHealthCheck(t *testing.T) {
	p := &process{}
	e := start(t, p, nil)
	custom := start(t, p, func(c *config) {
		c.Path, c.ResponseBody = "/health/status", responseBody{Healthy: "I'm good", Unhealthy: "I'm bad"}
	})
	check := func(e *extension, path, want string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + e.Addr("http") + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Status[:3] + " " + strings.TrimSpace(string(body)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	check(e, "/", `503 {"status":"Server not available","upSince":"0001-01-01T00:00:00Z","uptime":""}`)
	check(custom, "/health/status", "503 I'm bad")
	p.health.Since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	check(e, "/", `200 {"status":"Server available","upSince":"2026-01-02T03:04:05Z","uptime":"1s"}`)
	check(e, "/metrics", "404 no health check here; it is at /")
	check(custom, "/health/status", "200 I'm good")
	check(custom, "/health/status/", "200 I'm good")
	check(custom, "/", "404 no health check here; it is at /health/status")
}

func TestGRPC(t *testing.T) {
	e := start(t, &process{}, func(c *config) {
		c.GRPC = pipeline.Present(server.DefaultGRPCConfig("localhost:0"))
	})
	conn, err := grpc.NewClient(e.Addr("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	resp, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || resp.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestPathIsChecked(t *testing.T) {
	c := defaults()
	c.Path = "health"
	if err := c.Validate(); err == nil || err.Error() != `"health" must start with a slash, for example /health` {
		t.Errorf("got %v", err)
	}
}
