package kafka_test

import (
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestPresets sends spans to the preset collector-kafka, which creates the topic, and reads them
// through the preset query from the store of the preset ingester.
func TestPresets(t *testing.T) {
	c, topic := anyBrokers(t), broker.UniqueName()
	brokers := "::brokers=[" + strings.Join(c.Brokers(), ", ") + "]"
	collector := harness.StartPreset(t, "collector-kafka", "exporters::kafka"+brokers, "exporters::kafka::topic="+topic,
		"exporters::kafka::create_topic={partitions: 4, replication_factor: 1}")
	spans := testSpans()
	post(t, collector, spans)
	t.Cleanup(func() { c.Delete(t, topic) })
	ingester := harness.StartPreset(t, "ingester", "receivers::kafka"+brokers, "receivers::kafka::topic="+topic,
		"receivers::kafka::group_id="+topic)
	query := harness.StartPreset(t, "query", "exporters::grpc::endpoint="+ingester.Addr("remote_storage", "grpc"))
	awaitStored(t, query, spans)
}
