package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// committer commits the offsets of accepted records; see progress.
type committer struct {
	receiver *receiver

	mu sync.Mutex // held during a commit, so that commits do not overtake each other
}

// loop commits at an interval until ctx ends.
func (c *committer) loop(ctx context.Context) {
	t := time.NewTicker(c.receiver.config.Autocommit.Interval.Std())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.commit(ctx, c.receiver.assigned(), false)
		}
	}
}

// commitLast commits the offsets of revoked partitions, even if ctx has ended. They must not be
// committed afterwards, because that could reset the offset of the next member.
func (c *committer) commitLast(ctx context.Context, all []*partition) {
	ctx, cancel := withGrace(ctx, c.receiver.config.Autocommit.Timeout.Std())
	defer cancel()
	c.commit(ctx, all, true)
}

func (c *committer) commit(ctx context.Context, all []*partition, last bool) {
	r := c.receiver
	ctx, cancel := context.WithTimeout(ctx, r.config.Autocommit.Timeout.Std())
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	offsets := map[int32]kgo.EpochOffset{}
	for _, p := range all {
		if o, ok := p.progress.toCommit(); ok && !p.released {
			offsets[p.number] = o
		}
		p.released = p.released || last
	}
	if len(offsets) == 0 {
		return
	}
	var failed error
	done := func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = c.done(all, offsets, resp, err)
	}
	r.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{r.config.Topic: offsets}, done)
	if failed == nil {
		r.counts.commits.Inc()
	} else {
		r.counts.commitFailures.Inc()
		r.reports.log.Warn("cannot commit offsets", zap.Error(failed), zap.Bool("last", last))
	}
	r.reports.commits(failed)
}

// done records the outcome of a commit, and returns the first error.
func (c *committer) done(all []*partition, offsets map[int32]kgo.EpochOffset, resp *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return c.notCommitted(err)
	}
	byNumber := map[int32]*partition{}
	for _, p := range all {
		byNumber[p.number] = p
	}
	for _, t := range resp.Topics {
		for _, answer := range t.Partitions {
			if failure := kerr.ErrorForCode(answer.ErrorCode); failure != nil {
				if err == nil {
					err = c.notCommitted(failure)
				}
				continue
			}
			p, offset := byNumber[answer.Partition], offsets[answer.Partition]
			if p == nil {
				continue
			}
			p.progress.commit(offset.Offset)
			c.receiver.set.Logger.Debug("committed offset", zap.String("topic", c.receiver.config.Topic),
				zap.Int32("partition", p.number), zap.Int64("offset", offset.Offset), zap.Int32("epoch", offset.Epoch))
		}
	}
	return err
}

// notCommitted adds the consequence to a commit error.
func (c *committer) notCommitted(err error) error {
	if errors.Is(err, kerr.RebalanceInProgress) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.UnknownMemberID) {
		return fmt.Errorf("offsets were not committed because the group changes; some records may be consumed again: %w", err)
	}
	return fmt.Errorf("offsets are not committed; records since the last commit will be consumed again after a restart: %w",
		c.receiver.config.Explain(c.receiver.config.Topic, err))
}
