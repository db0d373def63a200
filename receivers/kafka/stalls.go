package kafka

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// delays are the delays between attempts of one operation.
type delays struct {
	next, max time.Duration
	rand      func() uint64
	attempts  int // so far
}

func (r *receiver) newDelays() delays {
	return delays{next: r.config.ErrorBackoff.InitialInterval.Std(), max: r.config.ErrorBackoff.MaxInterval.Std(), rand: r.set.Env.Rand}
}

// after returns the delay after an attempt that failed with err: between half and all of a duration
// that doubles with each attempt, but at least the delay that err requests.
func (d *delays) after(err error) time.Duration {
	_, requested := pipeline.HTTPStatus(err)
	if !pipeline.IsTemporary(err) {
		requested = 0 // a default, which is for clients
	}
	delay := d.next/2 + time.Duration(d.rand()%uint64(d.next/2+1))
	d.next = min(2*d.next, d.max)
	d.attempts++
	return max(delay, requested)
}

// pause waits before the next attempt to process the records at the head of the queue. It returns
// false if the worker must end. Every call reports the partition as stalled. After the second
// attempt, its records are no longer fetched: a single refusal is common under load, and a pause
// discards the records that the client library has already fetched.
func (p *partition) pause(err error, d *delays) bool {
	if p.isStopping() { // err may come from a canceled batch
		return false
	}
	delay := d.after(err)
	p.r.stalls.begin(p.number, err, p.r.set.Env.Now())
	if d.attempts > 1 && p.paused.CompareAndSwap(false, true) {
		p.aside.Store(p.held.Load())
		p.r.memory.setAside(p.aside.Load())
		p.r.counts.paused.Add(1)
		p.r.client.PauseFetchPartitions(map[string][]int32{p.r.config.Topic: {p.number}})
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !p.isStopping()
	case <-p.stopping:
		return false
	case <-p.ctx.Done():
		return false
	}
}

// resume fetches again after a pause.
func (p *partition) resume() {
	if p.paused.CompareAndSwap(true, false) {
		p.r.memory.setAside(-p.aside.Load())
		p.r.counts.paused.Add(-1)
		p.r.client.ResumeFetchPartitions(map[string][]int32{p.r.config.Topic: {p.number}})
	}
}

// partitionErrors reports the partitions that have an error until it ends.
type partitionErrors struct {
	report func(error)
	what   string // about the partitions

	mu  sync.Mutex
	all map[int32]partitionError
}

type partitionError struct {
	err error
	at  time.Time // of its last occurrence
}

func newPartitionErrors(report func(error), what string) *partitionErrors {
	return &partitionErrors{report: report, what: what, all: map[int32]partitionError{}}
}

func (s *partitionErrors) begin(partition int32, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[partition] = partitionError{err, now}
	s.report(s.reason())
}

func (s *partitionErrors) end(partition int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.all[partition]; ok {
		delete(s.all, partition)
		s.report(s.reason())
	}
}

// endOld ends the error of a partition if it has not occurred since the given time.
func (s *partitionErrors) endOld(partition int32, since time.Time) {
	s.mu.Lock()
	e, ok := s.all[partition]
	s.mu.Unlock()
	if ok && e.at.Before(since) {
		s.end(partition)
	}
}

// reason returns the error of the first partition that has one, or nil. Errors of several
// partitions are usually the same.
func (s *partitionErrors) reason() error {
	if len(s.all) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(s.all)))
	if first == noPartition {
		return s.all[first].err
	}
	return fmt.Errorf("%d partitions %s; partition %d: %w", len(s.all), s.what, first, s.all[first].err)
}
