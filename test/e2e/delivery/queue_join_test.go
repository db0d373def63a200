package delivery_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// joiningAgent joins the batches of its queue into requests of at most 100 spans.
const joiningAgent = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters:
  native:
    endpoint: %q
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s}
    sending_queue: {storage: disk, queue_size: 0, num_consumers: 2, batch: {min_size: 50, max_size: 100, flush_timeout: 50ms}}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [native]}}
`

// TestKillWhileJoining kills an agent that joins the batches of its queue, once while the next hop
// is unavailable and once while it accepts requests. Every acknowledged span arrives.
func TestKillWhileJoining(t *testing.T) {
	const requests = 200
	hop, dir := startCountingHop(t, true), t.TempDir()
	start := func() *harness.Process {
		p := harness.RunYAML(t, fmt.Sprintf(joiningAgent, hop.addr, dir))
		p.AwaitReady()
		return p
	}
	agent := start()
	acked, _ := sendNumbered(t, agent, 0, 0, requests)
	awaitRetries(t, agent)
	agent.Kill()

	agent = start()
	hop.setDown(false)
	harness.Poll(t, "no span arrives", func() bool { return len(hop.arrived()) > 0 })
	agent.Kill()

	agent = start()
	more, _ := sendNumbered(t, agent, time.Minute, requests, 20)
	harness.AwaitQueue(t, agent, 0)
	account := exporterAccount(t, agent)
	arrived := hop.arrived()
	if len(acked) != requests || len(missing(acked, arrived)) > 0 || len(more) != 20 || len(missing(more, arrived)) > 0 {
		t.Errorf("%d and %d requests were acknowledged; did not arrive: %v %v", len(acked), len(more), missing(acked, arrived),
			missing(more, arrived))
	}
	if in := count(account, "in"); in == 0 || count(account, "sent") != in {
		t.Errorf("%v", account)
	}
	http.DefaultClient.CloseIdleConnections()
}
