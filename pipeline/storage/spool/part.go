package spool

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// retryRead is the time between attempts to read a log. Meanwhile later logs are read.
const retryRead = time.Second

// retryRemove is the time between attempts to remove a log.
const retryRemove = time.Second

// maxReads is the number of incomplete reads of a log after which the rest counts as lost.
const maxReads = 10

// part is one log of the queue. It is guarded by the queue's lock.
type part struct {
	epoch    uint64
	log      *wal.Log   // nil unless this is the current log, to release its buffers
	pending  int        // calls of Put that are being committed
	taken    int        // items that were taken and are not done
	items    []Item     // in memory and not taken, oldest first
	begun    bool       // items were taken from memory: reading the file would redeliver them
	notes    []doneItem // items whose done records are in this log, except those of removed logs
	damaged  bool       // the file lost records: quarantine it instead of deleting it
	lost     uint64     // Loss.Items when the file was damaged at Open
	unknown  bool       // Open could not read the file, so unread is not known
	failed   bool       // a write or sync of the file failed: do not reuse it
	removing bool       // it is being removed
	retryAt  time.Time  // earliest time of the next attempt to remove it

	onDisk    bool                // the items, except those in done, must be read from the file
	unread    State               // size of the unread items, as far as known
	done      map[uint64]struct{} // sequence numbers to skip when the file is read
	reads     int                 // number of failed reads
	cause     error               // of the last failed read
	suspended bool                // a read just failed: do not read now
}

// skip excludes a record when the file is read.
func (p *part) skip(seq uint64) {
	if p.done == nil {
		p.done = map[uint64]struct{}{}
	}
	p.done[seq] = struct{}{}
}

// waiting reports whether there are items that were not taken.
func (p *part) waiting() bool { return p.onDisk || len(p.items) > 0 }

// unload drops the items from memory; they are read from the file later.
func (p *part) unload() {
	p.onDisk = true
	for i := range p.items {
		p.unread.addState(p.items[i].state())
	}
	p.items = nil
}

// takeItem removes the oldest item.
func (p *part) takeItem() Item {
	item := p.items[0]
	p.items[0] = Item{} // release it from the underlying array
	p.items = p.items[1:]
	p.taken++
	p.begun = true
	return item
}

// finished reports whether a log holds no item that is still needed.
func (q *Queue) finished(p *part) bool {
	return p != q.current && !p.waiting() && p.pending == 0 && p.taken == 0
}

// find returns the log with an epoch, or nil. Parts are ordered by epoch.
func (q *Queue) find(epoch uint64) *part {
	i, ok := slices.BinarySearchFunc(q.parts, epoch, func(p *part, epoch uint64) int {
		switch {
		case p.epoch < epoch:
			return -1
		case p.epoch > epoch:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return q.parts[i]
}

// sweep removes the finished logs. A log that cannot be removed stays for a later sweep and does
// not block the others.
func (q *Queue) sweep() {
	for {
		p, last := q.claim()
		if p == nil {
			return
		}
		err := last.commit()
		if err == nil {
			err = q.remove(p)
		}
		q.mu.Lock()
		q.removed(p, err)
		q.mu.Unlock()
	}
}

// claim returns a finished log for the caller to remove. Its done records for items in other logs
// have been rewritten; last is the last of them, to be committed first. A log whose done records
// cannot be written stays.
func (q *Queue) claim() (p *part, last appended) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, last // the next Open removes it
	}
	now := q.opt.Now()
	for _, p := range q.parts {
		if p.removing || !q.finished(p) || now.Before(p.retryAt) {
			continue
		}
		p.removing = true
		if last, err := q.noteAgain(p); err == nil {
			return p, last
		}
		p.removing = false
	}
	return nil, last
}

// noteAgain rewrites the done records of a log for items in other logs.
func (q *Queue) noteAgain(p *part) (last appended, err error) {
	for _, d := range p.notes {
		if of := q.find(d.epoch); of == nil || of.removing {
			continue
		}
		if last, err = q.note(d); err != nil {
			return last, err
		}
	}
	return last, nil
}

// removed takes a log out of the list, and its items out of the done records of others; err is why
// it could not be removed.
func (q *Queue) removed(p *part, err error) {
	if err != nil {
		p.removing, p.retryAt, q.err = false, q.opt.Now().Add(retryRemove), err
		return
	}
	q.err = nil
	q.parts = slices.DeleteFunc(q.parts, func(other *part) bool { return other == p })
	for _, other := range q.parts {
		other.notes = slices.DeleteFunc(other.notes, func(d doneItem) bool { return d.epoch == p.epoch })
	}
}

func (q *Queue) remove(p *part) error {
	switch {
	case p.damaged:
		return q.logs.Quarantine(p.epoch, q.opt.Quarantine)
	case p.failed:
		return q.logs.Remove(p.epoch)
	}
	return q.logs.Recycle(p.epoch)
}
