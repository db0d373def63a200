package delivery_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/engines/process"
	"github.com/tracing-backend/tracing/test/harness"
)

// partitions is the number of partitions of the topic.
const partitions = 6

// installation is a cluster with collectors that write to it, ingesters that read from it, and the
// store to which all ingesters send.
type installation struct {
	*broker.Cluster
	t          *testing.T
	topic      string
	group      string
	store      *member
	collectors []*member
	ingesters  []*member
}

// install starts a store, and a number of collectors and ingesters.
func install(t *testing.T, brokers *broker.Cluster, collectors, ingesters int) *installation {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	i := &installation{Cluster: brokers, t: t, group: broker.UniqueName()}
	i.topic = i.Topic(t, partitions)
	ports, err := process.FreePorts(1 + collectors)
	if err != nil {
		t.Fatal(err)
	}
	i.store = &member{yaml: fmt.Sprintf(storeConfig, process.LocalAddr(ports[0]), t.TempDir()), address: process.LocalAddr(ports[0])}
	i.store.start(t)
	for _, port := range ports[1:] {
		m := &member{address: process.LocalAddr(port),
			yaml: fmt.Sprintf(collectorConfig, process.LocalAddr(port), strings.Join(i.Brokers(), ", "), i.topic, t.TempDir())}
		m.start(t)
		i.collectors = append(i.collectors, m)
	}
	for n := range ingesters {
		m := i.newIngester()
		if n%2 == 1 { // after a restart, a static member gets its partitions without a rebalance
			m.yaml = strings.Replace(m.yaml, "group_id:", fmt.Sprintf("group_instance_id: ingester-%d\n    group_id:", n), 1)
		}
		m.start(t)
		i.ingesters = append(i.ingesters, m)
	}
	return i
}

// newIngester returns an ingester that is not started.
func (i *installation) newIngester() *member {
	return &member{yaml: fmt.Sprintf(ingesterConfig, strings.Join(i.Brokers(), ", "), i.topic, i.group, i.store.address, i.t.TempDir())}
}

// The collector has no queue: its clients get the response of the brokers.
const collectorConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {kafka: {brokers: [%s], topic: %s}}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [kafka]}}
`

// The ingester has no queue: it commits what the store has acknowledged.
const ingesterConfig = `
receivers:
  kafka:
    brokers: [%s]
    topic: %s
    group_id: %s
    session_timeout: 6s
    heartbeat_interval: 1s
    autocommit: {interval: 100ms}
    error_backoff: {initial_interval: 50ms, max_interval: 500ms}
exporters:
  otlp: {endpoint: %q, tls: {insecure: true}, retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 5s}}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [kafka], exporters: [otlp]}}
`

const storeConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {disk: {reserve: 0}}
extensions:
  admin: {endpoint: "localhost:0"}
  query: {storage: disk, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}
  remote_storage: {storage: disk, endpoint: "localhost:0"}
service:
  data_dir: %q
  extensions: [query, remote_storage, admin]
  pipelines: {traces: {receivers: [otlp], exporters: [disk]}}
`

// member is a process of an installation, which may be killed and restarted.
type member struct {
	*harness.Process
	yaml    string
	address string // of its OTLP receiver, if it has one

	repeated, accepted float64 // counters of the processes that have ended
}

func (m *member) start(t *testing.T) {
	t.Helper()
	m.Process = harness.RunYAML(t, m.yaml)
	m.AwaitReady()
}

// kill ends the process with SIGKILL and keeps its counters.
func (m *member) kill() {
	m.T.Helper()
	m.repeated, m.accepted = m.repeatedRecords(), m.acceptedSpans()
	m.Kill()
}

// pause stops the process until it gets SIGCONT.
func (m *member) pause() { m.Signal(syscall.SIGSTOP) }

func (m *member) resume() { m.Signal(syscall.SIGCONT) }

// repeatedRecords returns how many records the receiver for Kafka has read more than once, as far
// as its process could know.
func (m *member) repeatedRecords() float64 {
	return m.repeated + m.sum("tracing_kafka_consumer_repeated_records_total")
}

// acceptedSpans returns the number of spans that the receivers have accepted. What was accepted
// shortly before a kill is missing.
func (m *member) acceptedSpans() float64 {
	return m.accepted + m.sum("tracing_pipeline_spans_total", `kind="receiver"`, `outcome="accepted"`)
}

// sum adds up the samples of a metric with the given labels.
func (m *member) sum(name string, labels ...string) (sum float64) {
	m.T.Helper()
samples:
	for sample, v := range harness.Metrics(m.T, m.AdminURL()) {
		if !strings.HasPrefix(sample, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(sample, l) {
				continue samples
			}
		}
		sum += v
	}
	return sum
}
