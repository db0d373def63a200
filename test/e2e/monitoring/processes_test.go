package monitoring_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/harness"
)

// installation is every kind of process: applications ─▶ agent and gateway ─▶ collector ◀─ query
// service, the canary beside them, and a collector whose disk is full.
type installation struct {
	t    *testing.T
	data string // folder of the collector

	collector, agent, gateway, query, full, canary *harness.Process

	ports []string // settings for the ports of the collector, which starts twice
}

// The collector's memtables are short-lived and its calculations frequent, so that everything
// happens within seconds.
var collectorSettings = []string{"exporters::disk::memtable::max_age=2s", "extensions::sampling::adaptive::storage=disk",
	"extensions::sampling::adaptive::calculation_interval=1s", "extensions::sampling::adaptive::calculation_delay=1s",
	"extensions::sampling::file=null", "processors::adaptive_sampling::sampling=sampling",
	"service::pipelines::traces::processors=[adaptive_sampling, batch]"}

const gateway = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}}
processors:
  probabilistic_sampler: {sampling_percentage: 50}
  tail_sampling: {decision_wait: 1s, policies: [{name: all, type: always_sample}]}
exporters:
  load_balancing:
    protocol: {otlp: {tls: {insecure: true}}}
    resolver: {static: {hostnames: [%q]}}
    sending_queue: {queue_size: 100}
  nop:
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines:
    traces: {receivers: [otlp], processors: [probabilistic_sampler, tail_sampling], exporters: [load_balancing]}
    logs: {receivers: [otlp], exporters: [nop]}
`

func install(t *testing.T) *installation {
	t.Helper()
	in := &installation{t: t, data: t.TempDir()}
	for _, key := range []string{"receivers::otlp::protocols::grpc", "receivers::otlp::protocols::http", "receivers::native::protocols::grpc",
		"extensions::remote_storage", "extensions::admin"} {
		in.ports = append(in.ports, key+"::endpoint="+pipelinetest.FixedAddress(t))
	}
	in.startCollector()
	in.agent = in.start("agent", "exporters::native::endpoint="+in.collector.Address("native", "protocols.grpc"),
		"extensions::sampling::remote::endpoint="+in.collector.Address("native", "protocols.grpc"))
	in.query = in.start("query", "exporters::grpc::endpoint="+in.collector.Address("remote_storage", "grpc"))
	in.full = in.start("collector", "exporters::disk::min_free=1000TiB")
	in.gateway = harness.RunYAML(t, fmt.Sprintf(gateway, in.collector.OTLPGRPC(), t.TempDir()))
	in.canary = harness.Run(t, "canary", "--listen=localhost:0", "--interval=100ms", "--ages=1s",
		"--otlp=http://"+in.collector.OTLPHTTP(), "--query="+in.query.QueryURL())
	for _, p := range []*harness.Process{in.agent, in.query, in.gateway} {
		p.AwaitReady()
	}
	return in
}

// startCollector starts the collector, each time on the same ports.
func (in *installation) startCollector() {
	args := harness.PresetArgs("collector", in.data, harness.SetArgs(append(collectorSettings, in.ports...)...)...)
	in.collector = harness.Run(in.t, args...)
	in.collector.AwaitReady()
}

func (in *installation) start(preset string, settings ...string) *harness.Process {
	return harness.Run(in.t, harness.PresetArgs(preset, in.t.TempDir(), harness.SetArgs(settings...)...)...)
}

// targets returns the addresses with metrics by job.
func (in *installation) targets() map[string]string {
	return map[string]string{"tracing-collector": in.collector.Address("admin", "http"), "tracing-agent": in.agent.Address("admin", "http"),
		"tracing-query": in.query.Address("admin", "http"), "tracing-gateway": in.gateway.Address("admin", "http"),
		"tracing-full":   in.full.Address("admin", "http"),
		"tracing-canary": in.canary.Await("msg", "serving metrics")["http.host-port"].(string)}
}

// requirePrometheus returns the path of Prometheus. Without it, the test is skipped, or fails where
// CI is set.
func requirePrometheus(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("prometheus is not installed; install the package prometheus")
	}
	t.Skip("prometheus is not installed; install the package prometheus to run this test")
	return ""
}

// deployed returns the files in deploy/monitoring that match a pattern.
func deployed(t *testing.T, pattern string) []string {
	t.Helper()
	return files(t, "deploy", "monitoring", pattern)
}

func runbooks(t *testing.T) []string {
	t.Helper()
	return files(t, "docs", "runbooks", "*.md")
}

// files returns the files of the repository that match a pattern.
func files(t *testing.T, pattern ...string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(append([]string{harness.Root(t)}, pattern...)...))
	if err != nil || len(found) == 0 {
		t.Fatalf("no files %s: %v", filepath.Join(pattern...), err)
	}
	return found
}
