package kafka_test

import (
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestPresets sends spans to the preset collector-kafka, which creates the topic, and reads them
// through the preset query from the store of the preset ingester.
func TestPresets(t *testing.T) {
	c, topic := anyBrokers(t), broker.UniqueName()
	brokers := "::brokers=[" + strings.Join(c.Brokers(), ", ") + "]"
	collector := inprocess.StartPreset(t, "collector-kafka", "exporters::kafka"+brokers, "exporters::kafka::topic="+topic,
		"exporters::kafka::create_topic={partitions: 4, replication_factor: 1}")
	spans := testSpans()
	post(t, collector, spans)
	t.Cleanup(func() { c.Delete(t, topic) })
	ingester := inprocess.StartPreset(t, "ingester", "receivers::kafka"+brokers, "receivers::kafka::topic="+topic,
		"receivers::kafka::group_id="+topic)
	query := inprocess.StartPreset(t, "query", "exporters::grpc::endpoint="+ingester.Addr("remote_storage", "grpc"))
	awaitStored(t, query, spans)
}

// TestReplay stores spans, makes the group read them again with the command, and stores them in an
// empty store.
func TestReplay(t *testing.T) {
	c := anyBrokers(t)
	topic, spans := c.Topic(t, partitions), testSpans()
	brokers := "::kafka::brokers=[" + strings.Join(c.Brokers(), ", ") + "]"
	post(t, inprocess.StartPreset(t, "collector-kafka", "exporters"+brokers, "exporters::kafka::topic="+topic), spans)
	settings := []string{"receivers" + brokers, "receivers::kafka::topic=" + topic, "receivers::kafka::group_id=" + topic}
	store := func() {
		ingester := inprocess.StartPreset(t, "ingester", settings...)
		query := inprocess.StartPreset(t, "query", "exporters::grpc::endpoint="+ingester.Addr("remote_storage", "grpc"))
		awaitStored(t, query, spans)
		for _, p := range []*inprocess.Program{query, ingester} { // the group must be empty for a replay
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	store()
	args := append([]string{"kafka", "replay", "ingester", "--from", "1h"}, harness.SetArgs(settings...)...)
	if code, stdout, stderr := inprocess.RunCommand(t, args...); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	store()
}
