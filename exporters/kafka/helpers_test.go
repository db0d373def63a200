package kafka

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// A fake broker that is closed while it holds a request back may wait forever for its own lock.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*Cluster).beginSleptControl"))
}

// deadline is the time after which a test that waits for an event fails.
const deadline = 2 * time.Minute

// startCluster starts a fake cluster of one broker with the topic of the defaults.
func startCluster(t testing.TB, partitions int32, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	all := []kfake.Opt{kfake.NumBrokers(1)}
	if partitions > 0 {
		all = append(all, kfake.SeedTopics(partitions, "otlp_spans"))
	}
	c, err := kfake.NewCluster(append(all, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func fixture() *pipelinetest.Fixture { return pipelinetest.NewFixture("kafka", 64<<20) }

// start starts an exporter. change completes the configuration.
func start(t testing.TB, f *pipelinetest.Fixture, brokers []string, change func(*config)) *exporter {
	t.Helper()
	e := build(t, f, brokers, change)
	pipelinetest.Start(t, e)
	return e
}

func build(t testing.TB, f *pipelinetest.Fixture, brokers []string, change func(*config)) *exporter {
	t.Helper()
	c := defaults()
	c.Brokers = brokers
	if change != nil {
		change(&c)
	}
	for _, v := range []pipeline.Validator{&c, &c.ClientConfig, &c.Producer, &c.NextHopConfig, &c.Delivery} {
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	e, err := newExporter(f.Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// traceID returns an id that is unique for each number.
func traceID(n int) (id otlpdata.TraceID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	binary.BigEndian.PutUint64(id[8:], uint64(n)*7919)
	return id
}

// batch returns a batch with spans of several traces and two services, named TRACE/NUMBER.
func batch(t testing.TB, tenant string, traces, spansPerTrace int) *otlpdata.Batch {
	t.Helper()
	return paddedBatch(t, tenant, traces, spansPerTrace, func(int) int { return 0 })
}

// paddedBatch is like batch with an additional attribute of padding(number of the span) bytes.
func paddedBatch(t testing.TB, tenant string, traces, spansPerTrace int, padding func(int) int) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	for service := range 2 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprintf("service-%d", service))
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("scope")
		for n := range traces * spansPerTrace {
			if n%2 != service {
				continue
			}
			s := ss.Spans().AppendEmpty()
			trace := n % traces
			s.SetTraceID([16]byte(traceID(trace)))
			s.SetSpanID([8]byte{1, 2, 3, 4, 5, 6, byte(n >> 8), byte(n)})
			s.SetName(fmt.Sprintf("%d/%d", trace, n))
			s.SetStartTimestamp(1_700_000_000_000_000_000)
			s.SetEndTimestamp(1_700_000_000_001_000_000)
			if p := padding(n); p > 0 {
				s.Attributes().PutEmptyBytes("padding").FromRaw(make([]byte, p))
			}
		}
	}
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	out, err := otlpdata.FromOTLP(b, otlpdata.Meta{Tenant: tenant}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read returns all records of a topic that are there, by partition and offset.
func read(t testing.TB, cluster *kfake.Cluster, topic string) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	want := int64(0)
	for _, p := range cluster.PartitionInfos(topic) {
		want += p.HighWatermark
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var all []*kgo.Record
	for int64(len(all)) < want {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("%d of %d records: %v", len(all), want, err)
		}
		all = append(all, fetches.Records()...)
	}
	slices.SortFunc(all, func(a, b *kgo.Record) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return all
}

// names returns the sorted names of all spans of records in otlp_proto.
func names(t testing.TB, records []*kgo.Record) []string {
	t.Helper()
	var all []string
	for _, r := range records {
		var c nameCollector
		if err := otlpdata.Walk(r.Value, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c...)
	}
	slices.Sort(all)
	return all
}

// batchNames returns the sorted names of all spans of a batch.
func batchNames(t testing.TB, b *otlpdata.Batch) []string {
	t.Helper()
	var c nameCollector
	if err := b.Walk(&c); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c)
	return c
}

type nameCollector []string

func (c *nameCollector) Resource(*otlpdata.Resource) error { return nil }
func (c *nameCollector) Scope(*otlpdata.Scope) error       { return nil }
func (c *nameCollector) Span(s *otlpdata.Span) error       { *c = append(*c, s.Name); return nil }

// answers decides what becomes of the produce requests of a cluster.
type answers struct {
	cluster *kfake.Cluster

	mu       sync.Mutex
	codes    map[int32]int16 // error codes by partition; the records are not stored
	always   int16           // error code for all partitions
	blocked  chan struct{}   // requests wait until it is closed
	entered  int
	requests chan struct{} // receives a value for each request
}

func control(cluster *kfake.Cluster) *answers {
	a := &answers{cluster: cluster, codes: map[int32]int16{}, requests: make(chan struct{}, 1000)}
	cluster.ControlKey(int16(kmsg.Produce), a.handle)
	return a
}

func (a *answers) handle(r kmsg.Request) (kmsg.Response, error, bool) {
	a.cluster.KeepControl()
	a.mu.Lock()
	codes, always, blocked := a.codes, a.always, a.blocked
	a.entered++
	a.mu.Unlock()
	a.requests <- struct{}{}
	if blocked != nil {
		a.cluster.SleepControl(func() { <-blocked })
	}
	request := r.(*kmsg.ProduceRequest)
	if always == 0 && !hits(request, codes) {
		return nil, nil, false
	}
	response := request.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range request.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
		for _, p := range topic.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition = p.Partition
			if rp.ErrorCode = always; always == 0 {
				rp.ErrorCode = codes[p.Partition]
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		response.Topics = append(response.Topics, rt)
	}
	return response, nil, true
}

// hits reports whether a request has records of a partition with an error. Such a request should
// have no other partition, because it is not stored.
func hits(r *kmsg.ProduceRequest, codes map[int32]int16) bool {
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			if codes[p.Partition] != 0 {
				return true
			}
		}
	}
	return false
}
