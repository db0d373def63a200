package delivery_test

import (
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
)

const (
	// maxExtra is the maximum number of ingesters beside the one that stays.
	maxExtra = 3
	// requestsPerChange is the number of requests that each collector acknowledges between two
	// changes of the group.
	requestsPerChange = 5
)

// TestJoinsAndLeaves starts and stops ingesters of a group under load. One in four is killed. No
// span is lost.
func TestJoinsAndLeaves(t *testing.T) {
	harness.SkipIfShort(t)
	rounds, seed := soak.Rounds(t, 50, 2), soak.Seed(t)
	c := newCampaign(t, broker.Shared(t), 2, 1, seed)
	var extra, left []*member
	leave := func() {
		n := c.rnd.IntN(len(extra))
		m := extra[n]
		extra = append(extra[:n], extra[n+1:]...)
		if left = append(left, m); len(left)%4 == 0 {
			m.kill()
			return
		}
		m.repeated = m.repeatedRecords()
		if code := m.Terminate(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
		m.Accounting()
	}
	for round := range rounds {
		m := c.newIngester()
		m.start(t)
		extra = append(extra, m)
		harness.Poll(t, "the new ingester has partitions", func() bool { return m.sum("tracing_kafka_consumer_partitions") > 0 })
		c.progress(requestsPerChange)
		if len(extra) == maxExtra || c.rnd.IntN(2) == 0 {
			leave()
			c.progress(requestsPerChange)
		}
		t.Logf("round %d: %d ingesters", round+1, 1+len(extra))
	}
	for len(extra) > 0 {
		leave()
	}
	r := c.end()
	for _, m := range left {
		r.repeatedRecords += m.repeated
	}
	t.Logf("%d joins, %d leaves, of which %d were kills", rounds, len(left), len(left)/4)
	r.log()
}
