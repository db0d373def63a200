package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// rewind is how far consumption goes back after brokers have lost an unknown set of records. A
// partition without consumed records begins with its first record.
const rewind = time.Minute

// options returns the client options that do not concern connections.
func (r *receiver) options(ctx context.Context) []kgo.Opt {
	c := &r.config
	start := kgo.NewOffset().AtStart()
	if c.InitialOffset == latest {
		start = kgo.NewOffset().AtEnd()
	}
	const largestResponse = 100 << 20 // the default: a batch of records may be larger than max_fetch_size
	opts := []kgo.Opt{
		kgo.WithContext(ctx),
		kgo.ConsumerGroup(c.GroupID),
		kgo.ConsumeTopics(c.Topic),
		kgo.ConsumeStartOffset(start),
		kgo.ConsumeResetOffset(kgo.RewindOffset(rewind)),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.SessionTimeout.Std()),
		kgo.HeartbeatInterval(c.HeartbeatInterval.Std()),
		kgo.RebalanceTimeout(c.RebalanceTimeout.Std()),
		kgo.FetchMinBytes(int32(c.MinFetchSize)),
		kgo.FetchMaxBytes(int32(c.MaxFetchSize)),
		kgo.FetchMaxWait(c.MaxFetchWait.Std()),
		kgo.FetchMaxPartitionBytes(int32(c.MaxPartitionFetchSize)),
		kgo.BrokerMaxReadBytes(int32(max(largestResponse, c.MaxFetchSize+responseOverhead))),
		kgo.MaxConcurrentFetches(c.MaxConcurrentFetches),
		kgo.MaxDecompressBatchBytes(int(c.MaxDecompressedBatchSize)),
		// The committer commits; see progress. Assignments change only between two polls, so that
		// no record is polled from a partition that is being revoked.
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(r.onAssigned),
		kgo.OnOffsetsFetched(r.onCommitted),
		kgo.AdjustFetchOffsetsFn(r.startOffsets),
		kgo.OnPartitionsRevoked(r.onRevoked),
		kgo.OnPartitionsLost(r.onLost),
		kgo.WithHooks(hooks{r}),
		// For dead letters, which are a little larger than the original record: the broker decides.
		kgo.ProducerBatchMaxBytes(largestResponse / 2),
	}
	if c.RackID != "" {
		opts = append(opts, kgo.Rack(c.RackID))
	}
	if c.GroupInstanceID != "" {
		opts = append(opts, kgo.InstanceID(c.GroupInstanceID))
	}
	return opts
}

// poll passes records to the workers of their partitions.
func (r *receiver) poll(ctx context.Context) {
	for r.memory.wait(ctx) {
		polling, cancel := context.WithTimeout(ctx, skippedDelay)
		fetches := r.client.PollFetches(polling)
		cancel()
		fetches.EachPartition(func(f kgo.FetchTopicPartition) { r.dispatch(ctx, f.Topic, &f.FetchPartition) })
		r.fetchSkipped()
		r.client.AllowRebalance()
	}
}

// skippedDelay is the time after which the client library is assumed to have discarded the error of
// a batch without records.
const skippedDelay = time.Second

// fetchSkipped restarts fetching in partitions that had a batch without records, for example one
// above max_decompressed_batch_size. The client library does not fetch from them until an offset is
// set, and discards the error if the partition is paused or if connections change.
func (r *receiver) fetchSkipped() {
	before := r.set.Env.Now().Add(-skippedDelay).UnixNano()
	for _, p := range r.assigned() {
		if at := p.skippedAt.Load(); at == 0 || at > before || p.paused.Load() || p.expected < 0 {
			continue
		}
		p.skippedAt.Store(0)
		r.setOffset(p, kgo.EpochOffset{Epoch: -1, Offset: p.expected + 1}) // it ignores an offset that was set before
		r.setOffset(p, kgo.EpochOffset{Epoch: -1, Offset: p.expected})
	}
}

// setOffset makes the client library continue at an offset.
func (r *receiver) setOffset(p *partition, o kgo.EpochOffset) {
	r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{r.config.Topic: {p.number: o}})
}

// dispatch passes the polled records of one partition to its worker, and then handles the error
// after them: the client library continues after the records even if there is an error.
func (r *receiver) dispatch(ctx context.Context, topic string, f *kgo.FetchPartition) {
	var p *partition
	if topic == r.config.Topic { // errors of a broker or of the group have no topic
		p = r.partition(f.Partition)
	}
	if p != nil && len(f.Records) > 0 { // nothing is committed for an unassigned partition, so nothing is lost
		r.receive(p, f)
	}
	if f.Err != nil {
		r.fetchFailed(ctx, p, f)
	}
}

// receive passes polled records to the worker of their partition.
func (r *receiver) receive(p *partition, f *kgo.FetchPartition) {
	r.unfetched.end(p.number)
	p.highWatermark.Store(f.HighWatermark)
	p.progress.beginRecord(f.Records[0].Offset)
	r.checkOffsets(p, f)
	var bytes int64
	for _, record := range f.Records {
		bytes += memoryOf(record)
	}
	r.counts.records.Add(float64(len(f.Records)))
	r.counts.bytes.Add(float64(bytes - int64(len(f.Records))*recordOverhead))
	r.counts.repeated.Add(float64(r.repeated(f)))
	p.hold(bytes)
	p.enqueue(fetched{records: f.Records})
}

// checkOffsets logs and counts missing and repeated records.
func (r *receiver) checkOffsets(p *partition, f *kgo.FetchPartition) {
	first := f.Records[0].Offset
	switch expected := p.expected; {
	case expected < 0:
	case f.LogStartOffset > expected:
		r.counts.resets.Inc()
		r.counts.expired.Add(float64(f.LogStartOffset - expected))
		r.reports.log.Error("records were deleted before they were consumed; increase the retention of the topic or the number of members",
			zap.Int32("partition", f.Partition), zap.Int64("offset", expected), zap.Int64("first-offset", f.LogStartOffset))
	case first < expected:
		r.counts.resets.Inc()
		r.reports.log.Warn("offset is out of range; rereading records",
			zap.Int32("partition", f.Partition), zap.Int64("offset", expected), zap.Int64("from", first))
	}
	p.expected = f.Records[len(f.Records)-1].Offset + 1
}

// repeated returns the number of polled records that this receiver has already processed.
func (r *receiver) repeated(f *kgo.FetchPartition) int {
	r.mu.Lock()
	processed := r.processed[f.Partition]
	r.mu.Unlock()
	return sort.Search(len(f.Records), func(i int) bool { return f.Records[i].Offset >= processed })
}

// fetchFailed handles an error that the client library does not handle itself. p is nil if the
// error does not belong to an assigned partition.
func (r *receiver) fetchFailed(ctx context.Context, p *partition, f *kgo.FetchPartition) {
	var lost *kgo.ErrDataLoss
	var tooLarge *kgo.ErrDecompressTooLarge
	var session *kgo.ErrGroupSession
	switch {
	case ctx.Err() != nil, errors.Is(f.Err, kgo.ErrClientClosed):
	case p == nil && errors.Is(f.Err, context.DeadlineExceeded): // of poll
	case errors.As(f.Err, &session): // OnGroupManageError has reported it
	case errors.As(f.Err, &lost):
		r.counts.resets.Inc()
		r.reports.log.Error("brokers have lost records", zap.Int32("partition", f.Partition), zap.Error(f.Err))
		if p != nil {
			p.expected = lost.ResetTo
		}
	case errors.As(f.Err, &tooLarge) && p != nil:
		next := kgo.EpochOffset{Epoch: tooLarge.Epoch, Offset: tooLarge.NextOffset}
		p.expected = next.Offset
		p.enqueue(fetched{skip: tooLarge})
		p.skippedAt.Store(0)
		r.setOffset(p, next)
	default:
		number := int32(noPartition)
		if p != nil {
			number = p.number
		}
		err := r.config.Explain(r.config.Topic, f.Err)
		if errors.Is(f.Err, kerr.UnknownTopicID) {
			err = fmt.Errorf("topic %s was deleted and recreated; reload or restart this process: %w", r.config.Topic, f.Err)
		}
		r.unfetched.begin(number, err, r.set.Env.Now())
		r.reports.log.Error("cannot fetch records", zap.Int32("partition", f.Partition), zap.Error(f.Err))
	}
}

// noPartition stands for errors that belong to no partition.
const noPartition = -1

// partition returns an assigned partition, or nil.
func (r *receiver) partition(number int32) *partition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.partitions[number]
}

// assigned returns the assigned partitions, sorted by number.
func (r *receiver) assigned() []*partition {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Collect(maps.Values(r.partitions))
	slices.SortFunc(all, func(a, b *partition) int { return int(a.number) - int(b.number) })
	return all
}

// onAssigned starts a worker for each new partition.
func (r *receiver) onAssigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	r.reports.group(nil)
	r.counts.rebalances.Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, number := range added[r.config.Topic] {
		if r.partitions[number] == nil {
			r.partitions[number] = startPartition(r, number)
		}
	}
	r.set.Logger.Info("joined the group", zap.String("group", r.config.GroupID), zap.Int("partitions", len(r.partitions)),
		zap.Int32s("added", added[r.config.Topic]))
	select {
	case r.joined <- struct{}{}:
	default:
	}
}

// onCommitted records the committed offsets of assigned partitions.
func (r *receiver) onCommitted(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	know := func(number int32, offset int64) {
		if p := r.partition(number); p != nil && offset >= 0 && p.progress.position() < 0 {
			p.progress.commit(offset)
			p.expected = offset
		}
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			know(p.Partition, p.Offset)
		}
	}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				know(p.Partition, p.Offset)
			}
		}
	}
	return nil
}

// startOffsets replaces "no committed offset" by the offset at which the partition begins or ends,
// because SetOffsets works only for partitions for which the client library knows an offset. If the
// offset cannot be listed, the client library retries until it knows it.
func (r *receiver) startOffsets(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	list := r.admin.ListStartOffsets
	if r.config.InitialOffset == latest {
		list = r.admin.ListEndOffsets
	}
	var listed kadm.ListedOffsets
	for number, offset := range offsets[r.config.Topic] {
		p := r.partition(number)
		if p == nil || offset.EpochOffset().Offset >= 0 {
			continue
		}
		if listed == nil {
			var err error
			if listed, err = list(ctx, r.config.Topic); err != nil {
				r.reports.log.Warn("cannot list the offsets of the topic", zap.Error(err))
			}
			if listed == nil {
				break
			}
		}
		if o, ok := listed.Lookup(r.config.Topic, number); ok && o.Err == nil && o.Offset >= 0 {
			offsets[r.config.Topic][number] = kgo.NewOffset().At(o.Offset)
			p.progress.beginRecord(o.Offset)
			p.expected = o.Offset
		}
	}
	return offsets, nil
}

// onRevoked gives up partitions in a rebalance: it waits for the batches in the pipeline, and
// commits.
func (r *receiver) onRevoked(ctx context.Context, _ *kgo.Client, revoked map[string][]int32) {
	r.lose(ctx, revoked, true)
}

// onLost gives up partitions that may already belong to another member: it cancels the batches in
// the pipeline, and does not commit.
func (r *receiver) onLost(ctx context.Context, _ *kgo.Client, lost map[string][]int32) {
	r.lose(ctx, lost, false)
}

func (r *receiver) lose(ctx context.Context, lost map[string][]int32, commit bool) {
	var all []*partition
	for _, number := range lost[r.config.Topic] {
		if p := r.partition(number); p != nil {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return
	}
	unfinished := r.giveUp(ctx, r.config.RevokeTimeout.Std(), all, commit)
	r.set.Logger.Info("gave up partitions", zap.Int32s("partitions", lost[r.config.Topic]), zap.Bool("committed", commit),
		zap.Int("unfinished", unfinished))
}

// giveUp stops the workers of partitions. With commit, it waits for their batches, at most the
// given time and until ctx ends, and commits the accepted records. It returns the number of
// partitions whose batch was canceled.
func (r *receiver) giveUp(ctx context.Context, patience time.Duration, all []*partition, commit bool) (unfinished int) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range all {
		p.stop()
		if !commit {
			p.cancel()
		}
	}
	var canceled []*partition
	for _, p := range all {
		select {
		case <-p.done:
		case <-waiting.Done():
			canceled = append(canceled, p)
			p.cancel()
		}
	}
	r.awaitCanceled(all)
	for _, p := range canceled {
		if p.busy.Load() {
			unfinished++
		}
	}
	if commit {
		r.commits.commitLast(ctx, all)
	}
	r.mu.Lock()
	for _, p := range all {
		if r.partitions[p.number] == p {
			delete(r.partitions, p.number)
		}
	}
	r.mu.Unlock()
	for _, p := range all {
		p.discard()
	}
	return unfinished
}

// awaitCanceled waits until all workers have ended, which is soon after they were canceled, unless
// a component ignores its context.
func (r *receiver) awaitCanceled(all []*partition) {
	const patience = 5 * time.Second
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for _, p := range all {
		select {
		case <-p.done:
		case <-timeout.C:
			r.set.Logger.Error("pipeline ignores the end of a context; a batch of a partition that was given up is still processed",
				zap.Int32("partition", p.number))
			return
		}
	}
}

// hooks are called by the client library.
type hooks struct{ r *receiver }

// OnGroupManageError implements [kgo.HookGroupManageError].
func (h hooks) OnGroupManageError(err error) {
	if errors.Is(err, context.Canceled) {
		return // the receiver stops
	}
	h.r.reports.group(pipeline.Unavailable(h.r.config.Explain(h.r.config.Topic, err), 0))
	h.r.reports.log.Warn("cannot join the group", zap.String("group", h.r.config.GroupID), zap.Error(err))
}

// OnFetchBatchRead implements [kgo.HookFetchBatchRead].
func (h hooks) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, number int32, m kgo.FetchBatchMetrics) {
	if m.NumRecords > 0 || m.CompressionType == 0 {
		return
	}
	if p := h.r.partition(number); p != nil {
		p.skippedAt.Store(h.r.set.Env.Now().UnixNano())
	}
}
