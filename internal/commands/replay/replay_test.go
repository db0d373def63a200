package replay_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup)) }

const (
	topic = "otlp_spans"
	group = "tracing"
)

// cluster is a cluster with the topic, in which each minute has one record in every partition.
type cluster struct {
	*kfake.Cluster
	client *kgo.Client
	admin  *kadm.Client
	begin  time.Time // of the first record
}

const (
	partitions = 3
	minutes    = 60
)

func newCluster(t *testing.T) *cluster {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := &cluster{fake, client, kadm.NewClient(client), time.Now().Add(-minutes * time.Minute).Truncate(time.Millisecond)}
	for minute := range minutes {
		for p := range int32(partitions) {
			r := &kgo.Record{Topic: topic, Partition: p, Value: []byte("x"), Timestamp: c.begin.Add(time.Duration(minute) * time.Minute)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// commit sets the offsets of the group, by partition; negative ones are left out.
func (c *cluster) commit(t *testing.T, at ...int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	for p, offset := range at {
		if offset >= 0 {
			offsets.AddOffset(topic, int32(p), offset, -1)
		}
	}
	if err := c.admin.CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// committed returns the offsets of the group.
func (c *cluster) committed(t *testing.T) (at []int64) {
	t.Helper()
	all, err := c.admin.FetchOffsets(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	for p := range int32(partitions) {
		offset := int64(-1)
		if o, ok := all.Lookup(topic, p); ok {
			offset = o.At
		}
		at = append(at, offset)
	}
	return at
}

// replay runs the command with the preset ingester.
func (c *cluster) replay(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("TRACING_KAFKA_BROKERS", c.ListenAddrs()[0])
	return harness.Command(t, append([]string{"kafka", "replay"}, args...)...)
}

// since returns the argument for a time in the middle of the given minute.
func (c *cluster) since(minute int) string {
	return "--from=" + c.begin.Add(time.Duration(minute)*time.Minute-30*time.Second).UTC().Format(time.RFC3339Nano)
}

func wantOffsets(t *testing.T, got []int64, want ...int64) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
}

// spaces matches the columns of the table.
var spaces = regexp.MustCompile(` +`)

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	text = spaces.ReplaceAllString(text, " ")
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}

// Offsets go back to the first record since the time, but never forward, and not without commit.
func TestReplay(t *testing.T) {
	c := newCluster(t)
	c.commit(t, 50, 10, -1)
	table := []string{"topic otlp_spans, group tracing, from ", " 0 50 20 30 10\n", " 1 10 20 0 50\n", " 2 none 20 0 60\n"}
	code, stdout, stderr := c.replay(t, c.since(20), "--dry-run")
	wantLines(t, stdout, append(table, "nothing was changed because of --dry-run")...)
	if code != 0 || !strings.Contains(stderr, "memtable.max_age (10m0s)") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	wantOffsets(t, c.committed(t), 50, 10, -1)

	code, stdout, stderr = c.replay(t, c.since(20))
	wantLines(t, stdout, append(table, "set the offsets of group tracing; start the ingesters to reread 30 records")...)
	if code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	wantOffsets(t, c.committed(t), 20, 10, -1)

	code, stdout, _ = c.replay(t, c.since(20))
	wantLines(t, stdout, "group tracing has read nothing that was written since ")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// What is younger than the window of the store is not counted twice, so there is no warning.
func TestRecentReplay(t *testing.T) {
	c := newCluster(t)
	c.commit(t, minutes, minutes, minutes)
	code, stdout, stderr := c.replay(t, "--from=5m30s")
	wantLines(t, stdout, "to reread 15 records")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	wantOffsets(t, c.committed(t), 55, 55, 55)
}

// The command says that records since the time may be gone.
func TestDeletedRecords(t *testing.T) {
	c := newCluster(t)
	c.commit(t, minutes, minutes, minutes)
	until := kadm.Offsets{}
	until.AddOffset(topic, 1, 30, -1)
	if _, err := c.admin.DeleteRecords(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := c.replay(t, c.since(20))
	wantLines(t, stdout, " 0 60 20 40 0\n", " 1 60 30 30 0\n")
	if code != 0 || !strings.Contains(stderr, "no longer has older records in the partitions 1: ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	wantOffsets(t, c.committed(t), 20, 30, 20)
}

// While a member runs, nothing is changed: it would overwrite the offsets.
func TestActiveMember(t *testing.T) {
	c := newCluster(t)
	c.commit(t, 50, 50, 50)
	assigned := make(chan struct{})
	member, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ClientID("ingester-1"), kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { close(assigned) }))
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	member.PollFetches(t.Context())
	<-assigned
	code, _, stderr := c.replay(t, c.since(20))
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	wantLines(t, stderr, "group tracing has active members (ingester-1 at ",
		"); stop the ingesters first, and wait for session_timeout if they have a group_instance_id")
	if code, stdout, stderr := c.replay(t, c.since(20), "--dry-run"); code != 0 || !strings.Contains(stdout, "nothing was changed") {
		t.Errorf("dry run: exit code %d: %s%s", code, stdout, stderr)
	}
	wantOffsets(t, c.committed(t), 50, 50, 50)
}

// Arguments and configurations that are of no use have errors.
func TestUsage(t *testing.T) {
	f := func(code int, want string, args ...string) {
		t.Helper()
		got, _, stderr := harness.Command(t, append([]string{"kafka", "replay"}, args...)...)
		if got != code || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, want %d with %q:\n%s", args, got, code, want, stderr)
		}
	}
	f(2, `--from: "" is not a time`)
	f(2, `--from: "yesterday" is not a time`, "--from=yesterday")
	f(2, `--from: "-1h" is not a time`, "--from=-1h")
	f(2, "configuration has no receiver of the type kafka", "all-in-one", "--from=1h")
	f(2, `configuration has no receiver "kafka/other"`, "--from=1h", "--receiver=kafka/other")
	f(2, "configuration has the receivers kafka, kafka/archive", "--from=1h", "--set=receivers::kafka/archive::topic=archive",
		"--set=service::pipelines::traces::receivers=[kafka, kafka/archive]")
}

// A group that does not exist has read nothing.
func TestMissingGroup(t *testing.T) {
	c := newCluster(t)
	code, stdout, stderr := c.replay(t, "--from=1h", "--kafka.consumer.group-id=other")
	wantLines(t, stdout, "group other has read nothing")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A topic that does not exist is an error that names it.
func TestMissingTopic(t *testing.T) {
	c := newCluster(t)
	code, _, stderr := c.replay(t, "--from=1h", "--kafka.consumer.topic=other")
	if code != 1 || !strings.Contains(stderr, "topic other") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
