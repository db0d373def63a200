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
// are back, once, and the agent catches up though the load goes on.
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
	before := startPacedLoad(t, agent.address("otlp", "protocols.grpc"), 1, l)
	before.await(20)
	struck := time.Now()
	first.kill()
	time.Sleep(away)
	before.end()
	waiting := queued(t, agent)
	if waiting == 0 {
		t.Fatal("nothing is queued though the collector is away")
	}
	agent.kill()

	agent = run(t, "--config", config)
	if open := agent.await("msg", "sending queue is open"); open["spans"].(float64) < waiting {
		t.Errorf("%v spans were queued, the next process finds %v", waiting, open["spans"])
	}
	after := startPacedLoad(t, agent.address("otlp", "protocols.grpc"), 2, l)
	second := collector("--set", "receivers::native::protocols::grpc::endpoint="+addr)
	outage, back, backlog := time.Since(struck), time.Now(), queued(t, agent)
	awaitBacklog(t, agent, spansUnderWay)
	caughtUp := time.Since(back)
	after.end()
	awaitBacklog(t, agent, 0)
	acked, found := l.check(t, "http://"+second.address("query", "http"))
	agent.terminate()
	if line := agent.await("msg", "final accounting of spans"); line["balanced"] != true {
		t.Errorf("the agent: %v", line)
	}
	t.Logf("%d spans acknowledged, %d found; %v were queued when the agent was killed", acked, found, waiting)
	t.Logf("%.0f spans/s; after an outage of %.1f s %v were queued, %.1f s later, at %.0f spans/s, none was: %.2f of the outage",
		before.rate(), outage.Seconds(), backlog, caughtUp.Seconds(), after.rate(), caughtUp.Seconds()/outage.Seconds())
	http.DefaultClient.CloseIdleConnections()
}

// Of the load in TestOutage.
const (
	spansOfLoad   = 100 // in a request
	loadsAtOnce   = 4   // requests
	spansUnderWay = spansOfLoad * loadsAtOnce
	loadInterval  = 10 * time.Millisecond // between requests: a rate that the test's ledger keeps up with
)

// pacedLoad sends spans at a steady rate until it is told to end.
type pacedLoad struct {
	t       *testing.T
	stop    context.CancelFunc // sends no more
	done    chan struct{}
	err     error       // set when done
	result  load.Result // set when done
	mu      sync.Mutex
	acked   int // requests
	changed *sync.Cond
}

func startPacedLoad(t *testing.T, target string, seed uint64, l *ledger) *pacedLoad {
	t.Helper()
	stopped, stop := context.WithCancel(t.Context())
	p := &pacedLoad{t: t, stop: stop, done: make(chan struct{})}
	p.changed = sync.NewCond(&p.mu)
	requests := func(yield func(bench.Request) bool) {
		tick := time.NewTicker(loadInterval)
		defer tick.Stop()
		for r := range bench.New(seed, time.Now()).Requests(1<<30, spansOfLoad) {
			l.note(t, r.Body, false)
			if stopped.Err() != nil || !yield(r) {
				return
			}
			<-tick.C
		}
	}
	go func() {
		defer close(p.done)
		p.result, p.err = load.Run(t.Context(), load.Options{Target: target, Connections: 2, InFlight: loadsAtOnce / 2, Retry: time.Minute,
			Acked: func(r bench.Request) {
				l.note(t, r.Body, true)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.acked++
				p.changed.Broadcast()
			}}, requests)
	}()
	t.Cleanup(func() { <-p.done })
	return p
}

// await waits until so many requests are acknowledged.
func (p *pacedLoad) await(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.acked < requests {
		p.changed.Wait()
	}
}

// end waits until what was sent is answered.
func (p *pacedLoad) end() {
	p.t.Helper()
	p.stop()
	if <-p.done; p.err != nil {
		p.t.Fatal(p.err)
	}
}

// rate is what was acknowledged, in spans per second.
func (p *pacedLoad) rate() float64 { return float64(p.result.Acked) / p.result.Elapsed.Seconds() }

// awaitBacklog waits until no more than so many spans are in the sending queue of a process.
func awaitBacklog(t *testing.T, p *process, spans float64) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); queued(t, p) > spans; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v spans are still queued", queued(t, p))
		}
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
