package doctor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	kafkaexporter "github.com/tracing-backend/tracing/exporters/kafka"
	"github.com/tracing-backend/tracing/exporters/nop"
	"github.com/tracing-backend/tracing/internal/commands/doctor"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	kafkareceiver "github.com/tracing-backend/tracing/receivers/kafka"
	"github.com/tracing-backend/tracing/receivers/otlp"
)

// aboutKafka returns the findings of the check kafka for a configuration file.
func aboutKafka(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"doctor", "--timeout=2s", "--config=" + file}
	for _, other := range []string{"configuration", "ports", "certificates", "clock", "fsync", "disk", "files", "memory", "udp", "connections",
		"clickhouse", "versions", "sampling", "spans"} {
		args = append(args, "--skip="+other)
	}
	var stdout, stderr bytes.Buffer
	components := []pipeline.Factory{otlp.Factory(), kafkareceiver.Factory(), kafkaexporter.Factory(),
		nop.Factory().Commands(doctor.Commands()...)}
	if app.Run(t.Context(), args, &stdout, &stderr, components) > 1 {
		t.Error(stderr.String())
	}
	return stdout.String()
}

// from and to are configurations that read spans from a topic and write them to it.
func from(broker, topic string) string {
	return fmt.Sprintf("receivers: {kafka: {brokers: ['%s'], topic: %s}}\nexporters: {nop: }\n%s", broker, topic,
		fmt.Sprintf(pipelines, "kafka", "nop"))
}

func to(broker, topic string) string {
	return fmt.Sprintf("receivers: {otlp: {protocols: {http: }}}\nexporters: {kafka: {brokers: ['%s'], topic: %s}}\n%s", broker, topic,
		fmt.Sprintf(pipelines, "otlp", "kafka"))
}

const pipelines = "service: {pipelines: {traces: {receivers: [%s], exporters: [%s]}}}"

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
	f := func(configuration func(broker, topic string) string, topic string, want ...string) {
		t.Helper()
		yaml := configuration(broker, topic)
		got := aboutKafka(t, yaml)
		for _, line := range append(want, "3 brokers respond") {
			if !strings.Contains(got, line) {
				t.Errorf("%s\n%q is missing in\n%s", yaml, line, got)
			}
		}
	}
	f(to, "good", "ok       exporters::kafka topic good: 6 partitions with 3 replicas, min.insync.replicas 2")
	f(from, "good", "ok       receivers::kafka topic good: 6 partitions with 3 replicas")
	f(to, "single", "warning  ", "-> create the topic with three replicas")
	f(to, "weak", "warning  ", "-> set min.insync.replicas of the topic to 2")
	f(to, "strict", "warning  ", "nothing can be written while one broker is down")
	f(to, "pair", "warning  ", "-> create the topic with three replicas: with two, ")
	f(from, "missing", "problem  receivers::kafka topic missing: does not exist", "-> create the topic")
}

// Brokers that do not answer are a problem. Without the components, nothing is checked.
func TestCheckKafkaWithoutBroker(t *testing.T) {
	got := aboutKafka(t, from("127.0.0.1:1", "good"))
	if !strings.Contains(got, "problem  receivers::kafka (127.0.0.1:1): no broker responds: ") {
		t.Errorf("got\n%s", got)
	}
	without := "receivers: {otlp: {protocols: {http: }}}\nexporters: {nop: }\n" + fmt.Sprintf(pipelines, "otlp", "nop")
	if got := aboutKafka(t, without); !strings.Contains(got, "skipped  no receiver or exporter of the type kafka") {
		t.Errorf("got\n%s", got)
	}
}
