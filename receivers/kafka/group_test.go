package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// Members join and leave under load. No span is lost. While all commits succeed and all batches
// finish, none is repeated either.
func TestMembersJoinAndLeave(t *testing.T) {
	c := newCluster(t, 6)
	var writing sync.WaitGroup
	stop := make(chan struct{})
	var total atomic.Int64
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				c.write(int32(i%6), fmt.Sprintf("span-%d", i))
				total.Add(1)
			}
		}
	})
	var members []*member
	repeated := 0.0
	leave := func() {
		repeated += members[0].sample("repeated_records_total")
		members[0].stop()
		members = members[1:]
	}
	for range 6 {
		members = append(members, c.start(c.config(), c, 64<<20))
		if _, err := c.WaitGroupStable(t.Context(), group, len(members)); err != nil {
			t.Fatal(err)
		}
		before := total.Load()
		await(t, "more spans", func() bool { return total.Load() > before+50 })
		if len(members) == 3 {
			leave()
		}
	}
	for len(members) > 1 {
		leave()
	}
	close(stop)
	writing.Wait()
	c.awaitCommitted()
	got := c.timesAccepted()
	more := 0
	for i := range total.Load() {
		n := got[fmt.Sprintf("span-%d", i)]
		if n == 0 {
			t.Errorf("span-%d is lost", i)
		}
		more += n - 1
	}
	t.Logf("%d spans, %d accepted again, %v records polled again, %d commits", total.Load(), more, repeated, c.commits)
	if more > 0 {
		t.Errorf("%d spans were accepted again, although nothing failed", more)
	}
}

// A partition that is revoked waits for its batch, and commits it. Its other records are consumed
// by the next member.
func TestRevoke(t *testing.T) {
	c := newCluster(t, 2)
	release := make(chan struct{})
	var waiting atomic.Int32
	slow := &destination{c, func(ctx context.Context, _ *otlpdata.Batch, _ []string) error {
		waiting.Add(1)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	c.write(0, "a")
	c.write(1, "b")
	c.start(c.config(), slow, 64<<20)
	await(t, "both batches", func() bool { return waiting.Load() == 2 })
	c.write(0, "c")
	c.write(1, "d")
	second := c.start(c.config(), c, 64<<20)
	await(t, "a rebalance", func() bool { return c.GroupInfo(group).Epoch > 1 })
	close(release)
	await(t, "assignment", func() bool { return second.sample("partitions") == 1 })
	c.awaitCommitted()
	c.expectOnce("a", "b", "c", "d")
}

// A batch that does not finish within revoke_timeout is canceled, and the next member consumes its
// records again. A member whose Stop ends early leaves the group nevertheless.
func TestRevokeTimeout(t *testing.T) {
	c := newCluster(t, 2)
	c.write(0, "a")
	c.write(1, "b")
	var waiting atomic.Int32
	stuck := &destination{c, func(ctx context.Context, _ *otlpdata.Batch, _ []string) error {
		waiting.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}}
	cfg := c.config()
	cfg.RevokeTimeout = pipeline.Duration(time.Millisecond)
	first := c.start(cfg, stuck, 64<<20)
	await(t, "both batches", func() bool { return waiting.Load() == 2 })
	c.start(c.config(), c, 64<<20)
	await(t, "one partition", func() bool { return len(c.timesAccepted()) == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	first.stopped = true
	if err := first.Stop(ctx); err == nil || !strings.Contains(err.Error(), "1 partitions had a batch in the pipeline") {
		t.Errorf("Stop: %v", err)
	}
	c.awaitCommitted()
	c.expectOnce("a", "b")
}

// What was accepted is committed even if the context of Stop has ended.
func TestStopEndsEarly(t *testing.T) {
	c := newCluster(t, 1)
	c.write(0, "a")
	cfg := c.config()
	cfg.Autocommit.Interval = pipeline.Duration(time.Hour)
	m := c.start(cfg, c, 64<<20)
	await(t, "a", func() bool { return m.sample("lag_records") == 0 && len(c.timesAccepted()) == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.stopped = true
	if err := m.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if got := c.committed(0); got != 1 {
		t.Errorf("offset %d is committed", got)
	}
	if info := c.GroupInfo(group); info != nil && len(info.Members) > 0 {
		t.Errorf("group has members after Stop: %v", info.Members)
	}
}

// A member that the group has excluded commits nothing. It later consumes the records that it had
// not committed.
func TestLostPartitions(t *testing.T) {
	c := newCluster(t, 1)
	c.write(0, "a")
	release := make(chan struct{})
	var calls, canceled atomic.Int32
	m := c.start(c.config(), &destination{c, func(ctx context.Context, _ *otlpdata.Batch, _ []string) error {
		if calls.Add(1) > 1 {
			return nil
		}
		select {
		case <-release:
		case <-ctx.Done():
			canceled.Add(1)
		}
		return ctx.Err()
	}}, 64<<20)
	await(t, "batch", func() bool { return calls.Load() == 1 })
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: group, Err: kerr.UnknownMemberID, TopLevel: true})
	await(t, "cancellation", func() bool { return canceled.Load() == 1 })
	c.awaitCommitted()
	c.expectOnce("a")
	await(t, "second assignment", func() bool { return m.sample("rebalances_total") >= 2 && m.sample("partitions") == 1 })
	for _, report := range m.Reports() {
		if errors.Is(report, context.Canceled) {
			t.Errorf("canceled batch is reported: %v", report)
		}
	}
}

// Failed commits are counted, reported and repeated.
func TestCommitFailures(t *testing.T) {
	c := newCluster(t, 1)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: topic, Err: kerr.GroupAuthorizationFailed, Count: -1})
	c.write(0, "a")
	m := c.start(c.config(), c, 64<<20)
	await(t, "failed commits", func() bool { return m.sample("commit_failures_total") > 2 })
	m.awaitReport("offsets are not committed; records since the last commit will be consumed again after a restart: ")
	m.awaitReport("grant READ on the group, and check auth::sasl: GROUP_AUTHORIZATION_FAILED")
	fault.Remove()
	c.awaitCommitted()
	m.awaitReport("")
	c.expectOnce("a")
}

// A receiver starts without brokers, is degraded, and goes on when they are there.
func TestNoBroker(t *testing.T) {
	c := newCluster(t, 1)
	c.write(0, "a")
	var up atomic.Bool
	m := c.startWith(c.config(), c, 64<<20, func(set *pipeline.Settings) {
		dial := set.Env.Dial
		set.Env.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !up.Load() {
				return nil, errors.New("no route to host")
			}
			return dial(ctx, network, address)
		}
	})
	m.awaitReport("no route to host")
	up.Store(true)
	c.awaitCommitted()
	m.awaitReport("")
	c.expectOnce("a")
}

// A topic that does not exist is reported.
func TestNoTopic(t *testing.T) {
	c := newCluster(t, 1)
	cfg := c.config()
	cfg.Topic = "missing"
	m := c.start(cfg, c, 64<<20)
	m.awaitReport("topic missing does not exist")
}

// initial_offset says where a group without commits begins.
func TestLatest(t *testing.T) {
	c := newCluster(t, 1)
	c.poison("old") // not accepted, but below the offset of later commits
	c.write(0, "old")
	cfg := c.config()
	cfg.InitialOffset = latest
	m := c.start(cfg, c, 64<<20)
	await(t, "assignment", func() bool { return m.sample("partitions") == 1 })
	fetched := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	if err := fetched.Wait(t.Context(), 2); err != nil { // the first offset is known
		t.Fatal(err)
	}
	c.write(0, "new")
	c.awaitCommitted()
	c.expectOnce("new")
}

// Records that were deleted before they were consumed are counted. Consumption goes on with the
// first that exists.
func TestExpired(t *testing.T) {
	c := newCluster(t, 1)
	c.write(0, names("span", 5)...)
	m := c.start(c.config(), c, 64<<20)
	c.awaitCommitted()
	m.stop()
	c.poison("expired-0", "expired-1", "expired-2")
	c.write(0, names("expired", 3)...)
	if err := c.DeleteRecords(topic, 0, 8); err != nil {
		t.Fatal(err)
	}
	c.write(0, "new")
	m = c.start(c.config(), c, 64<<20)
	c.awaitCommitted()
	c.expectOnce(append(names("span", 5), "new")...)
	if got := m.sample("expired_records_total"); got != 3 {
		t.Errorf("%v records expired", got)
	}
	if m.sample("offset_resets_total") != 1 || m.Logs.FilterMessageSnippet("records were deleted before they were consumed").Len() != 1 {
		t.Error("the reset is not counted or not logged")
	}
}

// Records that no longer exist are not counted as lag, even if none follow them.
func TestAllExpired(t *testing.T) {
	c := newCluster(t, 1)
	c.write(0, "a")
	m := c.start(c.config(), c, 64<<20)
	c.awaitCommitted()
	m.stop()
	c.poison("expired-0", "expired-1", "expired-2")
	c.write(0, names("expired", 3)...)
	if err := c.DeleteRecords(topic, 0, 4); err != nil {
		t.Fatal(err)
	}
	m = c.start(c.config(), c, 64<<20)
	await(t, "lag", func() bool {
		samples := m.Samples(t, prefix+"lag_records", "partition")
		lag, ok := samples["0"]
		return ok && lag == 0
	})
}

// bombs is a cluster whose topic takes large records.
func bombs(t *testing.T) *cluster {
	return newCluster(t, 1, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "10000000"}))
}

// writeBomb writes a record to a partition that decompresses to 4 MiB.
func (c *cluster) writeBomb(partition int32) {
	c.t.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ProducerBatchMaxBytes(5<<20),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer producer.Close()
	bomb := &kgo.Record{Topic: topic, Partition: partition, Value: bytes.Repeat([]byte{0}, 4<<20)}
	if err := producer.ProduceSync(c.t.Context(), bomb).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// A batch of records that would take too much memory when decompressed is skipped, also if nothing
// of the partition was consumed before.
func TestDecompressedTooLarge(t *testing.T) {
	for _, before := range [][]string{{}, {"a"}} {
		c := bombs(t)
		c.write(0, before...)
		c.writeBomb(0)
		c.write(0, "b")
		cfg := c.config()
		cfg.MaxDecompressedBatchSize = 1 << 20
		cfg.DeadLetter.Topic = dead
		c.start(cfg, c, 64<<20)
		c.awaitCommitted()
		c.expectOnce(append(before, "b")...)
		if l := c.deadLetters(1)[0]; header(l, headerOffset) != fmt.Sprint(len(before)) || header(l, headerReason) != reasonTooLarge {
			t.Errorf("dead letter: %v", l)
		}
	}
}

// The client library discards the error of such a batch if it arrives while the partition is
// paused.
func TestDecompressedTooLargeDuringPause(t *testing.T) {
	c := bombs(t)
	c.write(0, "a")
	failing := make(chan struct{})
	cfg := c.config()
	cfg.MaxDecompressedBatchSize = 1 << 20
	cfg.DeadLetter.Topic = dead
	cfg.MaxFetchWait = pipeline.Duration(waitLimit) // a fetch is under way when the partition is paused
	m := c.start(cfg, &destination{c, func(context.Context, *otlpdata.Batch, []string) error {
		select {
		case <-failing:
			return nil
		default:
			return errors.New("away")
		}
	}}, 64<<20)
	await(t, "pause", func() bool { return m.sample("paused") == 1 })
	c.writeBomb(0)
	await(t, "the batch", func() bool { return m.partition(0).skippedAt.Load() != 0 })
	c.write(0, "b")
	close(failing)
	c.awaitCommitted()
	c.expectOnce("a", "b")
	if l := c.deadLetters(1)[0]; header(l, headerOffset) != "1" || header(l, headerReason) != reasonTooLarge {
		t.Errorf("dead letter: %v", l)
	}
}

// writeUnreadable writes a batch to a partition that says that it has a record, and has none.
func (c *cluster) writeUnreadable(partition int32) {
	c.t.Helper()
	b := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, FirstTimestamp: 1, MaxTimestamp: 1, ProducerID: -1, ProducerEpoch: -1,
		FirstSequence: -1, NumRecords: 1}
	encoded := b.AppendTo(nil)
	b.Length = int32(len(encoded) - 12)
	b.CRC = int32(crc32.Checksum(encoded[21:], crc32.MakeTable(crc32.Castagnoli)))
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, b.AppendTo(nil)
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic, c.TopicInfo(topic).TopicID, append(t.Partitions, p)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 1000, append(req.Topics, t)
	resp, err := req.RequestWith(c.t.Context(), c.producer.Broker(int(c.LeaderFor(topic, partition))))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// A batch that cannot be read stops its partition. The records before it, which arrive with it, are
// accepted, and the offset to commit does not pass it. The error is reported until it ends, while
// others are fetched.
func TestUnreadableBatch(t *testing.T) {
	c := newCluster(t, 2)
	c.write(0, "a")
	c.writeUnreadable(0)
	c.write(0, "b")
	m := c.start(c.config(), c, 64<<20)
	const report = "1 partitions cannot be fetched; partition 0: kafka topic spans: invalid record batch"
	m.awaitReport(report)
	await(t, "commit", func() bool { return c.committed(0) == 1 })
	c.write(1, "other")
	await(t, "commit of the other partition", func() bool { return c.committed(1) == 1 })
	m.awaitReport(report)
	c.expectOnce("a", "other")
	if err := c.DeleteRecords(topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	c.awaitCommitted()
	c.expectOnce("a", "b", "other")
	m.awaitReport("")
}

// If brokers have lost records, this is counted and logged, and consumption goes on where the
// client library continues, without an error.
func TestDataLoss(t *testing.T) {
	f := pipelinetest.NewFixture("kafka", 1<<20)
	cfg := defaults()
	cfg.Topic = topic
	r, err := newReceiver(f.Settings, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &partition{r: r, expected: 20}
	r.partitions[0] = p
	r.dispatch(t.Context(), topic, &kgo.FetchPartition{Err: &kgo.ErrDataLoss{Topic: topic, ConsumedTo: 20, ResetTo: 10}})
	if got := f.Samples(t, prefix+"offset_resets_total")[""]; got != 1 || p.expected != 10 || len(f.Reports()) > 0 {
		t.Errorf("%v resets, next offset %d, reports %v", got, p.expected, f.Reports())
	}
	if f.Logs.FilterMessage("brokers have lost records").Len() != 1 {
		t.Errorf("not logged")
	}
}

// Errors that the client library passes on besides records are reported for their partition, or for
// none. Those that are reported elsewhere are not.
func TestFetchErrors(t *testing.T) {
	f := pipelinetest.NewFixture("kafka", 1<<20)
	cfg := defaults()
	cfg.Topic = topic
	r, err := newReceiver(f.Settings, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.partitions[0] = &partition{r: r}
	fail := func(topic string, number int32, err error) {
		r.dispatch(t.Context(), topic, &kgo.FetchPartition{Partition: number, Err: err})
	}
	last := func() string {
		reports := f.Reports()
		if len(reports) == 0 || reports[len(reports)-1] == nil {
			return ""
		}
		return reports[len(reports)-1].Error()
	}
	fail("", 0, &kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed})
	fail("", -1, context.DeadlineExceeded)
	fail("", -1, kgo.ErrClientClosed)
	if got := last(); got != "" {
		t.Errorf("reported: %q", got)
	}
	fail(topic, 0, kerr.TopicAuthorizationFailed)
	if got := last(); !strings.HasPrefix(got, "1 partitions cannot be fetched; partition 0: ") {
		t.Errorf("error of a partition: %q", got)
	}
	fail(topic, 0, kerr.UnknownTopicID)
	if got := last(); !strings.Contains(got, "topic spans was deleted and recreated; reload or restart this process") {
		t.Errorf("new topic of the same name: %q", got)
	}
	fail("", -1, errors.New("response is too large"))
	if got := last(); got != "kafka topic spans: response is too large" {
		t.Errorf("error of a broker: %q", got)
	}
	now := f.Settings.Env.Now()
	r.unfetched.endOld(0, now.Add(-time.Hour))
	r.unfetched.endOld(noPartition, now.Add(time.Hour))
	if got := last(); !strings.HasPrefix(got, "1 partitions cannot be fetched; partition 0: ") {
		t.Errorf("after the end of the error of the broker: %q", got)
	}
	r.unfetched.endOld(0, now.Add(time.Hour))
	if got := last(); got != "" {
		t.Errorf("after the end of all errors: %q", got)
	}
}

// Stop ends retries, and the records are consumed after the next start.
func TestStopDuringRetries(t *testing.T) {
	c := newCluster(t, 2)
	c.write(0, "a", "b")
	c.write(1, "c")
	cfg := c.config()
	cfg.ErrorBackoff.InitialInterval, cfg.ErrorBackoff.MaxInterval = pipeline.Duration(time.Hour), pipeline.Duration(time.Hour)
	m := c.start(cfg, &destination{c, func(context.Context, *otlpdata.Batch, []string) error { return errors.New("away") }}, 64<<20)
	m.awaitReport("2 partitions wait")
	m.stop()
	c.expectOnce()
	c.start(c.config(), c, 64<<20)
	c.awaitCommitted()
	c.expectOnce("a", "b", "c")
}

// A static member keeps its partitions when it restarts: the group does not rebalance.
func TestStaticMember(t *testing.T) {
	c := newCluster(t, 2)
	cfg := c.config()
	cfg.GroupInstanceID = "ingester-1"
	m := c.start(cfg, c, 64<<20)
	await(t, "assignment", func() bool { return m.sample("partitions") == 2 })
	m.stop()
	info := c.GroupInfo(group)
	if info == nil || len(info.Members) != 1 {
		t.Fatalf("a static member has left: %+v", info)
	}
	epoch := info.Epoch
	c.write(0, "a")
	c.start(cfg, c, 64<<20)
	c.awaitCommitted()
	if got := c.GroupInfo(group).Epoch; got != epoch {
		t.Errorf("epoch %d after a restart, was %d", got, epoch)
	}
}
