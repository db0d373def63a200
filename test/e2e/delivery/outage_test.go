package delivery_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// outageSeconds, as an environment variable, is how long the collector is away in TestOutage.
const outageSeconds = "TRACING_OUTAGE"

// An agent with receivers that answer, so that it is known what it has promised.
const queueingAgent = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters:
  native:
    endpoint: %q
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 0s}
    sending_queue: {storage: disk, queue_size: 0}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [native]}}
`

// The collector is killed under load, and while it is away the agent is killed, too: every span that the agent acknowledged arrives when both
// are back, once, and the agent catches up though the load goes on.
func TestOutage(t *testing.T) {
	harness.SkipShort(t)
	dir := t.TempDir()
	away := time.Duration(harness.FromEnv(t, outageSeconds, 1)) * time.Second
	collector := func(more ...string) *harness.Process {
		p := harness.Run(t, harness.PresetArgs("collector", filepath.Join(dir, "collector"), more...)...)
		p.Await("msg", "Health Check state change", "status", "ready")
		return p
	}
	first := collector()
	addr := first.Address("native", "protocols.grpc")
	config := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, queueingAgent, addr, filepath.Join(dir, "agent")), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := harness.Run(t, "--config", config)
	agent.Await("msg", "Health Check state change", "status", "ready")

	l := harness.NewLedger()
	before := harness.StartPacedLoad(t, agent.Address("otlp", "protocols.grpc"), 1, l)
	before.Await(20)
	struck := time.Now()
	first.Kill()
	time.Sleep(away)
	before.End()
	waiting := harness.Queued(t, agent)
	if waiting == 0 {
		t.Fatal("nothing is queued though the collector is away")
	}
	agent.Kill()

	agent = harness.Run(t, "--config", config)
	if open := agent.Await("msg", "opened sending queue"); open["spans"].(float64) < waiting {
		t.Errorf("%v spans were queued, the next process finds %v", waiting, open["spans"])
	}
	after := harness.StartPacedLoad(t, agent.Address("otlp", "protocols.grpc"), 2, l)
	second := collector("--set", "receivers::native::protocols::grpc::endpoint="+addr)
	outage, back, backlog := time.Since(struck), time.Now(), harness.Queued(t, agent)
	harness.AwaitBacklog(t, agent, harness.SpansInFlight)
	caughtUp := time.Since(back)
	after.End()
	harness.AwaitBacklog(t, agent, 0)
	acked, found := l.Check(t, "http://"+second.Address("query", "http"))
	agent.Terminate()
	if line := agent.Await("msg", "final accounting of spans"); line["balanced"] != true {
		t.Errorf("the agent: %v", line)
	}
	t.Logf("%d spans acknowledged, %d found; %v were queued when the agent was killed", acked, found, waiting)
	t.Logf("%.0f spans/s; after an outage of %.1f s %v were queued, %.1f s later, at %.0f spans/s, none was: %.2f of the outage",
		before.Rate(), outage.Seconds(), backlog, caughtUp.Seconds(), after.Rate(), caughtUp.Seconds()/outage.Seconds())
	http.DefaultClient.CloseIdleConnections()
}
