package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// variant is what reloads change in a node's configuration; the zero value is what a node begins
// with. Receivers stay as they are.
type variant struct {
	processors  int
	concurrency int           // beyond 1, of the processor batch
	patience    time.Duration // beyond 5 s and 200 ms: timeout and first pause of an agent's exporter; beyond 20 s: of queries
	senders     int           // beyond the plan's: consumers of an agent's queue
	room        int           // beyond the plan's: its bytes
	second      int           // exporter of an agent
	store       int           // of a collector: its settings that change nothing one could see
}

func newVariant(r *rand.Rand) variant {
	v := variant{processors: r.IntN(4), second: max(0, r.IntN(6)-3)}
	for _, n := range []*int{&v.concurrency, &v.senders, &v.store} {
		*n = max(0, r.IntN(5)-2)
	}
	v.room = max(0, r.IntN(2000)-1000)
	v.patience = time.Duration(max(0, r.IntN(5)-2)) * 50 * time.Millisecond
	return v
}

func (v variant) chain() string {
	return []string{"batch", "", "batch/joined", "batch, batch/joined"}[v.processors]
}

func (v variant) secondExporter() string { return []string{"", ", nop", ", otlp/direct"}[v.second] }

const simulatedAgent = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "%[1]s:4317"}, http: {endpoint: "%[1]s:4318"}}}
  thriftudp: {compact: {endpoint: "%[1]s:6831"}}
processors: {batch: {concurrency: %[2]d}, batch/joined: {timeout: 20ms}}
exporters:
  nop:
  otlp/direct:
    endpoint: "%[3]s:4317"
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 200ms, max_interval: 1s, max_elapsed_time: 3s}
  %[4]s:
    endpoint: "%[5]s"
    tls: {insecure: true}
    timeout: %[6]s
    retry_on_failure: {initial_interval: %[7]s, max_interval: 3s, max_elapsed_time: 0s}
    sending_queue: {storage: "%[8]s", queue_size: 0, num_consumers: %[9]d, max_bytes: %[10]d, overflow: %[11]s}
service:
  data_dir: /data
  limits: {inflight: 64MiB}
  pipelines: {traces: {receivers: [otlp, thriftudp], processors: [%[12]s], exporters: [%[4]s%[13]s]}}
`

const simulatedCollector = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "%[1]s:4317"}}}
  native: {protocols: {grpc: {endpoint: "%[1]s:14250"}}}
processors: {batch: {concurrency: %[2]d}, batch/joined: {timeout: 20ms}}
exporters:
  disk: {memtable: {max_bytes: 1MiB, max_spans: 1000, max_age: %[3]s}, cache: %[4]dMiB, decoders: %[4]d, reserve: 64KiB, min_free: 64KiB}
extensions: {query: {storage: disk, http: {endpoint: "%[1]s:16686"}, query_timeout: %[5]s}}
service:
  data_dir: /data
  limits: {inflight: 64MiB}
  extensions: [query]
  pipelines: {traces: {receivers: [otlp, native], processors: [%[6]s], exporters: [disk]}}
`

func (p *plan) agentConfig(i int, v variant) string {
	var endpoints []string
	for c := range p.collectors {
		endpoints = append(endpoints, p.hopAddr(c))
	}
	storage := "disk"
	if p.inMemory[i] {
		storage = ""
	}
	return fmt.Sprintf(simulatedAgent, agentAddr(i), 2+v.concurrency, collectorAddr(i%p.collectors), p.exporter, strings.Join(endpoints, ","),
		5*time.Second+v.patience, 200*time.Millisecond+v.patience, storage, p.senders+v.senders, p.queueBytes+v.room, p.overflow,
		v.chain(), v.secondExporter())
}

func (p *plan) collectorConfig(i int, v variant) string {
	return fmt.Sprintf(simulatedCollector, collectorAddr(i), 2+v.concurrency, p.memtableAge, 1+v.store, 20*time.Second+v.patience, v.chain())
}

// load reads the node's configuration.
func (n *node) load() (*app.Config, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return app.Load(app.LoadOptions{Factories: tracing.Components(),
		Presets: []app.Preset{{Name: n.name, YAML: []byte(n.configure(n.variant))}}})
}

// write changes the node's configuration, as a file that a program reads when it starts or is told
// to.
func (n *node) write(v variant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.variant = v
}

// pauses is how much shorter than those of other faults the times between two reloads are.
const pauses = 20

// reload gives a program other configurations, one after the other. It may be struck in the middle
// of one. Who is left without components, because a disk fails, is started again.
func (f fault) reload(w *world, n *node) {
	l := n.take()
	if l == nil {
		return
	}
	defer n.release()
	switch f.amid {
	case "":
	case restart:
		l.arm(f.deaths[0])
	default:
		f.kind = f.amid
		w.tasks.Go(func() { f.spoil(n) })
		time.Sleep(time.Millisecond)
	}
	for i, v := range f.variants {
		if i > 0 {
			time.Sleep(f.length / pauses)
		}
		n.write(v)
		if l.reload(); !l.app.Health().Ready || l.dead() {
			break
		}
	}
	l.disarm()
	switch {
	case l.dead():
		w.count(func(r *simulationResult) { r.DiedReloading++ })
	case l.app.Health().Ready:
		return
	default:
		w.count(func(r *simulationResult) { r.Broken++ })
		l.stop() //nolint:errcheck // its disk is bad
	}
	f.revive(n)
}

// reload makes a program read its configuration again. Nothing but its disk, and its death, may
// keep it from what it reads; and then it goes on as it was.
func (l *life) reload() {
	n, w := l.node, l.node.w
	l.reloads.Add(1)
	defer l.reloads.Done()
	before := l.app.Status().Configuration.Reloads
	l.disk.hurry(true)
	defer l.disk.hurry(false)
	wrong, earlier := l.disk.troubles()
	err := l.app.Reload(context.Background(), n.load)
	_, soFar := l.disk.troubles()
	now := l.app.Status().Configuration
	w.logf("%s has read its configuration: %v", n.name, err)
	switch {
	case l.dead():
	case err == nil:
		w.count(func(r *simulationResult) { r.Reloads += now.Reloads - before })
	case wrong == 0 && soFar == earlier:
		w.t.Errorf("%s does not take its configuration: %v", n.name, err)
	default:
		w.count(func(r *simulationResult) { r.Refusals++ })
		if now.Reloads != before || now.Problem != err.Error() {
			w.t.Errorf("%s has not taken a configuration, and shows %+v", n.name, now)
		}
	}
}

// lifespan is the lives that a node had between two moments.
type lifespan struct {
	node        *node
	first, last int
}

// life is the number of the latest life of a node.
func (n *node) latest() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.born
}

// struck reports whether one of the lives has ended in a death.
func (s lifespan) struck() bool {
	return slices.ContainsFunc(s.node.w.lives, func(l *life) bool {
		return l.node == s.node && s.first <= l.number && l.number <= s.last && l.struck.Load()
	})
}
