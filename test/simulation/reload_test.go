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

// variant is a variant of a node's configuration, which is changed by reloads. A node starts with
// the zero value. Receivers do not change.
type variant struct {
	processors  int // selects the list of processors
	concurrency int // added to the concurrency of the batch processor
	// patience is added to the timeout and initial retry interval of an agent's exporter, and to
	// the query timeout of a collector.
	patience   time.Duration
	senders    int // added to the number of consumers of an agent's queue
	queueBytes int // added to the size of an agent's queue
	second     int // selects the second exporter of an agent
	store      int // added to settings of a collector's store that do not affect results
}

func newVariant(r *rand.Rand) variant {
	v := variant{processors: r.IntN(4), second: max(0, r.IntN(6)-3)}
	for _, n := range []*int{&v.concurrency, &v.senders, &v.store} {
		*n = max(0, r.IntN(5)-2)
	}
	v.queueBytes = max(0, r.IntN(2000)-1000)
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
    %[5]s
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
	storage := "disk"
	if p.inMemory[i] {
		storage = ""
	}
	return fmt.Sprintf(simulatedAgent, agentAddr(i), 2+v.concurrency, collectorAddr(i%p.collectors),
		p.exporter, p.connection(), 5*time.Second+v.patience, 200*time.Millisecond+v.patience,
		storage, p.senders+v.senders, p.queueBytes+v.queueBytes, p.overflow, v.chain(), v.secondExporter())
}

// connection returns the lines of the exporter's configuration that say where the collectors are.
func (p *plan) connection() string {
	if p.exporter == loadBalancing {
		return fmt.Sprintf("resolver: {dns: {hostname: %s, interval: 2s}}\n    protocol: {otlp: {tls: {insecure: true}}}", collectorName)
	}
	var endpoints []string
	for c := range p.collectors {
		endpoints = append(endpoints, p.hopAddr(c))
	}
	return fmt.Sprintf("endpoint: %q\n    tls: {insecure: true}", strings.Join(endpoints, ","))
}

func (p *plan) collectorConfig(i int, v variant) string {
	return fmt.Sprintf(simulatedCollector, collectorAddr(i), 2+v.concurrency, p.memtableAge, 1+v.store,
		20*time.Second+v.patience, v.chain())
}

// load reads the configuration of the node.
func (n *node) load() (*app.Config, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return app.Load(app.LoadOptions{Factories: tracing.Components(),
		Presets: []app.Preset{{Name: n.name, YAML: []byte(n.configure(n.variant))}}})
}

// write changes the configuration file of the node. The program reads it at a start or reload.
func (n *node) write(v variant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.variant = v
}

// reloadPauses is the length of a reload fault divided by the time between two of its reloads.
const reloadPauses = 20

// reload loads several configurations into a program, one after the other. The program may crash
// during a reload. It is restarted if it has crashed, or if it has no running components
// because of a disk fault.
func (f fault) reload(w *world, n *node) {
	l := n.acquire()
	if l == nil {
		return
	}
	defer n.release()
	switch f.meanwhile {
	case "":
	case restart:
		l.arm(f.ends[0])
	default:
		f.kind = f.meanwhile
		w.tasks.Go(func() { f.breakDisk(n) })
		time.Sleep(time.Millisecond)
	}
	for i, v := range f.variants {
		if i > 0 {
			time.Sleep(f.length / reloadPauses)
		}
		n.write(v)
		if l.reload(); !l.app.Health().Ready || l.hasEnded() {
			break
		}
	}
	l.disarm()
	switch {
	case l.hasEnded():
		w.count(func(r *simulationResult) { r.CrashedReloading++ })
	case l.app.Health().Ready:
		return
	default:
		w.count(func(r *simulationResult) { r.Broken++ })
		l.stop() //nolint:errcheck // fails because of the disk fault
	}
	f.startAgain(n)
}

// reload makes a program reload its configuration. The reload may fail only because of a disk fault
// or a crash. If it fails because of a disk fault, the previous configuration must stay active.
func (l *process) reload() {
	n, w := l.node, l.node.w
	l.reloads.Add(1)
	defer l.reloads.Done()
	before := l.app.Status().Configuration.Reloads
	l.disk.limitHangs(true)
	defer l.disk.limitHangs(false)
	active, earlier := l.disk.faultCounts()
	err := l.app.Reload(context.Background(), n.load)
	_, soFar := l.disk.faultCounts()
	now := l.app.Status().Configuration
	w.logf("%s reloaded its configuration: %v", n.name, err)
	switch {
	case l.hasEnded():
	case err == nil:
		w.count(func(r *simulationResult) { r.Reloads += now.Reloads - before })
	case active == 0 && soFar == earlier:
		w.t.Errorf("reload of %s failed: %v", n.name, err)
	default:
		w.count(func(r *simulationResult) { r.Refusals++ })
		if now.Reloads != before || now.Problem != err.Error() {
			w.t.Errorf("reload of %s failed: %v; status is %+v", n.name, err, now)
		}
	}
}

// processRange is the range of processes that a node had between two points in time.
type processRange struct {
	node        *node
	first, last int
}

// latest returns the number of the latest process of a node.
func (n *node) latest() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.started
}

// crashed reports whether one of the processes crashed.
func (s processRange) crashed() bool {
	return slices.ContainsFunc(s.node.w.processes, func(l *process) bool {
		return l.node == s.node && s.first <= l.number && l.number <= s.last && l.crashed.Load()
	})
}
