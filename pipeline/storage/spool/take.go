package spool

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// Take returns the oldest item that nobody has taken yet, waiting for one. Items of a log that cannot be read now come later. Errors are
// ctx's, also when there is an item, or ErrClosed.
func (q *Queue) Take(ctx context.Context) (Item, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Item{}, err
		}
		item, wait, err := q.tryTake()
		if err != nil || wait == nil {
			return item, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

// TryTake is Take for those who do not wait.
func (q *Queue) TryTake() (Item, bool) {
	item, wait, err := q.tryTake()
	return item, wait == nil && err == nil
}

// tryTake returns an item, or what to wait for before trying again.
func (q *Queue) tryTake() (item Item, wait <-chan struct{}, err error) {
	q.taking.Lock()
	defer q.taking.Unlock()
	for {
		item, file, wait, err := q.next()
		if file == nil {
			return item, wait, err
		}
		q.read(file)
		q.sweep() // it may turn out to be empty
	}
}

// next takes an item out of memory, or returns the log whose file is to be read first, or what to wait for.
func (q *Queue) next() (item Item, file *part, wait <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return item, nil, nil, ErrClosed
	}
	p := q.first()
	switch {
	case p == nil || p.onDisk && p.pending > 0: // the file is not complete yet
		return item, nil, q.changed, nil
	case p.onDisk:
		return item, p, nil, nil
	}
	return p.take(), nil, nil, nil
}

// first returns the log whose items come next. Before a file is read, what other files have brought into memory goes.
func (q *Queue) first() (first *part) {
	for _, p := range q.parts {
		switch {
		case !p.waiting() || p.resting:
		case !p.onDisk && p != q.current:
			return p
		case first == nil:
			first = p
		}
	}
	return first
}

// read brings the items of a log into memory, or has it rest. Only who holds taking may call it.
func (q *Queue) read(p *part) {
	var items []Item
	var found State
	report, err := q.logs.Replay(p.epoch, func(seq uint64, payload []byte) error {
		r, err := readRecord(payload)
		if _, done := p.done[seq]; done || err != nil || r.kind != kindItem {
			return nil
		}
		item := Item{Payload: slices.Clone(r.payload), Since: r.since, Weight: r.weight, size: int64(len(r.payload)), epoch: p.epoch, seq: seq}
		items = append(items, item)
		found.add(item.state())
		return nil
	})
	final := err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, wal.ErrVersion)
	if cause := unreadable(report); err == nil && cause != nil && p.reads < maxReads {
		final, err = false, cause
	}
	if !final {
		q.rest(p, err)
		return
	}
	if missing := q.brought(p, items, found); missing != (State{}) {
		q.opt.Lost(Loss{Epoch: p.epoch, Items: uint64(max(missing.Items, 0)), Gone: missing, Report: report, Err: err})
	}
}

// unreadable returns why the disk did not give all of a log. The next time it may.
func unreadable(r wal.Report) error {
	for _, d := range r.Damage {
		if d.Err != nil {
			return d.Err
		}
	}
	return nil
}

// rest puts off the next attempt to read a log.
func (q *Queue) rest(p *part, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.cause, p.resting = err, true
	p.reads++
	time.AfterFunc(retryRead, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		p.resting = false
		q.wake()
	})
}

// brought puts items that were read in their place, and returns what should have been there besides.
func (q *Queue) brought(p *part, items []Item, found State) (missing State) {
	q.mu.Lock()
	defer q.mu.Unlock()
	missing = p.unread
	missing.sub(found)
	q.state.sub(missing)
	p.damaged = p.damaged || missing != (State{})
	p.items, p.onDisk, p.unread, p.done, p.cause = items, false, State{}, nil, nil
	return missing
}

// Waiting returns how many items nobody has taken, and when the oldest was put, as far as is known without reading files: for items on disk
// it is when their log was begun. It is zero when nothing waits.
func (q *Queue) Waiting() (items int64, oldest time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.parts {
		switch items += p.unread.Items + int64(len(p.items)); {
		case !oldest.IsZero() || !p.waiting():
		case p.onDisk:
			oldest = time.Unix(0, int64(p.epoch))
		default:
			oldest = p.items[0].Since
		}
	}
	return items, oldest
}
