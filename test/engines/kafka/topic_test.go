package kafka_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

const creatorConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters:
  kafka:
    brokers: [%s]
    topic: %s
    create_topic: {partitions: 5, replication_factor: 3, retention: 2h, max_bytes: 64MiB}
service:
  data_dir: %q
  pipelines: {traces: {receivers: [otlp], exporters: [kafka]}}
`

// TestCreateTopic checks that the exporter creates a topic that does not lose acknowledged records
// with a broker.
func TestCreateTopic(t *testing.T) {
	c, topic := anyBrokers(t), broker.UniqueName()
	client, err := broker.Client(c.Brokers()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if brokers, err := admin.ListBrokers(t.Context()); err != nil || len(brokers) < 3 {
		t.Skipf("needs three brokers for three replicas, there are %d (%v)", len(brokers), err)
	}
	p := inprocess.StartYAML(t, fmt.Sprintf(creatorConfig, strings.Join(c.Brokers(), ", "), topic, t.TempDir()))
	post(t, p, testSpans())
	t.Cleanup(func() { c.Delete(t, topic) })
	topics, err := admin.ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if n, replicas := len(topics[topic].Partitions), topics[topic].Partitions.NumReplicas(); n != 5 || replicas != 3 {
		t.Errorf("topic has %d partitions with %d replicas, want 5 with 3", n, replicas)
	}
	resources, err := admin.DescribeTopicConfigs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	config, err := resources.On(topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"min.insync.replicas": "2", "retention.ms": "7200000", "retention.bytes": "67108864"}
	for _, key := range config.Configs {
		if value, ok := want[key.Key]; ok && key.MaybeValue() != value {
			t.Errorf("%s is %s, want %s", key.Key, key.MaybeValue(), value)
		}
		delete(want, key.Key)
	}
	if len(want) > 0 {
		t.Errorf("the topic has no settings %v", want)
	}
}
