package tracing_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/bench"
	"github.com/tracing-backend/tracing/internal/bench/load"
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
// are back, once.
func TestOutage(t *testing.T) {
	skipShort(t)
	dir := t.TempDir()
	away := time.Duration(fromEnv(t, outageSeconds, 1)) * time.Second
	collector := func(more ...string) *process {
		p := run(t, preset("collector", filepath.Join(dir, "collector"), more...)...)
		p.await("msg", "Health Check state change", "status", "ready")
		return p
	}
	first := collector()
	addr := first.address("native", "protocols.grpc")
	config := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, queueingAgent, addr, filepath.Join(dir, "agent")), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := run(t, "--config", config)
	agent.await("msg", "Health Check state change", "status", "ready")

	l := &ledger{traces: make(map[string]map[string]bool)}
	loadThroughOutage(t, agent.address("otlp", "protocols.grpc"), l, away, func() {
		first.cmd.Process.Kill() //nolint:errcheck // wait tells
		first.wait()
	})
	waiting := queued(t, agent)
	if waiting == 0 {
		t.Fatal("nothing is queued though the collector is away")
	}
	agent.cmd.Process.Kill() //nolint:errcheck // wait tells
	agent.wait()

	agent = run(t, "--config", config)
	if open := agent.await("msg", "sending queue is open"); open["spans"].(float64) < waiting {
		t.Errorf("%v spans were queued, the next process finds %v", waiting, open["spans"])
	}
	second := collector("--set", "receivers::native::protocols::grpc::endpoint="+addr)
	for deadline := time.Now().Add(time.Minute); queued(t, agent) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v spans are still queued", queued(t, agent))
		}
	}
	acked, found := l.check(t, "http://"+second.address("query", "http"))
	agent.terminate()
	if line := agent.await("msg", "final accounting of spans"); line["balanced"] != true {
		t.Errorf("the agent: %v", line)
	}
	t.Logf("%d spans acknowledged, %d found; %v were queued when the agent was killed", acked, found, waiting)
	http.DefaultClient.CloseIdleConnections()
}

// loadThroughOutage sends spans, calls strike in the middle, and goes on for as long as the collector shall be away.
func loadThroughOutage(t *testing.T, target string, l *ledger, away time.Duration, strike func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), away+time.Minute)
	defer cancel()
	const before, perRequest = 20, 100 // requests
	var mu sync.Mutex
	requests, struck := 0, time.Time{}
	middle := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := load.Run(ctx, load.Options{Target: target, Connections: 2, InFlight: 2, Retry: time.Minute, Acked: func(r bench.Request) {
			l.note(t, r.Body, true)
			mu.Lock()
			defer mu.Unlock()
			if requests++; requests == before {
				close(middle)
			}
		}}, func(yield func(bench.Request) bool) {
			for r := range bench.New(1, time.Now()).Requests(1<<30, perRequest) {
				mu.Lock()
				over := !struck.IsZero() && time.Since(struck) > away
				mu.Unlock()
				l.note(t, r.Body, false)
				if over || !yield(r) {
					return
				}
				time.Sleep(5 * time.Millisecond) // a rate that the test's ledger keeps up with
			}
		})
		done <- err
	}()
	<-middle
	strike()
	mu.Lock()
	struck = time.Now()
	mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// queued returns how many spans are in the sending queue of a process.
func queued(t testing.TB, p *process) float64 {
	t.Helper()
	for name, v := range metrics(t, "http://"+p.address("admin", "http")) {
		if strings.HasPrefix(name, "tracing_queue_spans{") {
			return v
		}
	}
	t.Fatal("there is no metric of the queue")
	return 0
}
