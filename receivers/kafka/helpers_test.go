package kafka

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topic = "spans"
	dead  = "dead-spans"
	group = "ingesters"
)

// cluster is a fake cluster with a topic of the given number of partitions, and a topic for dead
// letters. It checks that no offset is committed before the records below it are accepted.
type cluster struct {
	*kfake.Cluster
	t        *testing.T
	producer *kgo.Client

	mu       sync.Mutex
	written  map[int32]map[int64]string // names of spans by partition and offset
	accepted map[string]int             // how often each span was accepted, by name
	letters  map[string]bool            // spans that must end as dead letters
	commits  int
}

func newCluster(t *testing.T, partitions int32, opts ...kfake.Opt) *cluster {
	t.Helper()
	opts = append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic), kfake.SeedTopics(1, dead),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"})}, opts...)
	fake, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c := &cluster{Cluster: fake, t: t, written: map[int32]map[int64]string{}, accepted: map[string]int{}, letters: map[string]bool{}}
	c.producer, err = kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.producer.Close)
	fake.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		c.checkCommit(r.(*kmsg.OffsetCommitRequest))
		return nil, nil, false
	})
	return c
}

// checkCommit checks the invariant of this package.
func (c *cluster) checkCommit(r *kmsg.OffsetCommitRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commits++
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			for offset, name := range c.written[p.Partition] {
				if offset < p.Offset && c.accepted[name] == 0 && !c.letters[name] {
					c.t.Errorf("offset %d of partition %d is committed, but %s at offset %d was not accepted", p.Offset, p.Partition, name, offset)
				}
			}
		}
	}
}

// Consume accepts spans, as the destination of all receivers that a test does not give another.
func (c *cluster) Consume(_ context.Context, b *otlpdata.Batch) error {
	names, err := spanNames(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.accepted[name]++
	}
	return err
}

// timesAccepted returns how often each span was accepted.
func (c *cluster) timesAccepted() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.accepted)
}

// destination accepts spans if answer returns nil.
type destination struct {
	*cluster
	answer func(ctx context.Context, b *otlpdata.Batch, names []string) error
}

func (d *destination) Consume(ctx context.Context, b *otlpdata.Batch) error {
	names, err := spanNames(b)
	if err != nil {
		return err
	}
	if err := d.answer(ctx, b, names); err != nil {
		return err
	}
	return d.cluster.Consume(ctx, b)
}

func spanNames(b *otlpdata.Batch) (names []string, err error) {
	td, err := b.Traces()
	if err != nil {
		return nil, err
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				names = append(names, span.Name())
			}
		}
	}
	return names, nil
}

// write writes records to a partition, which have the span names.
func (c *cluster) write(partition int32, names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.writeRecord(name, &kgo.Record{Partition: partition, Value: otlp(c.t, name)})
	}
}

// writeRecord writes a record with the spans of one name.
func (c *cluster) writeRecord(name string, r *kgo.Record) {
	c.t.Helper()
	r.Topic = topic
	if err := c.producer.ProduceSync(c.t.Context(), r).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written[r.Partition] == nil {
		c.written[r.Partition] = map[int64]string{}
	}
	c.written[r.Partition][r.Offset] = name
}

// poison says that spans of a name must end as dead letters.
func (c *cluster) poison(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.letters[name] = true
	}
}

// committed returns the committed offset of a partition, or 0.
func (c *cluster) committed(partition int32) int64 {
	info := c.GroupInfo(group)
	if info == nil {
		return 0
	}
	return info.Commits[topic][partition].Offset
}

// awaitCommitted waits until all written records are committed.
func (c *cluster) awaitCommitted() {
	c.t.Helper()
	for _, p := range c.PartitionInfos(topic) {
		await(c.t, fmt.Sprintf("commit of partition %d at %d", p.Partition, p.HighWatermark), func() bool {
			return c.committed(p.Partition) >= p.HighWatermark
		})
	}
}

// expectOnce checks that each span was accepted exactly once.
func (c *cluster) expectOnce(names ...string) {
	c.t.Helper()
	got := c.timesAccepted()
	for _, name := range names {
		if got[name] != 1 {
			c.t.Errorf("%s was accepted %d times", name, got[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		c.t.Errorf("also accepted: %v", got)
	}
}

// names returns n names with a prefix.
func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d", prefix, i))
	}
	return all
}

func traces(name string) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName(name)
	span.SetTraceID([16]byte{15: 1})
	span.SetSpanID([8]byte{7: 2})
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_700_000_000, 0)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Unix(1_700_000_001, 0)))
	return td
}

func otlp(t testing.TB, name string) []byte {
	b, err := ptraceotlp.NewExportRequestFromTraces(traces(name)).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// member is a running receiver.
type member struct {
	*receiver
	*pipelinetest.Fixture
	t       *testing.T
	stopped bool
}

// config returns a configuration with short intervals.
func (c *cluster) config() config {
	cfg := defaults()
	cfg.Brokers, cfg.Topic, cfg.GroupID = c.ListenAddrs(), topic, group
	cfg.MaxFetchWait = pipeline.Duration(10 * time.Millisecond)
	cfg.HeartbeatInterval = pipeline.Duration(20 * time.Millisecond)
	cfg.Autocommit.Interval = pipeline.Duration(5 * time.Millisecond)
	cfg.ErrorBackoff.InitialInterval = pipeline.Duration(time.Millisecond)
	cfg.ErrorBackoff.MaxInterval = pipeline.Duration(5 * time.Millisecond)
	return cfg
}

// start starts a receiver that passes spans to next, and stops it when the test ends.
func (c *cluster) start(cfg config, next pipeline.Consumer, budget int64) *member {
	c.t.Helper()
	return c.startWith(cfg, next, budget, func(*pipeline.Settings) {})
}

// startWith is start with changed settings.
func (c *cluster) startWith(cfg config, next pipeline.Consumer, budget int64, change func(*pipeline.Settings)) *member {
	c.t.Helper()
	if err := cfg.Validate(); err != nil {
		c.t.Fatal(err)
	}
	f := pipelinetest.NewFixture("kafka", budget)
	f.Settings.Dir = c.t.TempDir()
	change(&f.Settings)
	r, err := newReceiver(f.Settings, cfg, next)
	if err != nil {
		c.t.Fatal(err)
	}
	m := &member{receiver: r, Fixture: f, t: c.t}
	if err := m.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(m.stop)
	return m
}

// stop stops the receiver and checks that it returned all memory.
func (m *member) stop() {
	m.t.Helper()
	if m.stopped {
		return
	}
	m.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := m.Stop(ctx); err != nil {
		m.t.Errorf("Stop: %v", err)
	}
	if used := m.Settings.Budget.Used(); used != 0 {
		m.t.Errorf("%d bytes of the budget are used after Stop", used)
	}
}

// sample returns the value of a metric, added up over its labels.
func (m *member) sample(metric string) float64 { return m.Samples(m.t, prefix+metric)[""] }

// awaitReport waits until the last report contains text; "" waits until the receiver is healthy.
func (m *member) awaitReport(text string) {
	m.t.Helper()
	defer func() {
		if m.t.Failed() {
			m.t.Logf("reports: %v", m.Reports())
		}
	}()
	await(m.t, "report "+text, func() bool {
		reports := m.Reports()
		if len(reports) == 0 {
			return text == ""
		}
		last := reports[len(reports)-1]
		if text == "" || last == nil {
			return text == "" && last == nil
		}
		return strings.Contains(last.Error(), text)
	})
}

// waitLimit is the time after which a condition that does not come is an error.
const waitLimit = time.Minute

// await waits for a condition.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}
