package spool

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// retryRead is the time between attempts to read a log. Meanwhile the next ones are read.
const retryRead = time.Second

// retryRemove is the time between attempts to remove a log.
const retryRemove = time.Second

// maxReads is how often a log is read, of which the disk gives parts only, before the rest counts as lost.
const maxReads = 10

// part is one log of the queue. It is guarded by the queue's lock.
type part struct {
	epoch    uint64
	log      *wal.Log   // nil unless it is the current one: its buffers must not stay
	pending  int        // puts that are being committed
	taken    int        // items that are taken and not done
	items    []Item     // in memory and not taken yet, oldest first
	begun    bool       // items were taken that did not come from the file: it cannot be left to the file, which has them too
	notes    []doneItem // whose done records are in this log, without those of logs that are gone
	damaged  bool       // the file lost records: it is set aside, not deleted
	failed   bool       // a write or a sync of the file failed: it is not used for another log
	removing bool       // somebody removes it
	staying  time.Time  // until then nobody tries to remove it, since that has just failed

	onDisk  bool                // items are to be read from the file, all but those in done
	unread  State               // how much they are, as far as is known
	done    map[uint64]struct{} // sequence numbers that are not wanted when the file is read
	reads   int                 // that failed
	cause   error               // of the last of them
	resting bool                // is not read now, since that has just failed
}

// skip leaves a record out when the file is read.
func (p *part) skip(seq uint64) {
	if p.done == nil {
		p.done = map[uint64]struct{}{}
	}
	p.done[seq] = struct{}{}
}

// waiting reports whether there are items that nobody has taken.
func (p *part) waiting() bool { return p.onDisk || len(p.items) > 0 }

// forget leaves the items to the file.
func (p *part) forget() {
	p.onDisk = true
	for i := range p.items {
		p.unread.add(p.items[i].state())
	}
	p.items = nil
}

// take removes the oldest item.
func (p *part) take() Item {
	item := p.items[0]
	p.items[0] = Item{} // the array behind items must not keep it
	p.items = p.items[1:]
	p.taken++
	p.begun = true
	return item
}

// finished reports whether a log holds nothing that is wanted.
func (q *Queue) finished(p *part) bool {
	return p != q.current && !p.waiting() && p.pending == 0 && p.taken == 0
}

// find returns the log with an epoch, nil if there is none. Parts are in the order of their epochs.
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

// sweep removes the logs that are finished. One that cannot be removed stays for a later sweep, and holds up no other.
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

// claim returns a finished log for the caller to remove. What it knows of items in logs that stay has been written again, up to last, which
// is to be committed first. A log of which that cannot be written stays.
func (q *Queue) claim() (p *part, last appended) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, last // the next Open does it
	}
	now := q.opt.Now()
	for _, p := range q.parts {
		if p.removing || !q.finished(p) || now.Before(p.staying) {
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

// noteAgain writes what a log knows of items in logs that stay.
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

// removed takes a log out of the list, and with it what others know of its items; err is why it could not be removed.
func (q *Queue) removed(p *part, err error) {
	if err != nil {
		p.removing, p.staying, q.err = false, q.opt.Now().Add(retryRemove), err
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
