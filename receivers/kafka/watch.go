package kafka

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// Intervals between checks of the topic. The interval after errors is short, because the reported
// state of the receiver depends on it.
const (
	watchInterval = 10 * time.Second
	watchRetry    = time.Second
)

// fetchErrorAge is the age at which a fetch error is considered over, because it would have
// recurred.
const fetchErrorAge = 5 * time.Second

// watch requests the offsets of all partitions from the brokers, so that the lag of partitions that
// are currently not fetched is known, and reports if the brokers or the topic cannot be reached.
func (r *receiver) watch(ctx context.Context) {
	for {
		err := r.checkTopic(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := watchInterval
		if err != nil {
			wait = watchRetry
			err = r.config.Explain(r.config.Topic, err)
		}
		r.reports.topic(err)
		select {
		case <-ctx.Done():
			return
		case <-r.joined: // the lag of new partitions is unknown
		case <-time.After(wait):
		}
	}
}

func (r *receiver) checkTopic(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchInterval)
	defer cancel()
	ends, err := r.admin.ListEndOffsets(ctx, r.config.Topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	starts, err := r.admin.ListStartOffsets(ctx, r.config.Topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return err
	}
	now := r.set.Env.Now()
	for number, end := range ends[r.config.Topic] {
		if p := r.partition(number); p != nil && p.see(starts[r.config.Topic][number].Offset, end.Offset, now) {
			r.unfetched.endOld(number, now.Add(-fetchErrorAge))
		}
	}
	r.unfetched.endOld(noPartition, now.Add(-fetchErrorAge))
	return nil
}

// see records the start and end offsets of the partition. It reports whether there is nothing to
// fetch, in which case the next fetch would not show a recovery.
func (p *partition) see(start, end int64, now time.Time) bool {
	p.highWatermark.Store(end)
	p.progress.expire(start)
	p.mu.Lock()
	defer p.mu.Unlock()
	position := p.progress.position()
	switch {
	case position < 0 || position >= end || !p.oldest.IsZero():
		p.behind = time.Time{}
	case p.behind.IsZero():
		p.behind = now
	}
	return position >= end
}

// lag returns the number of records that are not accepted yet, and the age of the oldest. ok is
// false if the lag is unknown.
func (p *partition) lag(now time.Time) (records int64, age time.Duration, ok bool) {
	end, position := p.highWatermark.Load(), p.progress.position()
	p.mu.Lock()
	oldest, behind := p.oldest, p.behind
	p.mu.Unlock()
	if end < 0 || position < 0 {
		return 0, 0, false
	}
	records = max(0, end-position)
	if oldest.IsZero() {
		oldest = behind
	}
	if records > 0 && !oldest.IsZero() {
		age = max(0, now.Sub(oldest))
	}
	return records, age, true
}

// reports are the reasons for which the receiver is degraded, and the log of conditions that
// repeat.
type reports struct {
	log                                   *pipeline.RepeatLog
	topic, group, fetch, commits, stalled func(error)
}

func newReports(set pipeline.Settings) reports {
	all := pipeline.NewReports(set.Report)
	return reports{log: pipeline.NewRepeatLog(set), topic: all.Part("topic"), group: all.Part("group"), fetch: all.Part("fetch"),
		commits: all.Part("commits"), stalled: all.Part("stalled")}
}
