package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(broker.Tests{M: m}) }

// TestCluster checks that acknowledged records survive the leader of their partition, that another
// broker leads then, and that the killed one joins again with what it missed.
func TestCluster(t *testing.T) {
	harness.SkipIfShort(t)
	c := broker.Start(t, broker.Options{})
	topic := c.Topic(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic),
		kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	produce := func(value string) {
		t.Helper()
		if err := client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	produce("before")
	leader, err := c.Leader(ctx, topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Kill(leader)
	produce("while killed")
	if now, err := c.Leader(ctx, topic, 0); err != nil || now == leader {
		t.Errorf("leader is %d after the kill, was %d: %v", now, leader, err)
	}
	if err := c.Restart(leader); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx, leader); err != nil {
		t.Fatal(err)
	}
	c.Kill((leader + 1) % 3) // the restarted one is needed for an acknowledgement
	produce("after")
	var got []string
	for len(got) < 3 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if want := [3]string{"before", "while killed", "after"}; [3]string(got) != want {
		t.Errorf("records %q, want %q", got, want)
	}
}
