package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// progress records how far a partition is processed. The invariant of this package is:
//
//	The offset to commit of a partition is the offset after the last accepted record.
//
// A record is accepted when the pipeline has accepted its spans or when it is a dead letter. Only
// the worker of the partition calls accept, after it has processed a record and all records before
// it; only the committer calls toCommit. Nothing else determines an offset to commit, in particular
// not which records were fetched, polled or queued.
type progress struct {
	mu        sync.Mutex
	accepted  kgo.EpochOffset // offset -1: no record yet
	committed int64           // -1: nothing yet
	first     int64           // offset of the first polled record; -1: none yet; only for the lag
	start     int64           // records below this offset no longer exist; only for the lag
}

func newProgress() progress {
	return progress{accepted: kgo.EpochOffset{Offset: -1}, committed: -1, first: -1}
}

// accept records that r and all records of the partition before it are accepted. After a broker has
// lost records, r may have a lower offset than the previous one.
func (p *progress) accept(r *kgo.Record) {
	p.skipTo(kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1})
}

// skipTo is like accept for records up to an offset, exclusive.
func (p *progress) skipTo(next kgo.EpochOffset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted = next
}

// toCommit returns the offset to commit if it is not committed yet.
func (p *progress) toCommit() (kgo.EpochOffset, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted, p.accepted.Offset >= 0 && p.accepted.Offset != p.committed
}

// commit records that an offset is committed.
func (p *progress) commit(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.committed = offset
}

// beginRecord records the offset of a record that was polled.
func (p *progress) beginRecord(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first < 0 {
		p.first = offset
	}
}

// expire records that records below an offset no longer exist.
func (p *progress) expire(start int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = start
}

// position returns the offset up to which records are accepted or, before the first accepted
// record, the committed offset or the offset of the first polled record. Records that no longer
// exist count as accepted. It returns -1 if the offset is unknown.
func (p *progress) position() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.accepted.Offset >= 0:
		return max(p.accepted.Offset, p.start)
	case p.committed >= 0:
		return max(p.committed, p.start)
	case p.first >= 0:
		return max(p.first, p.start)
	}
	return -1
}
