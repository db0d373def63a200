package kafka

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// partition is an assigned partition with the worker that processes its records in order.
type partition struct {
	r        *receiver
	number   int32
	progress progress
	expected int64 // offset of the next record to poll, -1 if unknown; for the polling goroutine

	highWatermark atomic.Int64 // -1 before it is known
	skippedAt     atomic.Int64 // when a batch without records was fetched, in ns since 1970; 0: none, or it is handled

	ctx      context.Context // of batches in the pipeline
	cancel   context.CancelFunc
	stopping chan struct{} // closed when no other batch may be started
	stopOnce sync.Once
	done     chan struct{} // closed when the worker has ended
	wake     chan struct{} // has a value when queue has grown

	mu     sync.Mutex
	queue  []fetched
	oldest time.Time // time of the oldest polled record that is not accepted; zero if there is none
	behind time.Time // since when there are records that are not polled yet; zero if there are none

	busy     atomic.Bool  // whether the worker processes records, or has ended before they were accepted
	held     atomic.Int64 // bytes of records that are polled and not finished
	paused   atomic.Bool  // whether fetching is paused
	aside    atomic.Int64 // bytes that do not count as queued during the pause
	released bool         // no more offsets may be committed; guarded by committer.mu

	lastTenant string        // of the previous record
	joined     []*kgo.Record // buffer of next
}

// fetched is a run of polled records of a partition, or a batch of records that cannot be read.
type fetched struct {
	records []*kgo.Record
	skip    *kgo.ErrDecompressTooLarge
}

// run is a number of consecutive records that are processed together.
type run struct {
	records []*kgo.Record
	meta    otlpdata.Meta
	bytes   int64
	skip    *kgo.ErrDecompressTooLarge // instead of records
	invalid error                      // why the only record has no tenant
}

// recordOverhead is the approximate size of a record without its key, value and headers, in bytes.
const recordOverhead = 256

// memoryOf returns the approximate memory of a record.
func memoryOf(r *kgo.Record) int64 {
	n := recordOverhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}

func startPartition(r *receiver, number int32) *partition {
	ctx, cancel := context.WithCancel(context.Background())
	p := &partition{r: r, number: number, progress: newProgress(), expected: -1, ctx: ctx, cancel: cancel,
		stopping: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1)}
	p.highWatermark.Store(-1)
	go p.work()
	return p
}

// stop makes the worker end after the batch that is in the pipeline.
func (p *partition) stop() { p.stopOnce.Do(func() { close(p.stopping) }) }

func (p *partition) isStopping() bool {
	select {
	case <-p.stopping:
		return true
	default:
		return false
	}
}

// discard drops the unprocessed records. The worker must have ended.
func (p *partition) discard() {
	p.cancel()
	p.mu.Lock()
	queue := p.queue
	p.queue = nil
	p.mu.Unlock()
	for _, f := range queue {
		for _, record := range f.records {
			p.release(memoryOf(record))
		}
	}
	p.r.stalls.end(p.number)
	p.r.unfetched.end(p.number)
	p.resume() // the client library keeps pauses even when the partition is assigned to another member
}

// enqueue passes records to the worker.
func (p *partition) enqueue(f fetched) {
	p.mu.Lock()
	p.queue = append(p.queue, f)
	if p.oldest.IsZero() && len(f.records) > 0 {
		p.oldest = f.records[0].Timestamp
	}
	p.behind = time.Time{}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// hold charges n bytes of polled records.
func (p *partition) hold(n int64) {
	p.held.Add(n)
	p.r.memory.addBytes(n)
}

// release returns n bytes of records.
func (p *partition) release(n int64) {
	p.held.Add(-n)
	p.r.memory.remove(n)
}

func (p *partition) work() {
	defer close(p.done)
	for {
		g, ok := p.next()
		if !ok {
			return
		}
		p.busy.Store(true)
		ok = p.process(g)
		p.release(g.bytes)
		clear(g.records)
		if !ok {
			return
		}
		p.busy.Store(false)
		p.resume()
		p.finished()
	}
}

// next waits for records and returns the records at the head of the queue that may be joined. It
// returns false if the worker must end.
func (p *partition) next() (run, bool) {
	for {
		if p.isStopping() {
			return run{}, false
		}
		if g, ok := p.takeRun(); ok {
			return g, true
		}
		select {
		case <-p.wake:
		case <-p.stopping:
			return run{}, false
		}
	}
}

// takeRun removes records from the queue: the first one, and the following ones with the same
// tenant and metadata that fit into one batch.
func (p *partition) takeRun() (run, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := run{records: p.joined[:0]}
	for len(p.queue) > 0 && p.takeFrom(&p.queue[0], &g) {
		p.queue[0] = fetched{}
		p.queue = p.queue[1:]
	}
	if g.bytes == 0 && g.skip == nil {
		p.queue = nil // free the array
		return run{}, false
	}
	p.joined = g.records
	return g, true
}

// takeFrom moves records of f to g, as long as they may be joined. It returns false if some are
// left, or if nothing may follow.
func (p *partition) takeFrom(f *fetched, g *run) bool {
	if f.skip != nil {
		if len(g.records) > 0 {
			return false
		}
		g.skip, f.skip = f.skip, nil
		return true
	}
	if g.skip != nil {
		return false
	}
	for i, record := range f.records {
		bytes := memoryOf(record)
		if len(g.records) > 0 && (g.invalid != nil || g.bytes+bytes > int64(p.r.config.Batch.MaxSize)) {
			f.records = f.records[i:]
			return false
		}
		tenant, invalid := p.tenant(record)
		metadata := p.r.metadata(record)
		if len(g.records) > 0 && (invalid != nil || tenant != g.meta.Tenant || metadata != g.meta.Metadata) {
			f.records = f.records[i:]
			return false
		}
		if len(g.records) == 0 {
			g.meta, g.invalid = p.r.meta(tenant, metadata), invalid
		}
		g.records, g.bytes = append(g.records, record), g.bytes+bytes
	}
	f.records = nil
	return true
}

// tenant returns the tenant of a record. The error says why a required tenant is missing or
// invalid.
func (p *partition) tenant(record *kgo.Record) (string, error) {
	c, on := p.r.config.Tenancy.Get()
	if !on || !c.Enabled {
		return "", nil
	}
	var one [1]string
	values := one[:0]
	for i := range record.Headers {
		h := &record.Headers[i]
		switch {
		case !strings.EqualFold(h.Key, c.Header):
		case string(h.Value) == p.lastTenant:
			values = append(values, p.lastTenant)
		default:
			values = append(values, string(h.Value))
		}
	}
	tenant, err := c.Tenant(values)
	if err == nil {
		p.lastTenant = tenant
	}
	return tenant, err
}

// metadata returns the headers of a record, if they are kept.
func (r *receiver) metadata(record *kgo.Record) otlpdata.Metadata {
	if !r.config.IncludeMetadata || len(record.Headers) == 0 {
		return otlpdata.Metadata{}
	}
	headers := make(map[string][]string, len(record.Headers))
	for _, h := range record.Headers {
		headers[h.Key] = append(headers[h.Key], string(h.Value))
	}
	return otlpdata.NewMetadata(headers)
}

// finished updates the time of the oldest remaining record.
func (p *partition) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.oldest = time.Time{}
	if len(p.queue) > 0 && len(p.queue[0].records) > 0 {
		p.oldest = p.queue[0].records[0].Timestamp
	}
}

// process passes records to the pipeline until all are accepted, by the pipeline or as dead
// letters. It returns false if the worker must end before that.
//
// If the records cannot be decoded, or if the pipeline refuses their spans permanently, their
// halves are processed, and so on down to single records, so that a refused record does not affect
// the others.
func (p *partition) process(g run) bool {
	if g.skip != nil {
		return p.bury(letter{reason: reasonTooLarge, err: g.skip, record: &kgo.Record{Topic: p.r.config.Topic, Partition: p.number,
			Offset: g.skip.NextOffset - 1, LeaderEpoch: g.skip.Epoch}})
	}
	if g.invalid != nil {
		return p.bury(letter{reason: reasonTenant, err: g.invalid, record: g.records[0]})
	}
	reason, err := p.deliver(g)
	switch {
	case errors.Is(err, errStopping):
		return false
	case err == nil:
		p.accept(g.records[len(g.records)-1])
		return true
	case len(g.records) == 1:
		return p.bury(letter{reason: reason, err: err, record: g.records[0]})
	}
	half := len(g.records) / 2
	return p.process(run{records: g.records[:half], meta: g.meta}) && p.process(run{records: g.records[half:], meta: g.meta})
}

// accept moves the offset to commit past an accepted record.
func (p *partition) accept(record *kgo.Record) {
	p.progress.accept(record)
	p.r.mu.Lock()
	p.r.processed[p.number] = max(p.r.processed[p.number], record.Offset+1)
	p.r.mu.Unlock()
}

// errStopping is returned for records that were not accepted before the worker had to end.
var errStopping = errors.New("partition is given up")

// deliver decodes records and passes their spans to the pipeline, and retries until the pipeline
// accepts them or refuses them because of their content. It also retries other permanent errors,
// such as wrong credentials for a next hop, because they concern all records. It returns nil,
// errStopping, or the refusal with the reason for a dead letter.
func (p *partition) deliver(g run) (reason string, err error) {
	for delays := p.r.newDelays(); ; {
		reason, err = p.attempt(g)
		if err != nil && p.ctx.Err() != nil {
			return "", errStopping
		}
		if err == nil || errors.Is(err, errStopping) || pipeline.IsAboutData(err) {
			p.r.stalls.end(p.number)
			return reason, err
		}
		if !p.pause(err, &delays) {
			return "", errStopping
		}
	}
}

// attempt decodes records and passes their spans to the pipeline once.
func (p *partition) attempt(g run) (reason string, err error) {
	select {
	case p.r.slots <- struct{}{}:
		defer func() { <-p.r.slots }()
	case <-p.stopping:
		return "", errStopping
	}
	values := make([][]byte, len(g.records))
	for i, record := range g.records {
		values[i] = record.Value
	}
	claim, err := p.r.memory.claim(p.r.decoder.Memory(values))
	if err != nil {
		return reasonTooLarge, err
	}
	defer claim.release()
	b, err := p.r.decoder.Decode(values, g.meta, claim.resize)
	if err != nil {
		return server.ReasonOf(err), err
	}
	if len(g.records) > 1 && b.Len() > p.r.config.Batch.MaxSpans {
		return "", errTooManySpans
	}
	if b.Len() == 0 {
		return "", nil
	}
	if err := claim.resize(p.r.decoder.Held(b)); err != nil {
		return reasonTooLarge, err
	}
	err = p.r.next.Consume(p.ctx, b)
	var partial *pipeline.Partial
	if errors.As(err, &partial) {
		// The accepted spans must not be resent. The component that rejected the others has counted
		// them.
		p.r.set.Logger.Debug("some spans were rejected", zap.Int32("partition", p.number), zap.Error(err))
		return "", nil
	}
	return reasonRefused, err
}

// errTooManySpans says that joined records must be processed in parts.
var errTooManySpans = pipeline.Permanent(errors.New("joined records have too many spans"))

// bury writes a record as a dead letter, retries until it succeeds, and accepts the record. It
// returns false if the worker must end before that.
func (p *partition) bury(l letter) bool {
	for delays := p.r.newDelays(); ; {
		where, err := p.r.letters.write(p.ctx, l)
		if err == nil {
			p.r.stalls.end(p.number)
			p.r.counts.deadLetters.WithLabelValues(l.reason).Inc()
			if p.r.set.Refused != nil && l.reason != reasonRefused { // the framework has counted what the pipeline refused
				p.r.set.Refused(transport, l.reason, 1)
			}
			p.r.reports.log.Warn("record was written as a dead letter", zap.Int32("partition", p.number),
				zap.Int64("offset", l.record.Offset), zap.String("reason", l.reason), zap.String("to", where), zap.Error(l.err))
			p.accept(l.record)
			return true
		}
		if !p.pause(&letterError{l.record.Offset, err}, &delays) {
			return false
		}
	}
}
