package monitoring_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/test/harness"
)

// aboutKafka reports whether a query needs processes that write to Kafka or read from it.
func aboutKafka(expr string) bool { return strings.Contains(expr, "tracing_kafka_") }

// Every dashboard query about Kafka returns data of a collector and an ingester, as do the metrics
// that alerts and runbooks name. The alerts for records that cannot be decoded, and for brokers
// that are down, are pending while that lasts.
func TestKafkaDashboardHasData(t *testing.T) {
	harness.SkipIfShort(t)
	path := requirePrometheus(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "otlp_spans"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	broker := cluster.ListenAddrs()[0]
	collector := harness.Run(t, harness.PresetArgs("collector-kafka", t.TempDir(), "--kafka.producer.brokers="+broker)...)
	ingester := harness.Run(t, harness.PresetArgs("ingester", t.TempDir(), "--kafka.consumer.brokers="+broker)...)
	collector.AwaitReady()
	ingester.AwaitReady()
	prometheus := startPrometheus(t, path, map[string]string{
		"tracing-collector": collector.Address("admin", "http"), "tracing-ingester": ingester.Address("admin", "http"),
	})
	stop := repeat(func() {
		try(http.MethodPost, "http://"+collector.OTLPHTTP()+"/v1/traces", harness.JSONSpan(newTraceID(), "checkout", "pay", time.Now(), time.Second))
	})
	defer stop()
	harness.Poll(t, "stored spans", func() bool { return prometheus.has(`tracing_kafka_consumer_commits_total > 0`) })
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "otlp_spans", Value: []byte("not a request")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	harness.Poll(t, "alert for dead letters", func() bool { return prometheus.has(`ALERTS{alertname="TracingKafkaDeadLetters"}`) })
	queries := dashboardQueries(t)
	maps.Copy(queries, alertMetrics(t))
	maps.DeleteFunc(queries, func(_, expr string) bool { return !aboutKafka(expr) })
	if len(queries) < 15 {
		t.Fatalf("only %d queries found", len(queries))
	}
	checkQueries(t, prometheus, queries)
	cluster.Close()
	harness.Poll(t, "alert for failing writes", func() bool { return prometheus.has(`ALERTS{alertname="TracingKafkaWritesFail"}`) })
}
