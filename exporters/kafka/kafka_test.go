package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/bench"
)

// Requests are written unchanged, several of them in a record.
func TestBytesPassThrough(t *testing.T) {
	cluster := startCluster(t, 3)
	e := start(t, fixture(), cluster.ListenAddrs(), func(c *config) { c.Key = kafka.KeyNone })
	joined, err := otlpdata.Concat(batch(t, "acme", 2, 2), batch(t, "acme", 5, 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), joined); err != nil {
		t.Fatal(err)
	}
	want, err := joined.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	records := read(t, cluster, "otlp_spans")
	if len(records) != 1 || !bytes.Equal(records[0].Value, want) || records[0].Key != nil {
		t.Fatalf("%d records", len(records))
	}
	if h := records[0].Headers; len(h) != 1 || h[0].Key != "x-tenant" || string(h[0].Value) != "acme" {
		t.Errorf("headers %v", h)
	}
}

// Callers without a queue wait for the response, so records do not wait for more.
func TestLingerDelaysNoCaller(t *testing.T) {
	cluster := startCluster(t, 1)
	e := start(t, fixture(), cluster.ListenAddrs(), func(c *config) {
		c.Timeout, c.Producer.Linger = pipeline.Duration(maxLinger/2), pipeline.Duration(maxLinger)
	})
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Error(err)
	}
	c := defaults()
	c.Producer.Linger, c.Queue = c.Timeout, pipeline.Present(pipeline.DefaultQueue())
	const want = "must be below timeout (15s), not 15s; attempts would end before their records are sent"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("behind a queue: %v", err)
	}
}

// Without a tenant, or without a name for the header, there is none.
func TestTenantHeader(t *testing.T) {
	cluster := startCluster(t, 1)
	f := func(header, tenant, want string) {
		t.Helper()
		if err := start(t, fixture(), cluster.ListenAddrs(), func(c *config) { c.TenantHeader = header }).
			Consume(t.Context(), batch(t, tenant, 1, 1)); err != nil {
			t.Fatal(err)
		}
		records := read(t, cluster, "otlp_spans")
		got := ""
		for _, h := range records[len(records)-1].Headers {
			got += h.Key + "=" + string(h.Value)
		}
		if got != want {
			t.Errorf("header %q, tenant %q: sent %q, want %q", header, tenant, got, want)
		}
	}
	f("x-tenant", "acme", "x-tenant=acme")
	f("X-Scope", "acme", "X-Scope=acme")
	f("x-tenant", "", "")
	f("", "acme", "")
}

// All spans of a trace are in the partition of its id, and several traces are in one record.
func TestTracesAreInOnePartition(t *testing.T) {
	const partitions = 5
	cluster := startCluster(t, partitions)
	e := start(t, fixture(), cluster.ListenAddrs(), nil)
	b := batch(t, "", 100, 3)
	if err := e.Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	records := read(t, cluster, "otlp_spans")
	if len(records) != partitions {
		t.Errorf("%d records of 100 traces, want one for each partition", len(records))
	}
	if got, want := names(t, records), batchNames(t, b); !slices.Equal(got, want) {
		t.Errorf("wrote\n%q\nwant\n%q", got, want)
	}
	for _, r := range records {
		if r.Key != nil {
			t.Errorf("record of several traces has the key %q", r.Key)
		}
		ids := traceIDs(t, r.Value)
		for _, id := range ids {
			key := fmt.Sprintf("%x", id[:])
			if want := kafka.PartitionOf([]byte(key), partitions); r.Partition != want {
				t.Errorf("trace %s is in partition %d, want %d", key, r.Partition, want)
			}
		}
	}
}

// A record with one trace has its id as its key.
func TestKeyOfOneTrace(t *testing.T) {
	cluster := startCluster(t, 7)
	e := start(t, fixture(), cluster.ListenAddrs(), nil)
	if err := e.Consume(t.Context(), batch(t, "", 1, 10)); err != nil {
		t.Fatal(err)
	}
	records := read(t, cluster, "otlp_spans")
	if want := "00000000000000010000000000000000"; len(records) != 1 || string(records[0].Key) != want {
		t.Fatalf("%d records, key %q, want %q", len(records), records[0].Key, want)
	}
}

func TestKeyService(t *testing.T) {
	const partitions = 20
	cluster := startCluster(t, partitions)
	e := start(t, fixture(), cluster.ListenAddrs(), func(c *config) { c.Key = kafka.KeyService })
	if err := e.Consume(t.Context(), batch(t, "", 10, 2)); err != nil {
		t.Fatal(err)
	}
	records := read(t, cluster, "otlp_spans")
	var keys []string
	for _, r := range records {
		keys = append(keys, string(r.Key))
		if want := kafka.PartitionOf(r.Key, partitions); r.Partition != want {
			t.Errorf("%s is in partition %d, want %d", r.Key, r.Partition, want)
		}
	}
	if slices.Sort(keys); !slices.Equal(keys, []string{"service-0", "service-1"}) {
		t.Errorf("keys %q", keys)
	}
}

func traceIDs(t testing.TB, request []byte) (ids []otlpdata.TraceID) {
	t.Helper()
	b, err := otlpdata.FromOTLP(request, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var c idCollector
	if err := b.Walk(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

type idCollector []otlpdata.TraceID

func (c *idCollector) Resource(*otlpdata.Resource) error { return nil }
func (c *idCollector) Scope(*otlpdata.Scope) error       { return nil }
func (c *idCollector) Span(s *otlpdata.Span) error       { *c = append(*c, s.TraceID); return nil }

// Consume returns only after the broker has acknowledged the records.
func TestAcknowledgedByTheBroker(t *testing.T) {
	cluster := startCluster(t, 1)
	a := control(cluster)
	a.blocked = make(chan struct{})
	e := start(t, fixture(), cluster.ListenAddrs(), nil)
	result := make(chan error, 1)
	go func() { result <- e.Consume(context.Background(), batch(t, "", 1, 1)) }()
	<-a.requests
	select {
	case err := <-result:
		t.Errorf("answered before the broker: %v", err)
	default:
	}
	if info := cluster.PartitionInfo("otlp_spans", 0); info.HighWatermark != 0 {
		t.Errorf("%d records are stored", info.HighWatermark)
	}
	close(a.blocked)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if info := cluster.PartitionInfo("otlp_spans", 0); info.HighWatermark != 1 {
		t.Errorf("%d records are stored", info.HighWatermark)
	}
}

// When the context ends, Consume returns, and the records count as not acknowledged.
func TestContextEnds(t *testing.T) {
	cluster := startCluster(t, 1)
	a := control(cluster)
	a.blocked = make(chan struct{})
	defer close(a.blocked)
	e := start(t, fixture(), cluster.ListenAddrs(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- e.Consume(ctx, batch(t, "", 1, 1)) }()
	<-a.requests
	cancel()
	if err := <-result; err == nil || pipeline.IsPermanent(err) {
		t.Errorf("result %v, want a temporary error", err)
	}
}

// A retry writes only spans that the broker has not acknowledged.
func TestRetryWritesTheRest(t *testing.T) {
	for _, encoding := range []string{kafka.OTLPProto, kafka.JaegerProto} {
		t.Run(encoding, func(t *testing.T) {
			const partitions = 4
			cluster := startCluster(t, partitions, kfake.NumBrokers(partitions))
			for p := range int32(partitions) {
				if err := cluster.MoveTopicPartition("otlp_spans", p, p); err != nil { // a request for each partition
					t.Fatal(err)
				}
			}
			a := control(cluster)
			a.codes[1], a.codes[2] = kerr.ClusterAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code
			f := fixture()
			e := start(t, f, cluster.ListenAddrs(), func(c *config) { c.Encoding = encoding })
			b := batch(t, "acme", 60, 2)
			progress := new(pipeline.Progress)
			ctx := pipeline.WithProgress(t.Context(), progress)
			err := e.Consume(ctx, b)
			if err == nil || pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "refuses access to topic otlp_spans") {
				t.Fatalf("error %v", err)
			}
			if progress.Remaining == nil || progress.Remaining.Len()+progress.Taken != b.Len() || progress.Taken == 0 {
				t.Fatalf("progress %+v", progress)
			}
			if got := progress.Remaining.Meta(); got != b.Meta() {
				t.Errorf("rest has meta %+v", got)
			}
			a.mu.Lock()
			a.codes = nil
			a.mu.Unlock()
			if err := e.Consume(ctx, b); err != nil {
				t.Fatal(err)
			}
			if encoding == kafka.JaegerProto {
				if got := len(read(t, cluster, "otlp_spans")); got != b.Len() {
					t.Errorf("%d records of %d spans", got, b.Len())
				}
				return
			}
			if got, want := names(t, read(t, cluster, "otlp_spans")), batchNames(t, b); !slices.Equal(got, want) {
				t.Errorf("wrote\n%q\nwant\n%q", got, want)
			}
		})
	}
}

// Errors of brokers keep their class.
func TestErrorClasses(t *testing.T) {
	cluster := startCluster(t, 1)
	a := control(cluster)
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), nil)
	for _, test := range []struct {
		answer    *kerr.Error
		permanent bool
		reason    string
		text      string
	}{
		{kerr.TopicAuthorizationFailed, false, kafka.ReasonUnauthorized, "check auth::sasl and the ACLs"},
		{kerr.ClusterAuthorizationFailed, false, kafka.ReasonUnauthorized, "check auth::sasl and the ACLs"},
		{kerr.UnknownServerError, false, kafka.ReasonOther, "kafka topic otlp_spans: UNKNOWN_SERVER_ERROR"},
		{kerr.PolicyViolation, false, kafka.ReasonOther, "POLICY_VIOLATION"},
		{kerr.InvalidRecord, true, kafka.ReasonInvalidRecord, "INVALID_RECORD"},
		{kerr.MessageTooLarge, true, kafka.ReasonTooLarge, "set producer::max_message_bytes to at most its max.message.bytes"},
	} {
		a.mu.Lock()
		a.always = test.answer.Code
		a.mu.Unlock()
		before := f.Samples(t, "tracing_kafka_producer_failures_total", "reason")[test.reason]
		err := e.Consume(t.Context(), batch(t, "", 1, 1))
		if err == nil || pipeline.IsPermanent(err) != test.permanent || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: error %v", test.answer.Message, err)
		}
		if !errors.Is(err, test.answer) {
			t.Errorf("%s is not wrapped", test.answer.Message)
		}
		if got := f.Samples(t, "tracing_kafka_producer_failures_total", "reason")[test.reason] - before; got != 1 {
			t.Errorf("%s: counted %v as %s", test.answer.Message, got, test.reason)
		}
	}
}

// Errors that pass by themselves are repeated within the attempt, with the same sequence number.
func TestRepeatedWithinTheAttempt(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	a := control(cluster)
	a.always = kerr.NotEnoughReplicas.Code
	e := start(t, fixture(), cluster.ListenAddrs(), nil)
	result := make(chan error, 1)
	go func() { result <- e.Consume(context.Background(), batch(t, "", 1, 1)) }()
	for range 2 {
		<-a.requests
	}
	a.mu.Lock()
	a.always = 0
	a.mu.Unlock()
	if err := <-result; err != nil {
		t.Error(err)
	}
	if got := len(read(t, cluster, "otlp_spans")); got != 1 {
		t.Errorf("%d records", got)
	}
}

// A span that is larger than a record is rejected, and the others are written.
func TestTooLargeSpans(t *testing.T) {
	for _, key := range []string{kafka.KeyTraceID, kafka.KeyService, kafka.KeyNone} {
		for _, encoding := range kafka.Encodings() {
			t.Run(encoding+" "+key, func(t *testing.T) {
				cluster := startCluster(t, 2)
				f := fixture()
				e := start(t, f, cluster.ListenAddrs(), func(c *config) {
					c.Key, c.Encoding, c.Producer.MaxMessageBytes = key, encoding, 4<<10
				})
				b := paddedBatch(t, "", 10, 3, func(n int) int {
					if n == 7 || n == 8 {
						return 10 << 10
					}
					return 100
				})
				err := e.Consume(t.Context(), b)
				var partial *pipeline.Partial
				if !errors.As(err, &partial) || partial.Rejected != 2 {
					t.Fatalf("error %v, want 2 rejected spans", err)
				}
				if code, _ := pipeline.HTTPStatus(partial.Err); code != 413 {
					t.Errorf("status %d of %v", code, partial.Err)
				}
				if got := f.Samples(t, "tracing_kafka_producer_failures_total", "reason")[kafka.ReasonTooLarge]; got != 2 {
					t.Errorf("counted %v", got)
				}
				records := read(t, cluster, "otlp_spans")
				for _, r := range records {
					if len(r.Value) > 4<<10 {
						t.Errorf("a record of %d bytes", len(r.Value))
					}
				}
				if encoding == kafka.OTLPProto {
					want := slices.DeleteFunc(batchNames(t, b), func(n string) bool {
						return strings.HasSuffix(n, "/7") || strings.HasSuffix(n, "/8")
					})
					if got := names(t, records); !slices.Equal(got, want) {
						t.Errorf("wrote\n%q\nwant\n%q", got, want)
					}
				}
				if err := e.Consume(t.Context(), paddedBatch(t, "", 1, 1, func(int) int { return 10 << 10 })); !pipeline.IsPermanent(err) {
					t.Errorf("a batch of one span: %v, want a permanent error", err)
				}
			})
		}
	}
}

// A batch that is larger than a record makes several.
func TestLargeBatch(t *testing.T) {
	for _, key := range []string{kafka.KeyTraceID, kafka.KeyNone} {
		cluster := startCluster(t, 3)
		e := start(t, fixture(), cluster.ListenAddrs(), func(c *config) { c.Key, c.Producer.MaxMessageBytes = key, 8<<10 })
		joined, err := otlpdata.Concat(batch(t, "", 3, 2), paddedBatch(t, "", 20, 20, func(int) int { return 100 }), batch(t, "", 5, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Consume(t.Context(), joined); err != nil {
			t.Fatal(err)
		}
		records := read(t, cluster, "otlp_spans")
		if len(records) < 5 {
			t.Errorf("key %s: %d records", key, len(records))
		}
		if got, want := names(t, records), batchNames(t, joined); !slices.Equal(got, want) {
			t.Errorf("key %s: wrote %d spans, want %d", key, len(got), len(want))
		}
	}
}

func TestZipkinNeedsIDs(t *testing.T) {
	cluster := startCluster(t, 1)
	e := start(t, fixture(), cluster.ListenAddrs(), func(c *config) { c.Encoding = kafka.ZipkinJSON })
	b, err := batch(t, "", 2, 2).Edit(func(td ptrace.Traces) error {
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetSpanID([8]byte{})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var partial *pipeline.Partial
	err = e.Consume(t.Context(), b)
	if !errors.As(err, &partial) || partial.Rejected != 1 || !strings.Contains(err.Error(), "without a trace id") {
		t.Errorf("error %v", err)
	}
}

func TestMetrics(t *testing.T) {
	cluster := startCluster(t, 3)
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), func(c *config) { c.Producer.Compression = "none" })
	if err := e.Consume(t.Context(), batch(t, "", 50, 2)); err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]float64{"tracing_kafka_producer_records_total": 3, "tracing_kafka_producer_partitions": 3,
		"tracing_kafka_producer_buffered_bytes": 0} {
		if got := f.Samples(t, metric)[""]; got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	eventually(t, "bytes are counted", func() bool { // after the answer
		written := f.Samples(t, "tracing_kafka_producer_bytes_total")[""]
		uncompressed := f.Samples(t, "tracing_kafka_producer_uncompressed_bytes_total")[""]
		return written > 1000 && written == uncompressed
	})
}

// Higher levels of compression make smaller records.
func TestCompressionLevels(t *testing.T) {
	var all []*otlpdata.Batch
	for request := range bench.New(1, time.Unix(1_700_000_000, 0)).Requests(2000, 1000) {
		b, err := otlpdata.FromOTLP(request.Body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	b, err := otlpdata.Concat(all...)
	if err != nil {
		t.Fatal(err)
	}
	for codec, levels := range map[string][]int{"gzip": {0, 4, 9}, "lz4": {0, 9}, "zstd": {0, 3, 6, 22}} {
		before := math.Inf(1)
		for _, level := range levels {
			f := fixture()
			e := start(t, f, startCluster(t, 1).ListenAddrs(), func(c *config) {
				c.Producer.Compression, c.Producer.CompressionParams.Level = codec, level
			})
			if err := e.Consume(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			var size float64
			eventually(t, "bytes are counted", func() bool { // after the answer
				size = f.Samples(t, "tracing_kafka_producer_bytes_total")[""]
				return size > 0
			})
			if size >= before {
				t.Errorf("%s: %v bytes with level %d, %v with the level before", codec, size, level, before)
			}
			before = size
		}
	}
}

// The exporter starts with the largest record that the configuration allows.
func TestMaxMessageBytesOfTheConfiguration(t *testing.T) {
	e := start(t, fixture(), startCluster(t, 1).ListenAddrs(), func(c *config) {
		c.Producer.MaxMessageBytes, c.Producer.MaxBufferedBytes = maxMessageBytes, maxMessageBytes
	})
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil {
		t.Error(err)
	}
}

// Calls wait while the records of others fill the buffer.
func TestBufferedBytes(t *testing.T) {
	cluster := startCluster(t, 1)
	a := control(cluster)
	a.blocked = make(chan struct{})
	f := fixture()
	e := start(t, f, cluster.ListenAddrs(), func(c *config) {
		c.Producer.MaxMessageBytes, c.Producer.MaxBufferedBytes = 64<<10, 64<<10
	})
	large := paddedBatch(t, "", 1, 1, func(int) int { return 40 << 10 })
	result := make(chan error, 1)
	go func() { result <- e.Consume(context.Background(), large) }()
	<-a.requests
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	waiting := paddedBatch(t, "", 2, 1, func(n int) int { return (40 + 30*n) << 10 })
	if err := e.Consume(ctx, waiting); err == nil || pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "max_buffered_bytes") {
		t.Errorf("error %v", err)
	}
	if got := f.Samples(t, "tracing_kafka_producer_failures_total", "reason")[kafka.ReasonTooLarge]; got != 0 {
		t.Errorf("counted %v too large spans of a batch that must be resent", got)
	}
	if got := f.Samples(t, "tracing_kafka_producer_buffered_bytes")[""]; got < 40<<10 || got > 64<<10 {
		t.Errorf("%v bytes are buffered", got)
	}
	close(a.blocked)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if err := e.Consume(t.Context(), large); err != nil {
		t.Error(err)
	}
}

// Memory for records is part of the budget of the process.
func TestBudget(t *testing.T) {
	cluster := startCluster(t, 3)
	f := pipelinetest.NewFixture("kafka", 4<<10)
	e := start(t, f, cluster.ListenAddrs(), nil)
	held, err := f.Settings.Budget.Reserve(3 << 10)
	if err != nil {
		t.Fatal(err)
	}
	b := batch(t, "", 20, 2)
	if err := e.Consume(t.Context(), b); !errors.Is(err, pipeline.ErrOverBudget) || pipeline.IsPermanent(err) {
		t.Errorf("error %v, want an overloaded process", err)
	}
	held.Release()
	if err := e.Consume(t.Context(), batch(t, "", 5, 2)); err != nil {
		t.Error(err)
	}
	if err := e.Consume(t.Context(), batch(t, "", 100, 2)); !pipeline.IsPermanent(err) {
		t.Errorf("a batch that exceeds the whole budget: %v, want a permanent error", err)
	}
	if used := f.Settings.Budget.Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

func TestConcurrentCallers(t *testing.T) {
	cluster := startCluster(t, 3)
	e := start(t, fixture(), cluster.ListenAddrs(), nil)
	errs := make(chan error)
	const callers, rounds = 16, 10
	for i := range callers {
		go func() {
			var all []error
			for range rounds {
				all = append(all, e.Consume(context.Background(), batch(t, "", 5+i, 2)))
			}
			errs <- errors.Join(all...)
		}()
	}
	want := 0
	for i := range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
		want += rounds * 2 * (5 + i)
	}
	if got := len(names(t, read(t, cluster, "otlp_spans"))); got != want {
		t.Errorf("%d spans, want %d", got, want)
	}
}
