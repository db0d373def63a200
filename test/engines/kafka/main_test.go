package kafka_test

import (
	"net/http"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(broker.Tests{M: m}) }

// anyBrokers returns real brokers if the tests of engines run, and otherwise one that imitates them
// inside the test process.
func anyBrokers(t *testing.T) *broker.Cluster {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	if broker.Wanted() {
		return broker.Shared(t)
	}
	fake, err := kfake.NewCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return broker.Given(fake.ListenAddrs()...)
}
