package kafka

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !condition(); {
		if time.Now().After(end) {
			t.Fatalf("not after %s: %s", deadline, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// lastReport returns the last report, and whether there is one.
func lastReport(f *pipelinetest.Fixture) (error, bool) {
	all := f.Reports()
	if len(all) == 0 {
		return nil, false
	}
	return all[len(all)-1], true
}

// degraded waits until the exporter is reported as degraded with a text.
func degraded(t testing.TB, f *pipelinetest.Fixture, text string) {
	t.Helper()
	eventually(t, "degraded with "+text, func() bool {
		err, _ := lastReport(f)
		return err != nil && strings.Contains(err.Error(), text)
	})
}

func healthy(t testing.TB, f *pipelinetest.Fixture) {
	t.Helper()
	eventually(t, "healthy", func() bool {
		err, reported := lastReport(f)
		return reported && err == nil
	})
}

func admin(t testing.TB, cluster *kfake.Cluster) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

// A topic that does not exist is reported, and used when it exists.
func TestTopicIsMissing(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 0)
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), nil)
	degraded(t, f, "topic otlp_spans does not exist in the cluster of [127.0.0.1:")
	err := e.Consume(t.Context(), batch(t, "", 1, 1))
	if err == nil || pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "create it, or set create_topic") {
		t.Errorf("error %v", err)
	}
	if _, err := admin(t, cluster).CreateTopic(t.Context(), 2, 1, nil, "otlp_spans"); err != nil {
		t.Fatal(err)
	}
	healthy(t, f)
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Error(err)
	}
}

// A topic that is deleted while the exporter runs is reported, and used when it exists again.
func TestTopicIsDeleted(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 2)
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), nil)
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := admin(t, cluster).DeleteTopic(t.Context(), "otlp_spans"); err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
	degraded(t, f, "topic otlp_spans does not exist")
	if _, err := admin(t, cluster).CreateTopic(t.Context(), 2, 1, nil, "otlp_spans"); err != nil {
		t.Fatal(err)
	}
	healthy(t, f)
	eventually(t, "accepted", func() bool { return e.Consume(t.Context(), batch(t, "", 1, 1)) == nil })
}

func TestTopicIsCreated(t *testing.T) {
	cluster := startCluster(t, 0, kfake.NumBrokers(3))
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), func(c *config) {
		c.Producer.MaxMessageBytes = 2 << 20
		create := c.CreateTopic.TurnOn().(*createTopicConfig)
		create.Partitions, create.MaxBytes = 5, 1<<30
	})
	if err := e.Consume(t.Context(), batch(t, "", 10, 1)); err != nil {
		t.Fatal(err)
	}
	if got := len(cluster.PartitionInfos("otlp_spans")); got != 5 {
		t.Errorf("%d partitions", got)
	}
	configs, err := admin(t, cluster).DescribeTopicConfigs(t.Context(), "otlp_spans")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range configs[0].Configs {
		got[c.Key] = c.MaybeValue()
	}
	for key, want := range map[string]string{"min.insync.replicas": "2", "retention.ms": "86400000", "retention.bytes": "1073741824",
		"max.message.bytes": "2097152"} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if len(f.Logs.FilterMessage("created topic").All()) != 1 {
		t.Errorf("logged %v", f.Logs.All())
	}
}

// A topic that cannot be created is reported with the reason.
func TestTopicCannotBeCreated(t *testing.T) {
	cluster := startCluster(t, 0)
	f := fixture()
	start(t, f, cluster.ListenAddrs(), func(c *config) {
		create := c.CreateTopic.TurnOn().(*createTopicConfig)
		create.ReplicationFactor = 3
	})
	degraded(t, f, "cannot create the topic; check create_topic and the number of brokers: INVALID_REPLICATION_FACTOR")
}

// Settings that make acknowledgements worth less are logged.
func TestWeakTopic(t *testing.T) {
	cluster := startCluster(t, 0, kfake.NumBrokers(3))
	one, small := "1", "100000"
	if _, err := admin(t, cluster).CreateTopic(t.Context(), 2, 3, map[string]*string{"min.insync.replicas": &one, "max.message.bytes": &small},
		"otlp_spans"); err != nil {
		t.Fatal(err)
	}
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), func(c *config) { c.CreateTopic.TurnOn() })
	if err := e.Consume(t.Context(), paddedBatch(t, "", 3, 3, func(int) int { return 40_000 })); err != nil {
		t.Error(err)
	}
	want := "topic should be changed: set min.insync.replicas of the topic to 2: acknowledged spans may be on one broker only; " +
		"change create_topic::partitions (12) or the number of partitions (2); " +
		"set max.message.bytes of the topic (100000) to at least producer::max_message_bytes (1000000)"
	if len(f.Logs.FilterMessage(want).All()) != 1 {
		t.Errorf("logged %v", f.Logs.All())
	}
	if got := len(read(t, cluster, "otlp_spans")); got < 5 {
		t.Errorf("%d records, which must be smaller than max.message.bytes of the topic", got)
	}
}

// setMaxMessageBytes changes max.message.bytes of the topic.
func setMaxMessageBytes(t testing.TB, cluster *kfake.Cluster, n int) {
	t.Helper()
	value := strconv.Itoa(n)
	responses, err := admin(t, cluster).AlterTopicConfigs(t.Context(),
		[]kadm.AlterConfig{{Name: "max.message.bytes", Value: &value}}, "otlp_spans")
	if err != nil || len(responses) != 1 || responses[0].Err != nil {
		t.Fatalf("%v: %v", responses, err)
	}
}

// Larger records are written after max.message.bytes of the topic was raised.
func TestMaxMessageBytesIsRaised(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	setMaxMessageBytes(t, cluster, 50_000)
	e := start(t, fixture(), cluster.ListenAddrs(), func(c *config) { c.Metadata.RefreshInterval = pipeline.Duration(time.Second) })
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Fatal(err)
	}
	large := paddedBatch(t, "", 1, 1, func(int) int { return 200_000 })
	if err := e.Consume(t.Context(), large); !pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
	setMaxMessageBytes(t, cluster, 500_000)
	eventually(t, "accepted", func() bool { return e.Consume(t.Context(), large) == nil })
}

// Spans that fit into smaller records are written after max.message.bytes of the topic was lowered.
func TestMaxMessageBytesIsLowered(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	a := control(cluster)
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), nil)
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Fatal(err)
	}
	setMaxMessageBytes(t, cluster, 50_000)
	b := paddedBatch(t, "", 5, 4, func(int) int { return 10_000 })
	err := e.Consume(t.Context(), b)
	if err == nil || pipeline.IsPermanent(err) || !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("error %v, want a temporary one", err)
	}
	eventually(t, "accepted", func() bool {
		err := e.Consume(t.Context(), b)
		if pipeline.IsPermanent(err) {
			t.Fatal(err)
		}
		return err == nil
	})

	// The client joins records of several calls, within the new limit.
	a.mu.Lock()
	a.blocked = make(chan struct{})
	a.mu.Unlock()
	results := make(chan error)
	const calls = 20
	for range calls {
		go func() {
			results <- e.Consume(context.Background(), paddedBatch(t, "", 1, 1, func(int) int { return 10_000 }))
		}()
	}
	eventually(t, "buffered", func() bool { return f.Samples(t, "tracing_kafka_producer_buffered_bytes")[""] > calls*10_000 })
	close(a.blocked)
	for range calls {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// New partitions are used.
func TestPartitionsAreAdded(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), func(c *config) { c.Metadata.RefreshInterval = pipeline.Duration(time.Second) })
	if err := e.Consume(t.Context(), batch(t, "", 20, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := admin(t, cluster).CreatePartitions(t.Context(), 3, "otlp_spans"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "records in the new partitions", func() bool {
		if err := e.Consume(t.Context(), batch(t, "", 20, 1)); err != nil {
			t.Fatal(err)
		}
		return cluster.PartitionInfo("otlp_spans", 1).HighWatermark > 0 && cluster.PartitionInfo("otlp_spans", 2).HighWatermark > 0
	})
}

// The exporter starts although no broker can be reached, and works when one can.
func TestBrokersAreDown(t *testing.T) {
	t.Parallel()
	addr := pipelinetest.FixedAddress(t)
	f := fixture()
	e := start(t, f, []string{addr}, nil)
	degraded(t, f, "kafka brokers ["+addr+"] are unreachable")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Consume(ctx, batch(t, "", 1, 1)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}

	_, text, _ := net.SplitHostPort(addr)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	cluster := startCluster(t, 2, kfake.Ports(port))
	healthy(t, f)
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Error(err)
	}

	cluster.Close()
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := e.Consume(ctx, batch(t, "", 1, 1)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
}

// Stop waits for calls, and ends them when its context ends.
func TestStopWithOpenCalls(t *testing.T) {
	cluster := startCluster(t, 1)
	a := control(cluster)
	a.blocked = make(chan struct{})
	f := fixture()
	e := build(t, f, cluster.ListenAddrs(), nil)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- e.Consume(context.Background(), batch(t, "", 1, 1)) }()
	<-a.requests
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Stop(ctx); err == nil || !strings.Contains(err.Error(), "have not acknowledged") {
		t.Errorf("Stop: %v", err)
	}
	if err := <-result; !errors.Is(err, pipeline.ErrStopping) || pipeline.IsPermanent(err) {
		t.Errorf("open call: %v", err)
	}
	close(a.blocked)
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); !errors.Is(err, pipeline.ErrStopping) {
		t.Errorf("later call: %v", err)
	}
}

// waiting is a context that closes waits when its end is waited for.
type waiting struct {
	context.Context
	once  *sync.Once
	waits chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}

// Stop ends calls that wait until the topic is known.
func TestStopBeforeTheTopicIsKnown(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	e := build(t, fixture(), []string{silent.Addr().String()}, nil)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	call := waiting{context.Background(), new(sync.Once), make(chan struct{})}
	result := make(chan error, 1)
	go func() { result <- e.Consume(call, batch(t, "", 1, 1)) }()
	<-call.waits
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Stop(ctx); err == nil {
		t.Error("Stop does not say that a call was open")
	}
	if err := <-result; !errors.Is(err, pipeline.ErrStopping) || pipeline.IsPermanent(err) {
		t.Errorf("open call: %v", err)
	}
}

// A component that was built but not started can be stopped.
func TestStopWithoutStart(t *testing.T) {
	if err := build(t, fixture(), []string{"localhost:1"}, nil).Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// Wrong credentials are reported.
func TestLogin(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "user", "secret"))
	login := kafka.SASLConfig{Mechanism: "SCRAM-SHA-256", Username: "user", Password: "secret"}
	e := start(t, fixture(), cluster.ListenAddrs(), func(c *config) { c.Auth.SASL = pipeline.Present(login) })
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Error(err)
	}
	login.Password = "wrong"
	f := fixture()
	start(t, f, cluster.ListenAddrs(), func(c *config) { c.Auth.SASL = pipeline.Present(login) })
	degraded(t, f, "check brokers, tls, auth")
}
