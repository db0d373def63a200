package delivery_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// queueingAgent is an agent with a receiver that acknowledges spans.
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

// TestOutage kills the collector under load, and then the agent. When both have restarted, every
// span that the agent had acknowledged arrives exactly once, and the queue becomes empty while the
// load continues.
func TestOutage(t *testing.T) {
	harness.SkipIfShort(t)
	dir := t.TempDir()
	outage := time.Duration(min(soak.Rounds(t, 1, 1), 20)) * time.Second
	addr := pipelinetest.FixedAddress(t)
	collector := func() *harness.Process {
		p := harness.Run(t, harness.CollectorArgs(filepath.Join(dir, "collector"),
			harness.SetArgs("receivers::native::protocols::grpc::endpoint="+addr)...)...)
		p.AwaitReady()
		return p
	}
	first := collector()
	config := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, queueingAgent, addr, filepath.Join(dir, "agent")), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := harness.Run(t, "--config", config)
	agent.AwaitReady()

	l := harness.NewSentSpans()
	before := harness.StartSteadyLoad(t, agent.OTLPGRPC(), 1, l)
	before.Await(20)
	first.Kill()
	time.Sleep(outage)
	before.End()
	waiting := harness.Queued(t, agent)
	if waiting == 0 {
		t.Fatal("the queue is empty during the outage")
	}
	agent.Kill()

	agent = harness.Run(t, "--config", config)
	if open := agent.Await("msg", "opened sending queue"); open["spans"].(float64) < waiting {
		t.Errorf("%v spans were queued, the new process found %v", waiting, open["spans"])
	}
	after := harness.StartSteadyLoad(t, agent.OTLPGRPC(), 2, l)
	second := collector()
	harness.AwaitQueue(t, agent, harness.SteadyLoadInFlight)
	after.End()
	harness.AwaitQueue(t, agent, 0)
	acked, found := l.Check(t, second.QueryURL())
	agent.Terminate()
	agent.Accounting()
	t.Logf("%d spans acknowledged, %d found; %v were queued when the agent was killed", acked, found, waiting)
	http.DefaultClient.CloseIdleConnections()
}
