package doctor_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// aboutKafka returns the findings of the check kafka for a preset.
func aboutKafka(t *testing.T, preset string, args ...string) string {
	t.Helper()
	args = append([]string{"doctor", preset, "--timeout=2s"}, args...)
	for _, other := range []string{"configuration", "ports", "certificates", "clock", "fsync", "disk", "files", "memory", "udp", "connections",
		"clickhouse", "versions", "sampling", "spans"} {
		args = append(args, "--skip="+other)
	}
	code, stdout, stderr := inprocess.RunCommand(t, args...)
	if code > 1 {
		t.Error(stderr)
	}
	return stdout
}

func component(preset string) string {
	if preset == "ingester" {
		return "receivers::kafka"
	}
	return "exporters::kafka"
}

func TestCheckKafka(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	create := func(topic string, replicas int16, minimum string) {
		t.Helper()
		if _, err := admin.CreateTopic(t.Context(), 6, replicas, map[string]*string{"min.insync.replicas": &minimum}, topic); err != nil {
			t.Fatal(err)
		}
	}
	create("good", 3, "2")
	create("single", 1, "1")
	create("weak", 3, "1")
	create("strict", 3, "3")
	create("pair", 2, "1")
	broker := cluster.ListenAddrs()[0]
	f := func(preset, topic string, want ...string) {
		t.Helper()
		got := aboutKafka(t, preset, "--set="+component(preset)+"::brokers=["+broker+"]", "--set="+component(preset)+"::topic="+topic)
		for _, line := range append(want, "3 brokers respond") {
			if !strings.Contains(got, line) {
				t.Errorf("%s with topic %s: %q is missing in\n%s", preset, topic, line, got)
			}
		}
	}
	f("collector-kafka", "good", "ok       exporters::kafka topic good: 6 partitions with 3 replicas, min.insync.replicas 2")
	f("ingester", "good", "ok       receivers::kafka topic good: 6 partitions with 3 replicas")
	f("collector-kafka", "single", "warning  ", "-> create the topic with three replicas")
	f("collector-kafka", "weak", "warning  ", "-> set min.insync.replicas of the topic to 2")
	f("collector-kafka", "strict", "warning  ", "nothing can be written while one broker is down")
	f("collector-kafka", "pair", "warning  ", "-> create the topic with three replicas: with two, ")
	f("ingester", "missing", "problem  receivers::kafka topic missing: does not exist", "-> create the topic")
}

// Brokers that do not answer are a problem. Without the components, nothing is checked.
func TestCheckKafkaWithoutBroker(t *testing.T) {
	got := aboutKafka(t, "ingester", "--set=receivers::kafka::brokers=[127.0.0.1:1]")
	if !strings.Contains(got, "problem  receivers::kafka (127.0.0.1:1): no broker responds: ") {
		t.Errorf("got\n%s", got)
	}
	if got := aboutKafka(t, "all-in-one"); !strings.Contains(got, "skipped  no receiver or exporter of the type kafka") {
		t.Errorf("got\n%s", got)
	}
}
