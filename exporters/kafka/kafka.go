// Package kafka implements the `kafka` exporter. It writes spans to a topic of a Kafka cluster.
//
// Files: kafka.go is the exporter; produce.go writes the records of one batch; topic.go watches the
// topic and creates it; config.go and metrics.go.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/internal/otlpparts"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// Factory returns the factory of exporters of type kafka.
func Factory() pipeline.Factory {
	return pipeline.Exporter("kafka", defaults, newExporter).
		Doc("Writes spans to a topic of a Kafka cluster, and acknowledges them when all in-sync replicas have them.")
}

type exporter struct {
	set      pipeline.Settings
	cfg      config
	conn     *kafka.Connection
	metrics  *metrics
	nextHop  *client.NextHop
	report   func(error) // about the topic
	buffered *semaphore.Weighted
	buffers  kafka.Buffers

	client *kgo.Client // from Start
	topic  *topic      // from Start

	mu      sync.Mutex
	stopped bool
	calls   sync.WaitGroup
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	m, err := newMetrics(set)
	if err != nil {
		return nil, err
	}
	conn, err := kafka.NewConnection(set, c.ClientConfig)
	if err != nil {
		return nil, err
	}
	reports := pipeline.NewReports(set.Report)
	sends := set
	sends.Report = reports.Part("sends")
	return &exporter{set: set, cfg: c, conn: conn, metrics: m, nextHop: client.NewNextHop(sends), report: reports.Part("topic"),
		buffered: semaphore.NewWeighted(int64(c.Producer.MaxBufferedBytes))}, nil
}

// minDeliveryTimeout is the minimum that the client library allows.
const minDeliveryTimeout = time.Second

// Start creates the client, which connects in the background, and starts watching the topic.
func (e *exporter) Start(ctx context.Context) error {
	if err := e.conn.Load(ctx); err != nil {
		return err
	}
	e.topic = newTopic(e.set, &e.cfg, e.metrics.partitions, e.report)
	timeout := max(e.cfg.Timeout.Std(), minDeliveryTimeout)
	var err error
	e.client, err = kgo.NewClient(append(e.conn.Options(),
		kgo.DefaultProduceTopic(e.cfg.Topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(e.cfg.Producer.codec(), kgo.NoCompression()),
		kgo.ProducerBatchMaxBytesFn(e.topic.clientLimit),
		kgo.BrokerMaxWriteBytes(int32(max(2*e.cfg.Producer.MaxMessageBytes, minBrokerWrite))),
		kgo.ProducerLinger(e.cfg.linger()),
		kgo.MaxBufferedRecords(maxBufferedRecords),
		kgo.ProduceRequestTimeout(timeout),
		// A record is given up with the attempt that it belongs to, because the next attempt
		// resends its spans. Otherwise, copies would wait in the client while a broker is down. If
		// the broker has stored it after all, its spans are in the topic twice.
		kgo.RecordDeliveryTimeout(timeout),
		kgo.AllowIdempotentProduceCancellation(),
		kgo.RecordPartitioner(e.partitioner()),
		kgo.WithHooks(&writeHook{e.metrics}),
	)...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	e.topic.start(e.client)
	return nil
}

const (
	// minBrokerWrite is the default of the client library.
	minBrokerWrite = 100 << 20
	// maxBufferedRecords is effectively unlimited, because the exporter itself limits the bytes of
	// records.
	maxBufferedRecords = 1 << 30
)

// Stop closes the connections after open calls have ended.
func (e *exporter) Stop(ctx context.Context) error {
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		e.calls.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = fmt.Errorf("stopped with records that the brokers have not acknowledged: %w", ctx.Err())
	}
	if e.client != nil {
		e.topic.stop()
		e.client.Close() // ends the open calls
		<-ended
	}
	return errors.Join(err, e.conn.Close(ctx))
}

// Durability returns DurabilitySent: acknowledged spans are on all in-sync replicas of the topic.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// beginSend begins a call unless the exporter is stopping.
func (e *exporter) beginSend() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return false
	}
	e.calls.Add(1)
	return true
}

// Consume makes one attempt to write b and returns when the brokers have acknowledged or refused
// every record. If some records are refused temporarily, the next attempt writes only their spans.
// If there is no further attempt, the error applies to all spans: a caller that retries resends the
// accepted ones. After a queue, where no caller retries, only the spans of other records count as
// dropped.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if !e.beginSend() {
		return pipeline.Unavailable(pipeline.ErrStopping, 0)
	}
	defer e.calls.Done()
	progress := pipeline.ProgressOf(ctx)
	left := b
	if progress.Remaining != nil {
		left = progress.Remaining
	}
	if left.Len() > 0 {
		if err := e.attempt(ctx, left, progress); err != nil {
			return e.nextHop.Record(ctx, err)
		}
	}
	return e.nextHop.Record(ctx, progress.Result(b.Len()))
}

// attempt writes b and records the outcome of each record. It returns the error of a record that
// was refused temporarily, or nil if there is none.
func (e *exporter) attempt(ctx context.Context, b *otlpdata.Batch, progress *pipeline.Progress) (err error) {
	ctx, span := e.set.Tracer.StartClient(ctx, "produce "+e.cfg.Topic)
	defer func() { selftrace.End(span, err) }()
	partitions, err := e.topic.await(ctx)
	if err != nil {
		return pipeline.Unavailable(err, 0)
	}
	memory, err := otlpparts.NewMemory(e.set.Budget, 0, "bytes of records of one batch")
	if err != nil {
		return err
	}
	defer memory.Release()
	headers, limit := e.headers(b.Meta().Tenant), e.topic.maxBatch()
	records, err := kafka.Encode(b, kafka.EncodeOptions{Encoding: e.cfg.Encoding, Key: e.cfg.Key, Partitions: partitions,
		MaxBytes: max(limit-recordOverhead-headerSize(headers), 1), Grow: memory.Grow, Buffers: &e.buffers})
	if err != nil {
		if !errors.Is(err, pipeline.ErrOverBudget) {
			err = pipeline.Permanent(err)
		}
		return err
	}
	results, err := e.produce(ctx, records, headers, limit)
	if err != nil {
		return err
	}
	e.refuse(records, limit, progress)
	if !slices.ContainsFunc(results, func(err error) bool { return err != nil }) {
		records.Reuse() // the client may still use values of a record that it gave up
	}
	return e.record(b, records, results, progress)
}

// refuse records the spans that do not fit into a record of at most limit bytes.
func (e *exporter) refuse(records *kafka.Records, limit int, progress *pipeline.Progress) {
	var err error
	switch {
	case records.TooLarge > 0:
		err = &otlpdata.LimitError{Limit: "bytes of a span in a record (producer::max_message_bytes)", Max: limit, TooLarge: true}
		e.metrics.failures.WithLabelValues(kafka.ReasonTooLarge).Add(float64(records.TooLarge))
	case records.NoIDs > 0:
		err = errNoIDs
	}
	if records.NoIDs > 0 {
		e.metrics.failures.WithLabelValues(kafka.ReasonInvalidRecord).Add(float64(records.NoIDs))
	}
	if progress.Refusal == nil && err != nil {
		progress.Refusal = err
	}
}

var errNoIDs = pipeline.Permanent(errors.New("spans without a trace id or a span id cannot be written in Zipkin's format"))

// record adds the results of the records of b to progress, and returns the error of a record that
// was refused temporarily.
func (e *exporter) record(b *otlpdata.Batch, records *kafka.Records, results []error, progress *pipeline.Progress) error {
	var worst error
	taken, left := 0, 0
	for i, err := range results {
		spans := records.List[i].Spans
		switch {
		case err == nil:
			taken += spans
		case pipeline.IsPermanent(err):
			if progress.Refusal == nil {
				progress.Refusal = err
			}
		default:
			worst = err
			left += spans
		}
	}
	progress.Taken += taken
	switch left {
	case 0:
		return nil
	case b.Len():
		progress.Remaining = b
		return worst
	}
	remaining, err := records.Remaining(b, func(i int) bool { return results[i] != nil && !pipeline.IsPermanent(results[i]) })
	if err != nil {
		return pipeline.Permanent(err)
	}
	progress.Remaining = remaining
	return worst
}
