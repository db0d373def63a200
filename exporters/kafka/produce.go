package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
)

const (
	// recordOverhead is the maximum size of a record batch with one record, without its key, value
	// and headers, in bytes.
	recordOverhead = 160
	// recordMemory is the memory of a buffered record in addition to its bytes.
	recordMemory = 512
	// adaptiveBytes is the number of bytes after which records without a key go to another
	// partition.
	adaptiveBytes = 64 << 10
)

// partitioner returns the partitioner of the client. With a key, the encoder has chosen the
// partition.
func (e *exporter) partitioner() kgo.Partitioner {
	if e.cfg.Key == kafka.KeyNone {
		return kgo.UniformBytesPartitioner(adaptiveBytes, true, false, nil)
	}
	return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
		return func(r *kgo.Record, n int) int {
			e.topic.counted(n)
			return int(r.Partition) % n
		}
	})
}

// headers returns the headers of the records of a tenant.
func (e *exporter) headers(tenant string) []kgo.RecordHeader {
	if tenant == "" || e.cfg.TenantHeader == "" {
		return nil
	}
	return []kgo.RecordHeader{{Key: e.cfg.TenantHeader, Value: []byte(tenant)}}
}

func headerSize(headers []kgo.RecordHeader) (n int) {
	for _, h := range headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// produce writes records, which were made for record batches of at most limit bytes, and returns
// the result of each when all are known. When ctx ends, records with an unknown result count as
// refused temporarily.
func (e *exporter) produce(ctx context.Context, records *kafka.Records, headers []kgo.RecordHeader, limit int) ([]error, error) {
	p := &production{exporter: e, results: make([]error, len(records.List)), left: len(records.List), done: make(chan struct{})}
	if p.left == 0 {
		return nil, nil
	}
	size := int64(0)
	for i := range records.List {
		r := &records.List[i]
		size += int64(len(r.Key) + len(r.Value) + headerSize(headers) + recordMemory)
		p.results[i] = errUnknown
	}
	p.size = min(size, int64(e.cfg.Producer.MaxBufferedBytes))
	if err := e.buffered.Acquire(ctx, p.size); err != nil {
		return nil, pipeline.Unavailable(fmt.Errorf("kafka topic %s: waiting for producer::max_buffered_bytes: %w", e.cfg.Topic, err), 0)
	}
	e.metrics.buffered.Add(float64(p.size))
	sent := make([]kgo.Record, len(records.List))
	for i := range records.List {
		r := &records.List[i]
		sent[i] = kgo.Record{Key: r.Key, Value: r.Value, Headers: headers, Partition: r.Partition}
		// Do not pass ctx: a client that disconnects must not make other clients' records in the
		// same record batch fail.
		e.client.Produce(context.Background(), &sent[i], func(_ *kgo.Record, err error) { p.finish(i, err) })
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	return p.outcome(ctx, limit), nil
}

// errUnknown is the initial result of a record.
var errUnknown = errors.New("unknown")

// production is the state of the records of one attempt.
type production struct {
	exporter *exporter
	size     int64
	done     chan struct{} // closed when all results are known

	mu      sync.Mutex
	results []error
	left    int // number of unknown results
}

// finish records the result of one record. It is called by the client.
func (p *production) finish(i int, err error) {
	p.exporter.metrics.count(err)
	p.mu.Lock()
	p.results[i] = err
	p.left--
	last := p.left == 0
	p.mu.Unlock()
	if last {
		p.exporter.buffered.Release(p.size)
		p.exporter.metrics.buffered.Sub(float64(p.size))
		close(p.done)
	}
}

// outcome returns the results as errors of Consume.
func (p *production) outcome(ctx context.Context, limit int) []error {
	p.mu.Lock()
	results := slices.Clone(p.results)
	p.mu.Unlock()
	e := p.exporter
	resized := sync.OnceValue(func() bool { return e.topic.resized(ctx, limit) })
	for i, err := range results {
		switch {
		case err == nil:
		case err == errUnknown:
			results[i] = pipeline.Unavailable(fmt.Errorf("kafka topic %s: record is not acknowledged: %w", e.cfg.Topic, ctx.Err()), 0)
		default:
			results[i] = e.classify(err, resized)
		}
	}
	return results
}

// classify returns the error of Consume for an error of the client. resized reports whether the
// maximum size of a record batch was changed after the records were made; the next attempt then
// makes records that fit.
func (e *exporter) classify(err error, resized func() bool) error {
	if errors.Is(err, kgo.ErrClientClosed) {
		return pipeline.Unavailable(pipeline.ErrStopping, 0)
	}
	reason := kafka.Reason(err)
	err = e.cfg.Explain(e.cfg.Topic, err)
	switch {
	case reason == kafka.ReasonInvalidRecord, reason == kafka.ReasonTooLarge && !resized():
		return pipeline.Permanent(err)
	case reason == kafka.ReasonThrottled:
		return pipeline.Overloaded(err, 0)
	}
	e.topic.suspect()
	return pipeline.Unavailable(err, 0)
}
